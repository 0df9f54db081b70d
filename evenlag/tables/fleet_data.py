"""Pair data and a drain time, given once for all groups of a fleet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypedDict

from evenlag.compare.catch_up import Pace
from evenlag.compare.history import Capacity, telling_more
from evenlag.errors import InvalidProblemError
from evenlag.model.drain_time import DrainTime
from evenlag.model.literals import FetchFromWord
from evenlag.model.pair_data import FetchFrom
from evenlag.model.parse_pairs import parse_amount
from evenlag.model.problem import Problem
from evenlag.model.values import check_mapping, kind, parse_partition_number, positive, shown
from evenlag.tables.amounts import COLUMNS, MOVE_SIZES, TRAFFIC, Amounts, read_amounts
from evenlag.tables.measured import NOTHING_MEASURED, Measured
from evenlag.tables.past import Past

Amount = int | Mapping[int, int]  # one number for all partitions of a topic, or a number by partition


class MoveKeywords(TypedDict, total=False):
    """Parameters on moves that calls for whole fleets take in addition to their tables."""

    move_sizes: Amounts | None
    together: Sequence[Sequence[str]]


class DataKeywords(MoveKeywords, total=False):
    """Parameters on moves and rack crossings."""

    traffic: Amounts | None
    fetch_from: FetchFrom | FetchFromWord | None
    drain_seconds: float | Fraction | None
    capacity: float | Fraction | None
    past: Measured | None


@dataclass(frozen=True)
class Draining:
    """The drain time of a fleet's groups, and the capacity of their members.

    Attributes
    ----------
    seconds : Fraction
    capacity : Capacity or None
        Capacity of a member of weight 1; None to estimate it from the snapshots of each group.
    """

    seconds: Fraction
    capacity: Capacity | None

    @classmethod
    def of(cls, drain_seconds: float | Fraction | None, capacity: float | Fraction | None = None) -> Draining | None:
        """Check the parameters of a call; return None without a time.

        Raises
        ------
        InvalidProblemError
            The time or the capacity is not a number > 0, or there is a capacity without a time.
        """
        given = Capacity.of_user(capacity)
        if drain_seconds is None:
            if given is not None:
                raise InvalidProblemError("capacity needs drain_seconds: give both, or neither")
            return None
        return cls(positive("drain_seconds", drain_seconds, "a number of seconds > 0"), given)

    def ceiling(
        self, problem: Problem, past: Past | None, snapshot_ts: object, measured: Capacity | None = None
    ) -> tuple[DrainTime, list[str]]:
        """Return the ceiling that the time sets for members of a group, and notes.

        `measured` is the capacity that the group's commits show.

        Raises
        ------
        InvalidProblemError
            The capacity is neither given nor can it be estimated from snapshots.
        """
        pace = Pace(None, self.capacity or measured)
        if self.capacity is None and past is not None:
            estimated = past.pace(snapshot_ts)
            pace = replace(estimated, capacity=telling_more(measured, estimated.capacity))
        ceiling = pace.ceiling(problem, self.seconds, "drain_seconds")
        if ceiling is None or pace.capacity is None:
            raise InvalidProblemError(
                "the capacity of members is unknown, which a drain time needs: give capacity, in messages per second, "
                "or several snapshots of the group"
            )
        if self.capacity is not None:
            return ceiling, []
        return ceiling, [f"capacity estimated from {pace.capacity.place or 'the snapshots'} ({pace.capacity.source})"]


@dataclass(frozen=True)
class FleetData:
    """Pair data for all groups of a fleet, which overrides that in the tables.

    Attributes
    ----------
    amounts : mapping of "move_sizes" and "traffic" to mapping of topic to amount
    together : sequence of sequences of topics
        Topics whose partitions of the same number go to the same member, in groups that have several of these topics.
    fetch_from : FetchFrom or None
        Replicas that members read; None for all.
    named : frozenset of str
        Topics that at least one group should have: those of `together`, and those with one number for all partitions.
    draining : Draining or None
        Time in which each group must be able to read its lag.
    past : Measured
        Pauses and capacities that the past of the groups shows.
    """

    amounts: Mapping[str, Mapping[str, Amount]] = field(default_factory=dict)
    together: Sequence[Sequence[str]] = ()
    fetch_from: FetchFrom | None = None
    named: frozenset[str] = frozenset()
    draining: Draining | None = None
    past: Measured = NOTHING_MEASURED

    @classmethod
    def of(
        cls,
        move_sizes: Amounts | None = None,
        traffic: Amounts | None = None,
        together: Sequence[Sequence[str]] = (),
        fetch_from: FetchFrom | FetchFromWord | None = None,
        drain_seconds: float | Fraction | None = None,
        capacity: float | Fraction | None = None,
        past: Measured | None = None,
    ) -> FleetData:
        """Check the parameters, and read the files.

        Parameters
        ----------
        move_sizes, traffic : path or mapping of topic to whole number, optional
            A file has a number for each partition (`evenlag.tables.amounts.read_amounts`); partitions that it lacks
            count as 1. A number for a topic is that of each of its partitions.
        fetch_from : {"followers", "leader"}, optional
            As in `Problem.from_lags`.
        drain_seconds : float or Fraction, optional
            Drain time in seconds.
        capacity : float or Fraction, optional
            Messages per second of a member of weight 1; default: that of the past, or estimated from the
            snapshots of each group.
        past : Measured, optional
            As `evenlag.read_past` returns.

        Raises
        ------
        SourceError
            A file cannot be read, or lacks a column.
        InvalidProblemError
            A value is not a valid number, or `together` is not a list of lists of two or more topics, each named once.
        """
        given = {MOVE_SIZES: move_sizes, TRAFFIC: traffic}
        amounts = {name: _amounts(name, each) for name, each in given.items() if each is not None}
        units = _units(together)
        plain = {topic for name in amounts if isinstance(given[name], Mapping) for topic in amounts[name]}
        return cls(
            amounts, units, fetch_from and FetchFrom.of(fetch_from, "fetch_from"), frozenset(plain.union(*units)),
            Draining.of(drain_seconds, capacity),
            past or NOTHING_MEASURED,
        )  # fmt: skip

    def __bool__(self) -> bool:
        """Return whether there is any data."""
        return bool(self.amounts or self.together or self.fetch_from == FetchFrom.LEADER)

    @property
    def by_record(self) -> bool:
        """True if the capacity of members is estimated from the snapshots of each group."""
        return self.draining is not None and self.draining.capacity is None

    def added(self, problem: Problem) -> tuple[Problem, list[str]]:
        """Return a group with the data that applies to it, and notes.

        Raises
        ------
        InvalidProblemError
            Topics of the group cannot go together.
        """
        if not self:
            return problem, []
        data: dict[str, Any] = {}
        notes = []
        for name, by_topic in self.amounts.items():
            data[name] = _of_group(problem, by_topic)
            lacking = len(problem.partitions) - sum(map(len, data[name].values()))
            if lacking and data[name]:
                notes.append(f"{lacking} partitions without a {COLUMNS[name]}: it is taken as 1")
        here = {*problem.topics, *problem.empty_topics}
        units = []
        for topics in self.together:
            present = [topic for topic in topics if topic in here]
            if len(present) > 1:
                units.append(present)
            if present and len(present) < len(topics):
                lacked = ", ".join(topic for topic in topics if topic not in here)
                notes.append(f"together: the group has no {lacked} to go with {', '.join(present)}")
        data = {name: by_topic for name, by_topic in data.items() if by_topic}
        return problem.with_pair_data(**data, together=units or None, fetch_from=self.fetch_from), notes


NO_FLEET_DATA = FleetData()


def _amounts(name: str, given: Amounts) -> Mapping[str, Amount]:
    """Return the checked amounts by topic; read them first if they are in a file."""
    if isinstance(given, Path):
        try:
            found = read_amounts(given, name)
            return {topic: _by_number(topic, by_partition) for topic, by_partition in found.items()}
        except InvalidProblemError as error:
            raise InvalidProblemError(f"{given}: {error}") from error
    check_mapping(given, name, "topic to a whole number")
    return {topic: parse_amount(f"{name}: {topic}", each) for topic, each in given.items()}


def _by_number(topic: str, by_partition: Mapping[Any, Any]) -> dict[int, int]:
    return {parse_partition_number(topic, p): parse_amount(f"{topic}-{p}", each) for p, each in by_partition.items()}


def _units(given: Any) -> tuple[tuple[str, ...], ...]:
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidProblemError(f"together must be a list of lists of topics; got {kind(given)}")
    units, seen = [], set[str]()
    for topics in given:
        names = () if isinstance(topics, str | bytes) or not isinstance(topics, Iterable) else tuple(topics)
        if len(names) < 2 or not all(isinstance(name, str) for name in names):
            raise InvalidProblemError(f"together: each entry must be a list of two or more topics; got {shown(topics)}")
        for topic in names:
            if topic in seen:
                raise InvalidProblemError(f"together: topic {topic!r} is named twice; name it once")
            seen.add(topic)
        units.append(names)
    return tuple(units)


def _of_group(problem: Problem, by_topic: Mapping[str, Amount]) -> dict[str, dict[int, int]]:
    """Return the amounts of the group's partitions, without those that have none."""
    found: dict[str, dict[int, int]] = {}
    for topic, partition in problem.partitions:
        amount = by_topic.get(topic)
        if isinstance(amount, Mapping):
            amount = amount.get(partition)
        if amount is not None:
            found.setdefault(topic, {})[partition] = amount
    return found
