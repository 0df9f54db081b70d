"""Conversion of plain values to `PairData` and back to problem-file fields; all its input rules are here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from evenlag.errors import InvalidProblemError
from evenlag.model.arrays import Ints, summable
from evenlag.model.literals import CostWord, FetchFromWord, ObjectiveWord, listed
from evenlag.model.names import did_you_mean, unknown_keyword
from evenlag.model.pair_data import NO_PAIR_DATA, FetchFrom, PairData, Racks, racks_of_replicas
from evenlag.model.pair_table import PairTable
from evenlag.model.values import (
    LARGEST_AMOUNT,
    check_fields,
    check_mapping,
    check_name,
    is_whole,
    kind,
    parse_entries,
    parse_partition_number,
    shown,
)

if TYPE_CHECKING:
    from evenlag.model.problem import Problem

T = TypeVar("T")

# Values for partitions 0, 1, …, or by partition number.
ByTopic = Mapping[str, Sequence[T] | Mapping[int, T]]
AmountsByTopic = Mapping[str, Sequence[int] | NDArray[np.int64] | Mapping[int, int]]
PartitionRacks = ByTopic[Sequence[str] | None]
# By member, for all partitions; or by topic, partition and member.
OwnCosts = Mapping[str, Mapping[str | tuple[str, int, str], int]]

RESERVED = ("moves", *listed(CostWord), *listed(ObjectiveWord))  # names of evenlag's own costs and criteria
_COST_FIELDS = ("members", "pairs")


class PairArguments(TypedDict, total=False):
    """Pair data as parameters of `Problem.from_lags`, by name."""

    racks: Mapping[str, str | None] | None
    partition_racks: PartitionRacks | None
    move_sizes: AmountsByTopic | None
    traffic: AmountsByTopic | None
    together: Iterable[Iterable[str]] | None
    costs: OwnCosts | None
    fetch_from: FetchFrom | FetchFromWord | None


_PAIR_ARGUMENTS = tuple(PairArguments.__annotations__)


# ---- plain values ----------------------------------------------------------------------------------------------


def parse_pair_data(problem: Problem, given: PairArguments) -> PairData:
    """Validate the pair data of a problem's partitions and members; see `Problem.from_lags`.

    Data that is missing or None is taken from the problem.

    Raises
    ------
    InvalidProblemError
        The message names the topic, partition or member.
    """
    present = problem.pairs
    for word in given:
        if word not in _PAIR_ARGUMENTS:
            raise unknown_keyword("with_pair_data", word, _PAIR_ARGUMENTS)
    new: Mapping[str, Any] = {name: value for name, value in given.items() if value is not None}
    if not new:
        return present
    read: dict[str, Callable[[Problem, Any], Any]] = {
        "racks": _racks, "partition_racks": _partition_racks, "together": _together, "costs": _costs,
        "move_sizes": lambda problem, sizes: _amounts(problem, sizes, "move_sizes"),
        "traffic": lambda problem, amounts: _amounts(problem, amounts, "traffic"),
        "fetch_from": lambda _, word: FetchFrom.of(word, "fetch_from"),
    }  # fmt: skip
    fields = {
        name: parse(problem, new[name]) if name in new else getattr(present, name) for name, parse in read.items()
    }
    pairs = PairData(**fields)
    return NO_PAIR_DATA if pairs.same_as(NO_PAIR_DATA) else pairs


def _racks(problem: Problem, racks: Any) -> tuple[str | None, ...]:
    check_mapping(racks, "racks", "member to rack")
    members = set(problem.members)
    for name in racks:
        if name not in members:
            raise InvalidProblemError(f"racks: {shown(name)} is not a member of the group")
    return known(tuple(_rack(name, racks.get(name)) for name in problem.members))


def _rack(member: str, rack: Any) -> str | None:
    return None if rack is None else check_name(rack, f"member {member!r}: its rack")


def known(racks: tuple[T | None, ...]) -> tuple[T | None, ...]:
    """Return the racks; () if all are unknown."""
    return racks if any(rack is not None for rack in racks) else ()


def _partition_racks(problem: Problem, given: Any) -> tuple[Racks | None, ...]:
    shared: dict[Racks, Racks] = {}  # many partitions have equal racks
    racks: list[Racks | None] = [None] * len(problem.partition_ids)
    for p, place, value in _by_partition(problem, given, "partition_racks"):
        if value is None:
            continue
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            raise InvalidProblemError(
                f"{place}: must be a list of the racks of its replicas, the leader's first, or null; got {kind(value)}"
            )
        names = racks_of_replicas([rack if rack == "" else check_name(rack, f"{place}: a rack") for rack in value])
        racks[p] = names and shared.setdefault(names, names)
    return known(tuple(racks))


def _amounts(problem: Problem, given: Any, field: str) -> Ints:
    amounts = np.ones(len(problem.partition_ids), dtype=np.int64)
    for p, place, value in _by_partition(problem, given, field):
        amounts[p] = parse_amount(place, value)
    return summable(amounts)


def parse_amount(place: str, value: Any) -> int:
    """Return a size, an amount of traffic or a cost: an integer from 0 up to 2^53 - 1."""
    if is_whole(value) or (isinstance(value, float | np.floating) and value.is_integer()):
        number = int(value)
    else:
        hint = "; scale them until all are whole" if isinstance(value, float | np.floating) else ""
        raise InvalidProblemError(f"{place}: must be a whole number >= 0, not {shown(value)}{hint}")
    if not 0 <= number <= LARGEST_AMOUNT:
        hint = "; choose a larger unit" if number > 0 else ""
        raise InvalidProblemError(f"{place}: must lie between 0 and 2^53 - 1, not {shown(number)}{hint}")
    return number


def _by_partition(problem: Problem, given: Any, field: str) -> Iterable[tuple[int, str, Any]]:
    """Yield the index, the name for errors and the value of each partition in a field."""
    check_mapping(given, field, "topic to the values of its partitions")
    numbers = {topic: t for t, topic in enumerate(problem.topics)}
    for topic, values in given.items():
        place = f"{field}: topic {shown(topic)}"
        if topic not in numbers and topic not in problem.empty_topics:
            raise InvalidProblemError(f"{field}: unknown topic {shown(topic)}{did_you_mean(topic, numbers)}")
        here = problem.topic_slice(numbers[topic]) if topic in numbers else slice(0, 0)
        ids = problem.partition_ids[here].tolist()
        index = dict(zip(ids, range(here.start, here.stop), strict=True))
        for partition, value in _numbered(topic, place, values, ids):
            if partition not in index:
                raise InvalidProblemError(f"{field}: there is no partition {topic}-{partition}")
            yield index[partition], f"{field} of {topic}-{partition}", value


def _numbered(topic: str, place: str, values: Any, ids: list[int]) -> Iterable[tuple[int, Any]]:
    """Return partition numbers and values of a topic; a list must have one value per partition, from 0."""
    if isinstance(values, Mapping):
        numbered = [(parse_partition_number(topic, key), value) for key, value in values.items()]
        if len(dict(numbered)) < len(numbered):
            raise InvalidProblemError(f"{place}: a partition is given twice")
        return numbered
    listed = values.ndim > 0 if isinstance(values, np.ndarray) else isinstance(values, Sequence)
    if not listed or isinstance(values, str | bytes):
        raise InvalidProblemError(f"{place}: must be a list or an object of partitions; got {kind(values)}")
    if ids != list(range(len(values))):
        raise InvalidProblemError(
            f"{place}: the list has {len(values)} values for partitions from 0, but the topic has {len(ids)} partitions"
            "; give one for each, or name the partitions: {partition: value}"
        )
    return enumerate(values)


def _together(problem: Problem, given: Any) -> tuple[tuple[str, ...], ...]:
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidProblemError(f"together must be a list of lists of topics; got {kind(given)}")
    seen: set[str] = set()
    return tuple(_unit(problem, topics, seen) for topics in given)


def _unit(problem: Problem, given: Any, seen: set[str]) -> tuple[str, ...]:
    """Return the topics of a unit: at least two, in no other unit, with equal partitions."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidProblemError(f"together: each entry must be a list of at least two topics; got {kind(given)}")
    topics = tuple(given)
    numbers = {topic: t for t, topic in enumerate(problem.topics)}
    for topic in topics:
        if not isinstance(topic, str) or (topic not in numbers and topic not in problem.empty_topics):
            raise InvalidProblemError(f"together: unknown topic {shown(topic)}{did_you_mean(topic, numbers)}")
        if topic in seen:
            raise InvalidProblemError(f"together: topic {topic!r} is named twice; name it once")
        seen.add(topic)
    if len(topics) < 2:
        raise InvalidProblemError(f"together: each entry must have at least two topics; got {shown(list(topics))}")
    ids = [_ids(problem, numbers.get(topic)) for topic in topics]
    for topic, others in zip(topics[1:], ids[1:], strict=True):
        _check_same(topics[0], ids[0], topic, others)
    return topics


def _ids(problem: Problem, topic: int | None) -> list[int]:
    return [] if topic is None else problem.partition_ids[problem.topic_slice(topic)].tolist()


def _check_same(first: str, ids: list[int], second: str, others: list[int]) -> None:
    place = f"together: {first!r} and {second!r} must have the same partitions"
    if len(ids) != len(others):
        raise InvalidProblemError(f"{place}; they have {len(ids)} and {len(others)}")
    if ids != others:
        alone = min(set(ids) ^ set(others))
        has, lacks = (first, second) if alone in ids else (second, first)
        raise InvalidProblemError(f"{place}; {has!r} has partition {alone} and {lacks!r} does not")


def _costs(problem: Problem, given: Any) -> dict[str, PairTable]:
    check_mapping(given, "costs", "name to a mapping of member, or of (topic, partition, member), to cost")
    costs = {}
    for name, values in given.items():
        check_name(name, "a pair cost")
        if name in RESERVED:
            raise InvalidProblemError(f"costs: {name!r} is one of evenlag's own costs; give yours another name")
        check_mapping(values, f"costs: {name!r}", "member, or of (topic, partition, member), to cost")
        costs[name] = _cost_matrix(problem, name, values)
    return costs


def _cost_matrix(problem: Problem, name: str, values: Mapping[Any, Any]) -> PairTable:
    """Return one cost as a table; a value for a pair overrides the member's value."""
    members = {member: m for m, member in enumerate(problem.members)}
    costs = np.zeros((len(problem.partition_ids), len(members)), dtype=np.int64)
    index = {partition: p for p, partition in enumerate(problem.partitions)} if any(map(_is_pair, values)) else {}
    pairs: list[tuple[int, int, int]] = []
    for key, value in values.items():
        member = key[-1] if _is_pair(key) and key else key
        if not isinstance(member, str) or member not in members:
            raise InvalidProblemError(f"costs: {name!r}: {shown(member)} is not a member of the group")
        if not _is_pair(key):
            costs[:, members[member]] = parse_amount(f"costs: {name!r}: member {member!r}", value)
            continue
        topic, partition, _ = parse_entries([key], 3, f"costs: {name!r}")[0]
        p = index.get((topic, partition))
        if p is None:
            raise InvalidProblemError(f"costs: {name!r}: there is no partition {topic}-{partition}")
        pairs.append((p, members[member], parse_amount(f"costs: {name!r}: {topic}-{partition} at {member!r}", value)))
    for p, m, cost in pairs:
        costs[p, m] = cost
    return PairTable.of_pairs(costs)


def _is_pair(key: object) -> bool:
    return isinstance(key, tuple)


# ---- the problem file ------------------------------------------------------------------------------------------

DOCUMENT_FIELDS = ("partition_racks", "move_sizes", "traffic", "together", "costs", "fetch_from")


def pair_arguments(document: Mapping[str, Any], members: Mapping[str, Mapping[str, Any]]) -> PairArguments:
    """Read the pair data of a problem document, without checking values."""
    racks = {name: entry["rack"] for name, entry in members.items() if entry.get("rack") is not None}
    costs = document.get("costs")
    if costs is not None:
        check_mapping(costs, "costs", "name to an object of members and pairs")
        costs = {name: _cost_entry(name, entry) for name, entry in costs.items()}
    return PairArguments(
        racks=racks or None,
        partition_racks=document.get("partition_racks"),
        move_sizes=document.get("move_sizes"),
        traffic=document.get("traffic"),
        together=document.get("together"),
        costs=costs,
        fetch_from=document.get("fetch_from"),
    )


def _cost_entry(name: str, entry: Any) -> dict[str | tuple[str, int, str], int]:
    place = f"costs: {name!r}"
    check_mapping(entry, place, "members and pairs")
    check_fields(entry, _COST_FIELDS, place)
    members, pairs = entry.get("members"), entry.get("pairs")
    costs: dict[Any, Any] = {}
    if members is not None:
        check_mapping(members, f"{place}: members", "member to cost")
        costs |= members
    if pairs is None:
        return costs
    if not isinstance(pairs, list):
        raise InvalidProblemError(f"{place}: pairs must be a list; got {kind(pairs)}")
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 4:
            raise InvalidProblemError(f"{place}: each pair must be [topic, partition, member, cost], not {shown(pair)}")
        topic, partition, member = parse_entries([pair[:3]], 3, place)[0]
        if not isinstance(member, str):
            raise InvalidProblemError(f"{place}: {shown(member)} is not a member of the group")
        if (topic, partition, member) in costs:
            raise InvalidProblemError(f"{place}: {topic}-{partition} at {member!r} is given twice; keep one")
        costs[topic, partition, member] = pair[3]
    return costs


def pair_fields(problem: Problem) -> dict[str, Any]:
    """Return the fields of a problem document for its pair data, except for the members' racks."""
    pairs = problem.pairs
    document: dict[str, Any] = {}
    if pairs.partition_racks:
        racks = by_topic(problem, [None if racks is None else list(racks) for racks in pairs.partition_racks])
        document["partition_racks"] = racks
    for name, amounts in (("move_sizes", pairs.move_sizes), ("traffic", pairs.traffic)):
        if amounts is not None:
            document[name] = by_topic(problem, [int(amount) for amount in amounts])
    if pairs.together:
        document["together"] = [list(topics) for topics in pairs.together]
    if pairs.costs:
        document["costs"] = {name: _cost_document(problem, costs) for name, costs in pairs.costs.items()}
    if pairs.fetch_from != FetchFrom.FOLLOWERS:
        document["fetch_from"] = str(pairs.fetch_from)
    return document


def by_topic(problem: Problem, values: Sequence[T]) -> dict[str, Any]:
    """Return values of all partitions in problem-document form: lists, or objects if partition numbers have gaps."""
    document: dict[str, Any] = {}
    for t, topic in enumerate(problem.topics):
        here = problem.topic_slice(t)
        ids = problem.partition_ids[here].tolist()
        dense = ids == list(range(len(ids)))
        listed = list(values[here])
        document[topic] = listed if dense else {str(i): value for i, value in zip(ids, listed, strict=True)}
    return document


def _cost_document(problem: Problem, costs: PairTable) -> dict[str, Any]:
    """Return one cost in document form: by member if it is the same for all partitions, else by nonzero pair."""
    members, pairs = {}, []
    for m, member in enumerate(problem.members):
        column = costs.at(np.arange(len(problem.lags)), m)
        if len(column) and (column == column[0]).all():
            if column[0]:
                members[member] = int(column[0])
            continue
        pairs += [[*problem.partitions[p], member, int(column[p])] for p in np.flatnonzero(column)]
    return {"members": members, "pairs": pairs}
