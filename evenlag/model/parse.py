"""Conversion of plain values to the fields of a `Problem`; all input rules of a group are here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from evenlag.errors import InvalidProblemError
from evenlag.model.arrays import NOBODY, Bools, Index, Ints, stacked
from evenlag.model.facts import Facts, completed, facts_of
from evenlag.model.origin import Origin
from evenlag.model.pair_data import NO_PAIR_DATA, PairData
from evenlag.model.parse_pairs import DOCUMENT_FIELDS, PairArguments, pair_arguments
from evenlag.model.partitions import LagsByTopic, Partitions
from evenlag.model.values import (
    check_fields,
    check_mapping,
    check_name,
    kind,
    parse_cap,
    parse_entries,
    parse_generation,
    parse_weight,
    shown,
)

_MEMBER_FIELDS = ("topics", "weight", "owned", "generation", "max_partitions", "rack")
_DOCUMENT_FIELDS = ("group", "topics", "members", "pins", "scenarios", "assignor", "facts", *DOCUMENT_FIELDS)
_SCENARIO_FIELDS = ("weight", "topics")

# Messages about dropped input; each is preceded by a count.
_UNKNOWN_SUBSCRIPTION = "subscriptions ignored: the topic has no partitions in the input"
UNKNOWN_MEMBER = "owned entries dropped: their member is not in the group"
_UNKNOWN_PARTITION = "owned entries dropped: the partition does not exist"
UNSUBSCRIBED = "owned entries dropped: their member no longer subscribes to the topic"
_OUTDATED = "owned entries dropped: a higher generation claims the partition"
_TIED = "owned entries dropped: two members of one generation claim the partition"


class Arguments(PairArguments):
    """Parameters of `Problem.from_lags`, by name."""

    lags: LagsByTopic
    members: Mapping[str, Iterable[str]]
    group: str
    owned: Mapping[str, Iterable[tuple[str, int]]]
    weights: Mapping[str, float]
    max_partitions: Mapping[str, int | None]
    generations: Mapping[str, int | None]
    pins: Iterable[tuple[str, int, str]]
    scenarios: Iterable[tuple[float, LagsByTopic]]
    assignor: str | None
    facts: Mapping[str, Any] | None


class Fields(TypedDict):
    """Fields of `Problem`, described there."""

    group: str
    topics: tuple[str, ...]
    members: tuple[str, ...]
    topic_of: Index
    partition_ids: NDArray[np.int64]
    lags: Ints
    subscribed: Bools
    weights: tuple[Fraction, ...]
    caps: NDArray[np.int64]
    generations: tuple[int | None, ...]
    owner: Index
    pins: Index
    scenario_weights: tuple[Fraction, ...]
    scenario_lags: Ints
    pairs: PairData
    origin: Origin


def parse_document(document: Any) -> Arguments:
    """Read a problem-file document; only its structure is checked, not its values."""
    if not isinstance(document, Mapping):
        raise InvalidProblemError(f"a problem is a JSON object with topics and members, not {kind(document)}")
    check_fields(document, _DOCUMENT_FIELDS, "the problem")
    for field in ("topics", "members"):
        if not isinstance(document.get(field), Mapping):
            raise InvalidProblemError(f"{field!r} must be an object of names; got {kind(document.get(field))}")
    members = {name: _member_entry(name, entry) for name, entry in document["members"].items()}
    return Arguments(
        lags=document["topics"],
        members={name: entry.get("topics", ()) for name, entry in members.items()},
        group=document.get("group", "group"),
        owned={name: _given(entry, "owned", ()) for name, entry in members.items()},
        weights={name: _given(entry, "weight", 1) for name, entry in members.items()},
        max_partitions={name: entry.get("max_partitions") for name, entry in members.items()},
        generations={name: entry.get("generation") for name, entry in members.items()},
        pins=_given(document, "pins", ()),
        scenarios=[_scenario_entry(s, entry) for s, entry in enumerate(_listed(document, "scenarios"))],
        assignor=document.get("assignor"),
        facts=document.get("facts"),
        **pair_arguments(document, members),
    )


def _listed(document: Mapping[str, Any], field: str) -> list[Any]:
    value = _given(document, field, [])
    if not isinstance(value, list):
        raise InvalidProblemError(f"{field!r} must be a list; got {kind(value)}")
    return value


def _scenario_entry(number: int, entry: Any) -> tuple[float, LagsByTopic]:
    place = f"scenario {number}"
    if not isinstance(entry, Mapping) or not isinstance(entry.get("topics"), Mapping):
        raise InvalidProblemError(f"{place}: must be an object with its topics; got {kind(entry)}")
    check_fields(entry, _SCENARIO_FIELDS, place)
    return _given(entry, "weight", 1), entry["topics"]


def _member_entry(name: str, entry: Any) -> Mapping[str, Any]:
    if not isinstance(entry, Mapping):
        raise InvalidProblemError(f"member {name!r}: must be an object with its topics; got {kind(entry)}")
    check_fields(entry, _MEMBER_FIELDS, f"member {name!r}")
    return entry


def _given(entry: Mapping[str, Any], field: str, default: Any) -> Any:
    """Return a field, or the default if it is missing or null."""
    value = entry.get(field)
    return default if value is None else value


def parse(
    group: str,
    lags: LagsByTopic,
    members: Mapping[str, Iterable[str]] | Iterable[str],
    owned: Mapping[str, Iterable[tuple[str, int]]],
    weights: Mapping[str, float],
    max_partitions: Mapping[str, int | None],
    generations: Mapping[str, int | None],
    pins: Iterable[tuple[str, int, str]],
    scenarios: Iterable[tuple[float, LagsByTopic]] = (),
    assignor: str | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Fields:
    """Validate plain values and put them in canonical order; see `Problem.from_lags`."""
    check_name(group, "the group")
    members = _by_name(members, lags)
    check_mapping(owned, "owned", "member to its (topic, partition) pairs")
    names = tuple(sorted(check_name(member, "a member") for member in members))
    for field, mapping in (("weights", weights), ("max_partitions", max_partitions), ("generations", generations)):
        check_mapping(mapping, field, "member to value")
        for name in mapping:
            if name not in members:
                raise InvalidProblemError(f"{field}: {name!r} is not a member of the group")
    partitions = Partitions(lags)
    dropped: Counter[str] = Counter()
    subscribed, empty_topics = subscriptions(partitions, names, members, dropped)
    caps = np.array([parse_cap(name, max_partitions.get(name)) for name in names], dtype=np.int64)
    ages = tuple(parse_generation(name, generations.get(name)) for name in names)
    pinned = _pins(pins, partitions, names, subscribed, caps)
    futures = [_scenario(s, partitions, entry) for s, entry in enumerate(_scenarios(scenarios))]
    claims = _Claims(partitions, names, subscribed, ages, dropped)
    for name in sorted(map(_owner, owned)):
        claims.take(name, owned[name])
    return Fields(
        group=group,
        topics=partitions.topics,
        members=names,
        topic_of=partitions.topic_of,
        partition_ids=partitions.ids,
        lags=partitions.lags,
        subscribed=subscribed,
        weights=tuple(parse_weight(f"member {name!r}", weights.get(name, 1)) for name in names),
        caps=caps,
        generations=ages,
        owner=claims.owner,
        pins=pinned,
        scenario_weights=tuple(weight for weight, _ in futures),
        scenario_lags=stacked([lags for _, lags in futures]),
        pairs=NO_PAIR_DATA,
        origin=origin_of(
            group, names, partitions, empty_topics, dropped, claims.lost_claims, facts_of(facts, assignor)
        ),
    )


def _by_name(members: Any, lags: LagsByTopic) -> Mapping[str, Iterable[str]]:
    """Return the topics of each member; if only names are given, each member reads everything."""
    if isinstance(members, Mapping):
        return members
    if isinstance(members, str | bytes) or not isinstance(members, Iterable):
        raise InvalidProblemError(
            f"members must be a mapping of member to its topics, or a list of names; got {kind(members)}"
        )
    check_mapping(lags, "lags", "topic to lags")
    by_name: dict[str, Iterable[str]] = {}
    for name in members:
        if check_name(name, "a member") in by_name:
            raise InvalidProblemError(f"members: {name!r} is listed twice")
        by_name[name] = tuple(lags)
    return by_name


def _owner(name: Any) -> str:
    """Return the name of an owner, which need not be in the group."""
    if not isinstance(name, str):
        raise InvalidProblemError(f"owned: {shown(name)} is not a member's name")
    return name


def _scenarios(scenarios: Any) -> Iterable[Any]:
    if isinstance(scenarios, str | bytes | Mapping) or not isinstance(scenarios, Iterable):
        raise InvalidProblemError(f"scenarios must be a list of (weight, lags by topic); got {kind(scenarios)}")
    return scenarios


def _scenario(number: int, partitions: Partitions, entry: Any) -> tuple[Fraction, Ints]:
    """Return weight and lags of a scenario, which must have exactly the partitions of `topics`."""
    place = f"scenario {number}"
    if not isinstance(entry, tuple | list) or len(entry) != 2 or not isinstance(entry[1], Mapping):
        raise InvalidProblemError(f"{place}: must be a weight and the lags of its topics; got {kind(entry)}")
    try:
        future = Partitions(entry[1])
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{place}: {error}") from error
    missing = partitions.first_not_in(future)
    more = future.first_not_in(partitions)
    if missing is not None or more is not None:
        topic, partition = missing or more  # type: ignore[misc]
        problem = "it has no lag of" if missing is not None else "there is no"
        raise InvalidProblemError(
            f"{place}: {problem} {topic}-{partition}; a scenario needs exactly the partitions in topics"
        )
    return parse_weight(place, entry[0]), future.lags


def origin_of(
    group: str,
    names: Sequence[str],
    partitions: Partitions,
    empty_topics: Mapping[str, tuple[str, ...]],
    dropped: Counter[str],
    lost_claims: Index,
    facts: Facts,
) -> Origin:
    """Return what came in with a group: its facts, and warnings about dropped input, empty topics and assumptions."""
    facts = completed(facts, group, partitions.topics, names)
    return Origin(empty_topics, (*_warnings(partitions, dropped), *facts.notes()), lost_claims, facts)


def _warnings(partitions: Partitions, dropped: Counter[str]) -> tuple[str, ...]:
    warnings = [f"{count} {what}" for what, count in sorted(dropped.items()) if count]
    if empty := len(partitions.empty):
        warnings.append("1 topic without partitions" if empty == 1 else f"{empty} topics without partitions")
    return tuple(warnings)


def subscriptions(
    partitions: Partitions, names: tuple[str, ...], members: Mapping[str, Iterable[str]], dropped: Counter[str]
) -> tuple[Bools, dict[str, tuple[str, ...]]]:
    """Return the subscriptions as a mask (T, M), and the subscribers of each topic without partitions."""
    topics = (*partitions.topics, *partitions.empty)
    index = {topic: t for t, topic in enumerate(topics)}
    subscribed = np.zeros((len(topics), len(names)), dtype=bool)
    for m, name in enumerate(names):
        entry = members[name]
        if entry is partitions.topics:
            subscribed[: len(partitions.topics), m] = True
            continue
        if isinstance(entry, str | bytes) or not isinstance(entry, Iterable):
            raise InvalidProblemError(f"member {name!r}: its topics must be a list of names; got {kind(entry)}")
        known = [index.get(_subscribed(name, topic)) for topic in entry]
        subscribed[[t for t in known if t is not None], m] = True
        dropped[_UNKNOWN_SUBSCRIPTION] += known.count(None)
    full = len(partitions.topics)
    empty_topics = {
        topic: tuple(names[m] for m in np.flatnonzero(row))
        for topic, row in zip(partitions.empty, subscribed[full:], strict=True)
    }
    return subscribed[:full].copy(), empty_topics


def _subscribed(member: str, topic: Any) -> str:
    """Return the name of a topic to which a member subscribes; the topic need not exist."""
    if not isinstance(topic, str):
        raise InvalidProblemError(f"member {member!r}: its topics must be names; got {shown(topic)}")
    return topic


def _pins(
    pins: Iterable[tuple[str, int, str]],
    partitions: Partitions,
    names: tuple[str, ...],
    subscribed: Bools,
    caps: NDArray[np.int64],
) -> Index:
    members = {name: m for m, name in enumerate(names)}
    pinned = np.full(len(partitions), NOBODY, dtype=np.int32)
    for topic, partition, member in parse_entries(pins, 3, "pins"):
        p, m = partitions.find(topic, partition), members.get(member) if isinstance(member, str) else None
        place = f"pin of {topic}-{partition} to {member!r}"
        if p is None:
            raise InvalidProblemError(f"{place}: there is no such partition")
        if m is None:
            raise InvalidProblemError(f"{place}: there is no such member")
        if not subscribed[partitions.topic_of[p], m]:
            raise InvalidProblemError(f"{place}: {member!r} does not subscribe to {topic!r}")
        if pinned[p] not in (NOBODY, m):
            raise InvalidProblemError(f"{place}: it is already pinned to {names[pinned[p]]!r}; keep one of the two")
        pinned[p] = m
    counts = np.bincount(pinned[pinned != NOBODY], minlength=len(names))
    for m in np.flatnonzero(counts > caps).tolist():
        raise InvalidProblemError(
            f"member {names[m]!r}: {counts[m]} partitions are pinned to it, but max_partitions is {caps[m]}"
        )
    return pinned


class _Claims:
    """Resolution of claims to partitions: the higher generation wins; a tie leaves the partition without an owner.

    Attributes
    ----------
    owner : int32 array (P,)
        Member whose claim is accepted, or `NOBODY`.
    """

    def __init__(
        self,
        partitions: Partitions,
        names: tuple[str, ...],
        subscribed: Bools,
        generations: tuple[int | None, ...],
        dropped: Counter[str],
    ) -> None:
        self.owner: Index = np.full(len(partitions), NOBODY, dtype=np.int32)
        self._partitions, self._subscribed, self._generations = partitions, subscribed, generations
        self._members = {name: m for m, name in enumerate(names)}
        self._dropped = dropped
        self._newest: dict[int, int] = {}  # highest generation claiming each partition
        self._lost: list[tuple[int, int]] = []

    def take(self, member: str, owned: Any) -> None:
        """Add all claims of a member."""
        entries = set(parse_entries(owned, 2, f"member {member!r}: owned"))
        m = self._members.get(member)
        if m is None:
            self._dropped[UNKNOWN_MEMBER] += len(entries)
            return
        for topic, partition in entries:
            p = self._partitions.find(topic, partition)
            if p is None:
                self._dropped[_UNKNOWN_PARTITION] += 1
            elif not self._subscribed[self._partitions.topic_of[p], m]:
                self._lose(p, m, UNSUBSCRIBED)
            else:
                self._claim(p, m)

    @property
    def lost_claims(self) -> Index:
        """Dropped claims as (partition, member), shape (N, 2); the member may nevertheless hold the partition."""
        return np.array(sorted(self._lost), dtype=np.int32).reshape(-1, 2)

    def _claim(self, p: int, m: int) -> None:
        generation = self._generations[m]
        age = -1 if generation is None else generation
        if p not in self._newest:
            self.owner[p], self._newest[p] = m, age
        elif age < self._newest[p]:
            self._lose(p, m, _OUTDATED)
        elif age > self._newest[p]:
            self._lose(p, int(self.owner[p]), _OUTDATED)
            self.owner[p], self._newest[p] = m, age
        else:
            self._lose(p, m, _TIED)
            if self.owner[p] != NOBODY:
                self._lost.append((p, int(self.owner[p])))
            self.owner[p] = NOBODY

    def _lose(self, p: int, m: int, why: str) -> None:
        self._dropped[why] += 1
        if m != NOBODY:
            self._lost.append((p, m))
