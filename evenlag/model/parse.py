"""Plain values to a validated `Problem`: the one place where input rules of the problem stand."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.errors import InvalidProblemError
from evenlag.model.problem import NO_CAP, NOBODY, Index, Ints, Problem, summable

MAX_LAG = 2**62
MAX_PARTITION = 2**31 - 1
LARGEST_WEIGHT = Fraction(10**9)  # only proportions count; wider ones would make exact arithmetic slow
_MEMBER_FIELDS = {"topics", "weight", "owned", "generation", "max_partitions"}
_DOCUMENT_FIELDS = {"group", "topics", "members", "pins"}


def parse_document(document: Mapping[str, Any]) -> Problem:
    """Read the problem-file document; see `Problem.from_dict`."""
    if not isinstance(document, Mapping):
        raise InvalidProblemError(f"a problem is a JSON object with topics and members, not {_kind(document)}")
    _known(document, _DOCUMENT_FIELDS, "the problem")
    for field in ("topics", "members"):
        if not isinstance(document.get(field), Mapping):
            raise InvalidProblemError(f"{field!r} must be an object of names; got {_kind(document.get(field))}")
    members: dict[str, Any] = {}
    owned: dict[str, Any] = {}
    weights: dict[str, Any] = {}
    caps: dict[str, Any] = {}
    generations: dict[str, Any] = {}
    for name, entry in document["members"].items():
        if not isinstance(entry, Mapping):
            raise InvalidProblemError(f"member {name!r}: must be an object with its topics; got {_kind(entry)}")
        _known(entry, _MEMBER_FIELDS, f"member {name!r}")
        members[name] = entry.get("topics", [])
        owned[name] = () if entry.get("owned") is None else entry["owned"]
        weights[name] = 1 if entry.get("weight") is None else entry["weight"]
        caps[name] = entry.get("max_partitions")
        generations[name] = entry.get("generation")
    pins = () if document.get("pins") is None else document["pins"]
    return parse(
        document.get("group", "group"), document["topics"], members, owned, weights, caps, generations, pins
    )  # fmt: skip


def parse(
    group: str,
    lags: Mapping[str, Sequence[int] | Mapping[int, int]],
    members: Mapping[str, Iterable[str]],
    owned: Mapping[str, Iterable[tuple[str, int]]],
    weights: Mapping[str, float],
    max_partitions: Mapping[str, int | None],
    generations: Mapping[str, int | None],
    pins: Iterable[tuple[str, int, str]],
) -> Problem:
    """Validate plain values and put them in canonical order; see `Problem.from_lags`."""
    _name(group, "the group")
    if not lags:
        raise InvalidProblemError(f"group {group!r} has no topics: give at least one topic with its lags")
    topics = tuple(sorted(_name(topic, "a topic") for topic in lags))
    names = tuple(sorted(_name(member, "a member") for member in members))
    for field, mapping in (("weights", weights), ("max_partitions", max_partitions), ("generations", generations)):
        for name in mapping:
            if name not in members:
                raise InvalidProblemError(f"{field}: {name!r} is not a member of the group")
    notes: Counter[str] = Counter()
    topic_of, partition_ids, lag_values = _lags(topics, lags)
    index = _PartitionIndex(topics, topic_of, partition_ids)
    subscribed = _subscriptions(topics, names, members, notes)
    caps = np.array([_cap(name, max_partitions.get(name)) for name in names], dtype=np.int64)
    ages = tuple(_generation(name, generations.get(name)) for name in names)
    pinned = _pins(pins, index, names, subscribed, caps)
    owner, lost_claims = _owners(owned, index, names, subscribed, ages, notes)
    return Problem(
        group=group,
        topics=topics,
        members=names,
        topic_of=topic_of,
        partition_ids=partition_ids,
        lags=lag_values,
        subscribed=subscribed,
        weights=tuple(_weight(name, weights.get(name, 1)) for name in names),
        caps=caps,
        generations=ages,
        owner=owner,
        pins=pinned,
        warnings=tuple(f"{count} {what}" for what, count in sorted(notes.items()) if count),
        lost_claims=lost_claims,
    )


class _PartitionIndex:
    """Finds the index of a (topic, partition) name."""

    def __init__(self, topics: tuple[str, ...], topic_of: Index, partition_ids: NDArray[np.int64]) -> None:
        self._topics = {topic: t for t, topic in enumerate(topics)}
        self._starts = np.searchsorted(topic_of, np.arange(len(topics) + 1)).tolist()
        self._ids = partition_ids

    def topic(self, name: object) -> int | None:
        return self._topics.get(name) if isinstance(name, str) else None

    def find(self, topic: object, partition: object) -> int | None:
        t = self.topic(topic)
        if t is None or isinstance(partition, bool) or not isinstance(partition, int | np.integer):
            return None
        first, last = self._starts[t], self._starts[t + 1]
        if first + partition < last and self._ids[first + partition] == partition:  # dense, as Kafka's are
            return int(first + partition)
        at = first + int(np.searchsorted(self._ids[first:last], partition))
        return at if at < last and self._ids[at] == partition else None


def _lags(topics: tuple[str, ...], lags: Mapping[str, Any]) -> tuple[Index, NDArray[np.int64], Ints]:
    ids: list[NDArray[np.int64]] = []
    values: list[Ints] = []
    for topic in topics:
        entry = lags[topic]
        if isinstance(entry, str | bytes) or not isinstance(entry, Mapping | Sequence | np.ndarray):
            raise InvalidProblemError(f"topic {topic!r}: lags must be a list or an object; got {_kind(entry)}")
        if len(entry) == 0:
            raise InvalidProblemError(f"topic {topic!r} has no partitions: give a lag for each, or leave the topic out")
        if isinstance(entry, Mapping):
            here = _partition_numbers(topic, entry)
            numbers = np.array(sorted(here), dtype=np.int64)
            column = _lag_column(topic, numbers, [entry[here[i]] for i in numbers.tolist()])
        else:
            numbers = np.arange(len(entry), dtype=np.int64)
            column = _lag_column(topic, numbers, entry)
        ids.append(numbers)
        values.append(column)
    sizes = [len(column) for column in values]
    topic_of = np.repeat(np.arange(len(topics), dtype=np.int32), sizes)
    return topic_of, np.concatenate(ids), summable(np.concatenate(values))


def _partition_numbers(topic: str, entry: Mapping[Any, Any]) -> dict[int, Any]:
    here: dict[int, Any] = {}
    for key in entry:
        digits = isinstance(key, str) and key.isascii() and key.isdecimal() and len(key) <= len(str(MAX_PARTITION))
        whole = isinstance(key, int | np.integer) and not isinstance(key, bool)
        number = int(key) if digits or whole else -1
        if not 0 <= number <= MAX_PARTITION:
            raise InvalidProblemError(f"topic {topic!r}: {key!r} is no partition number (0, 1, 2, …)")
        if number in here:
            raise InvalidProblemError(f"topic {topic!r}: partition {number} is given twice")
        here[number] = key
    return here


def _lag_column(topic: str, numbers: NDArray[np.int64], entry: Any) -> NDArray[np.int64]:
    column = np.asarray(entry, dtype=None if isinstance(entry, np.ndarray) else object)
    if column.dtype.kind in "iu" and column.ndim == 1 and column.min() >= 0 and column.max() <= MAX_LAG:
        return column.astype(np.int64)
    if isinstance(entry, np.ndarray):
        entry = entry.tolist()
    return np.array(
        [_lag(topic, number, lag) for number, lag in zip(numbers.tolist(), entry, strict=True)], dtype=np.int64
    )  # fmt: skip


def _lag(topic: str, partition: int, lag: object) -> int:
    if type(lag) is int:
        number = lag
    elif isinstance(lag, np.integer) or (isinstance(lag, float) and lag.is_integer()):
        number = int(lag)
    else:
        raise InvalidProblemError(f"{topic}-{partition}: lag must be a whole number of messages, not {_shown(lag)}")
    if not 0 <= number <= MAX_LAG:
        raise InvalidProblemError(f"{topic}-{partition}: lag must lie between 0 and 2^62, not {number}")
    return number


def _subscriptions(
    topics: tuple[str, ...], names: tuple[str, ...], members: Mapping[str, Iterable[str]], notes: Counter[str]
) -> NDArray[np.bool_]:
    index = {topic: t for t, topic in enumerate(topics)}
    subscribed = np.zeros((len(topics), len(names)), dtype=bool)
    for m, name in enumerate(names):
        entry = members[name]
        if isinstance(entry, str | bytes) or not isinstance(entry, Iterable):
            raise InvalidProblemError(f"member {name!r}: its topics must be a list of names; got {_kind(entry)}")
        known = [index.get(topic) if isinstance(topic, str) else None for topic in entry]
        subscribed[[t for t in known if t is not None], m] = True
        notes["subscriptions to topics that have no partitions here, ignored"] += known.count(None)
    return subscribed


def _pins(
    pins: Iterable[tuple[str, int, str]],
    index: _PartitionIndex,
    names: tuple[str, ...],
    subscribed: NDArray[np.bool_],
    caps: NDArray[np.int64],
) -> Index:
    members = {name: m for m, name in enumerate(names)}
    pinned = np.full(len(index._ids), NOBODY, dtype=np.int32)
    for topic, partition, member in _rows(pins, 3, "pins"):
        at, m = index.find(topic, partition), members.get(member) if isinstance(member, str) else None
        place = f"pin of {topic}-{partition} to {member!r}"
        if at is None:
            raise InvalidProblemError(f"{place}: there is no such partition")
        if m is None:
            raise InvalidProblemError(f"{place}: there is no such member")
        if not subscribed[index.topic(topic), m]:
            raise InvalidProblemError(f"{place}: {member!r} does not subscribe to {topic!r}")
        if pinned[at] not in (NOBODY, m):
            raise InvalidProblemError(f"{place}: it is already pinned to {names[pinned[at]]!r}; keep one of the two")
        pinned[at] = m
    counts = np.bincount(pinned[pinned != NOBODY], minlength=len(names))
    for over in np.flatnonzero(counts > caps).tolist():
        raise InvalidProblemError(
            f"member {names[over]!r}: {counts[over]} partitions are pinned to it, but max_partitions is {caps[over]}"
        )
    return pinned


def _owners(
    owned: Mapping[str, Iterable[tuple[str, int]]],
    index: _PartitionIndex,
    names: tuple[str, ...],
    subscribed: NDArray[np.bool_],
    generations: tuple[int | None, ...],
    notes: Counter[str],
) -> tuple[Index, Index]:
    """Return the owners, and the claims of members that lost them: (partition, member), shape (N, 2)."""
    members = {name: m for m, name in enumerate(names)}
    lost: list[tuple[int, int]] = []
    owner = np.full(len(index._ids), NOBODY, dtype=np.int32)
    newest: dict[int, int] = {}
    for name in sorted(owned):
        m = members.get(name)
        claims = set(_rows(owned[name], 2, f"member {name!r}: owned"))
        if m is None:
            notes["owned entries dropped: their member is not in the group"] += len(claims)
            continue
        age = -1 if (generation := generations[m]) is None else generation
        for topic, partition in claims:
            at = index.find(topic, partition)
            if at is None:
                notes["owned entries dropped: there is no such partition"] += 1
            elif not subscribed[index.topic(topic), m]:
                notes["owned entries dropped: their member no longer subscribes to the topic"] += 1
                lost.append((at, m))
            elif at not in newest or age > newest[at]:
                if at in newest:
                    notes["owned entries dropped: a higher generation claims the partition"] += 1
                    lost.append((at, owner[at]))
                newest[at] = age
                owner[at] = m
            elif age < newest[at]:
                notes["owned entries dropped: a higher generation claims the partition"] += 1
                lost.append((at, m))
            else:
                notes["owned entries dropped: two members of one generation claim the partition"] += 1
                lost += [(at, owner[at]), (at, m)]
                owner[at] = NOBODY
    lost_claims = np.array(sorted(claim for claim in lost if claim[1] != NOBODY), dtype=np.int32)
    return owner, lost_claims.reshape(-1, 2)


def _weight(name: str, weight: object) -> Fraction:
    value = Fraction(0)
    if isinstance(weight, int | Fraction) and not isinstance(weight, bool):
        value = Fraction(weight)
    elif isinstance(weight, np.integer):
        value = Fraction(int(weight))
    elif isinstance(weight, float | np.floating) and math.isfinite(weight):
        value = Fraction(Decimal(repr(float(weight))))  # 0.1 is meant as a tenth, not as its nearest double
    if not 1 / LARGEST_WEIGHT <= value <= LARGEST_WEIGHT:
        raise InvalidProblemError(
            f"member {name!r}: weight must be a number > 0, between 1e-9 and 1e9, not {_shown(weight)}"
        )
    return value


def _cap(name: str, cap: object) -> int:
    if cap is None:
        return NO_CAP
    if isinstance(cap, bool) or not isinstance(cap, int | np.integer) or cap < 0:
        raise InvalidProblemError(f"member {name!r}: max_partitions must be a whole number >= 0, not {_shown(cap)}")
    return min(int(cap), NO_CAP)


def _generation(name: str, generation: object) -> int | None:
    if generation is None:
        return None
    if isinstance(generation, bool) or not isinstance(generation, int | np.integer):
        raise InvalidProblemError(f"member {name!r}: generation must be a whole number, not {_shown(generation)}")
    return int(generation)


def _name(name: object, what: str) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidProblemError(f"{what} needs a name, a text that is not empty; got {_shown(name)}")
    return name


def _known(entry: Mapping[str, Any], fields: set[str], place: str) -> None:
    for field in entry:
        if field not in fields:
            raise InvalidProblemError(f"{place}: unknown field {field!r}; known are {', '.join(sorted(fields))}")


def _rows(rows: Any, width: int, place: str) -> list[tuple[Any, ...]]:
    """Return entries of so many plain values each."""
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise InvalidProblemError(f"{place}: must be a list; got {_kind(rows)}")
    found = []
    for row in rows:
        plain = isinstance(row, Sequence) and not isinstance(row, str) and len(row) == width
        if not plain or not all(isinstance(value, str | int | np.integer) for value in row[:2]):
            shape = "[topic, partition]" if width == 2 else "[topic, partition, member]"
            raise InvalidProblemError(f"{place}: every entry is {shape}, not {_shown(row)}")
        found.append(tuple(row))
    return found


def _kind(value: object) -> str:
    return "nothing" if value is None else type(value).__name__


def _shown(value: object) -> str:
    return "nothing" if value is None else repr(value)
