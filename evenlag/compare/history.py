"""The recorded history of one group: snapshots in order of time, and the changes between two of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from evenlag.compare.log_ends import LogEnds
from evenlag.errors import InvalidProblemError
from evenlag.model.lag import MAX_LAG
from evenlag.model.problem import NOBODY, Bools, Index, Ints, Problem
from evenlag.model.rates import SECOND, Growth, Offsets, growth
from evenlag.model.values import exact, shown

Messages = NDArray[np.int64]
BACKLOG = "backlog"  # source of a capacity that members with a backlog show
GIVEN = "given"  # source of a capacity that the user gives


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A group at one time.

    Attributes
    ----------
    ts : str
        The time, as written in the record.
    micros : int
        The time in microseconds since the epoch.
    problem : Problem
        Partitions and members, with recorded lags and owners.
    offsets : list of Offsets (P,)
        Offsets of each partition; their `micros` are earlier than the snapshot's if it lacks the partition's row.
    log_starts : int64 array (P,)
        First offset that each log still holds; 0 if unknown.
    log_ends : LogEnds or None
        Log ends at times since the snapshot before, at which nothing else is known of the group.
    """

    ts: str
    micros: int
    problem: Problem
    offsets: Sequence[Offsets]
    log_starts: Messages
    log_ends: LogEnds | None = None

    def __repr__(self) -> str:
        return f"<Snapshot of {self.ts}: {self.problem!r}>"


class Interval:
    """Changes to the partitions of a snapshot until the next one, independent of their readers.

    Attributes
    ----------
    before, after : Snapshot
    micros : int
        Microseconds between them.
    same : bool
        True if partitions, members and subscriptions stay the same.
    produced : int64 array (P,)
        Messages that arrived; 0 for restated partitions.
    consumed : list of int or None (P,)
        Messages that the group read, as recorded; None if its commits do not show it.
    restated : bool array (P,)
        Partitions whose lag at the end is the recorded one under every strategy, because producing and reading cannot
        explain it: a log end offset is unknown or went back (the topic was recreated), or a commit was reset or
        vanished.
    recorded : int64 array (P,)
        Recorded lag at the end; for partitions that are gone, the lag of `before`.
    room : int64 array (P,)
        Messages that the log holds at the end. No lag is larger, because retention deleted older messages.
    grown : list of Growth or None (P of `after`,)
        Growth of each partition's offsets since they were last seen; None if unknown.
    source : int64 array (P of `after`,)
        Index in `before` of each partition of `after`; `NOBODY` for new ones.
    target : int32 array (M of `before`,)
        Index in `after` of each member of `before`; `NOBODY` for those that left.
    """

    def __init__(self, before: Snapshot, after: Snapshot) -> None:
        self.before, self.after = before, after
        self.micros = after.micros - before.micros
        self.same = before.problem.same_structure(after.problem)
        size = len(before.problem.lags)
        self.source, self.target = self._renamed()
        here = np.flatnonzero(self.source != NOBODY)
        self.produced = np.zeros(size, dtype=np.int64)
        self.consumed: list[int | None] = [None] * size
        self.restated = np.zeros(size, dtype=bool)
        self.recorded = before.problem.lags.astype(np.int64)
        self.recorded[self.source[here]] = after.problem.lags[here]
        self.room = np.full(size, MAX_LAG, dtype=np.int64)
        self.grown: list[Growth | None] = [None] * len(after.problem.lags)
        for there, p in zip(here.tolist(), self.source[here].tolist(), strict=True):
            then, now = before.offsets[p], after.offsets[there]
            grown = growth(then, now)
            self.grown[there] = grown if grown.micros > 0 else None
            if grown.produced is None or _lost(then.current_offset, now.current_offset):
                self.restated[p] = True
                continue
            self.produced[p] = min(grown.produced, MAX_LAG - 1)
            self.consumed[p] = grown.consumed if grown.micros == self.micros else None
            self.room[p] = min((now.log_end_offset or 0) - int(after.log_starts[there]), MAX_LAG)

    def _renamed(self) -> tuple[Messages, Index]:
        before, after = self.before.problem, self.after.problem
        if self.same:
            return np.arange(len(before.lags)), np.arange(len(before.members), dtype=np.int32)
        partitions = {name: p for p, name in enumerate(before.partitions)}
        members = {name: m for m, name in enumerate(after.members)}
        source = np.array([partitions.get(name, NOBODY) for name in after.partitions], dtype=np.int64)
        return source, np.array([members.get(name, NOBODY) for name in before.members], dtype=np.int32)

    @cached_property
    def steady(self) -> Bools:
        """Mask of partitions that have the same recorded owner at both ends; shape (P,)."""
        before, after = self.before.problem, self.after.problem
        stays = np.zeros(len(before.lags), dtype=bool)
        here = np.flatnonzero(self.source != NOBODY)
        then, now = before.owner[self.source[here]], after.owner[here]
        stays[self.source[here]] = (then != NOBODY) & (self.target[then] == now) & (now != NOBODY)
        return stays

    @cached_property
    def observed(self) -> list[tuple[Fraction, bool]]:
        """For each member seen reading: messages per second and weight, and True if it had a backlog throughout."""
        weights = self.before.problem.weights
        return [(rate / weights[m], backlog) for m, (rate, backlog) in self.readers.items()]

    @cached_property
    def readers(self) -> dict[int, tuple[Fraction, bool]]:
        """Messages per second of each member of `before` seen reading, and True if it had a backlog throughout."""
        problem = self.before.problem
        waiting: dict[int, int] = {}
        read: dict[int, int | None] = {}
        for p, m in enumerate(problem.owner.tolist()):
            if m == NOBODY:
                continue
            waiting[m] = waiting.get(m, 0) + int(problem.lags[p])
            so_far, here = read.get(m, 0), self.consumed[p] if self.steady[p] else None
            read[m] = None if so_far is None or here is None else so_far + here
        return {
            m: (Fraction(consumed * SECOND, self.micros), consumed < waiting[m])
            for m, consumed in read.items()
            if consumed
        }

    def carry(self, lags: Messages, member_of: Index) -> tuple[Messages, Index]:
        """Return lags and an assignment for the partitions and members of `after`.

        A new partition has its recorded lag and no owner. A member that left or unsubscribed keeps nothing.
        """
        if self.same:
            return lags, member_of
        problem = self.after.problem
        new_lags = np.where(self.source != NOBODY, self.renumbered(lags, 0), problem.lags).astype(np.int64)
        held = np.append(self.target, np.int32(NOBODY))[member_of]  # NOBODY is -1, the last place
        owner = self.renumbered(held, NOBODY).astype(np.int32)
        lost = np.flatnonzero(owner != NOBODY)
        owner[lost[~problem.subscribed[problem.topic_of[lost], owner[lost]]]] = NOBODY
        return new_lags, owner

    def renumbered(self, values: Ints, new: int) -> Ints:
        """Return one value per partition of `after`, from one per partition of `before`; `new` for new partitions."""
        return np.append(values, values.dtype.type(new))[self.source]  # NOBODY is -1, the last place


def intervals(history: Sequence[Snapshot]) -> Iterator[Interval]:
    """Check a history and return its intervals.

    Raises
    ------
    InvalidProblemError
        The history is not a list of snapshots, has fewer than two, its times do not increase, or it mixes groups.
    """
    if not isinstance(history, Sequence) or not all(isinstance(each, Snapshot) for each in history):
        raise InvalidProblemError("a history must be a list of Snapshots of one group, in order of time")
    if len(history) < 2:
        past = any(each.log_ends is not None for each in history)
        why = "; log ends of the past tell what came in, but neither members nor what they read" if past else ""
        raise InvalidProblemError(
            f"a replay needs at least two snapshots of the group; there {_are(len(history))}{why}"
        )
    for before, after in pairwise(history):
        if before.problem.group != after.problem.group:
            raise InvalidProblemError(
                f"a history must be of one group, but this has {before.problem.group!r} and {after.problem.group!r}"
            )
        if after.micros <= before.micros:
            raise InvalidProblemError(
                f"snapshot_ts must increase, but {after.ts} follows {before.ts}: remove one of the two"
            )
    return map(Interval, history[:-1], history[1:])


def known_intervals(history: Sequence[Snapshot]) -> list[Interval]:
    """Return the intervals of a history; none if it has fewer than two snapshots or cannot be used."""
    try:
        return list(intervals(history)) if len(history) > 1 else []
    except InvalidProblemError:  # two snapshots with the same time
        return []


@dataclass(frozen=True)
class Capacity:
    """Rate at which members read.

    Attributes
    ----------
    rate : Fraction
        Messages per second of a member of weight 1; other members read in proportion to weight.
    source : str
        "given", "backlog" or "highest"; see `estimate_capacity`.
    cases : int
        Number of observations behind the rate.
    place : str
        Where the past lies whose commits show it, minute by minute; empty if it is given or from snapshots.
    """

    rate: Fraction
    source: str
    cases: int = 0
    place: str = ""

    @classmethod
    def of_user(cls, rate: float | Fraction | Capacity | None) -> Capacity | None:
        """Return the capacity given by the user, as a rate or as measured; None if there is none.

        Raises
        ------
        InvalidProblemError
            The rate is not a number of messages per second between 0 and 2^63.
        """
        if rate is None or isinstance(rate, Capacity):
            return rate
        number = exact(rate)
        if number is None or not 0 < number < 2**63:
            raise InvalidProblemError(f"capacity must be messages per second > 0 and < 2^63, not {shown(rate)}")
        return cls(number, GIVEN)


def telling_more(measured: Capacity | None, estimated: Capacity | None) -> Capacity | None:
    """Return the better-founded capacity: one measured under a backlog, else the first known one."""
    known = [each for each in (measured, estimated) if each is not None]
    return next((each for each in known if each.source == BACKLOG), known[0] if known else None)


def known_capacity(steps: Sequence[Interval], measured: Capacity | None = None) -> Capacity:
    """Return the record's capacity, or the measured one if that is better founded.

    Raises
    ------
    InvalidProblemError
        Neither is known.
    """
    try:
        estimated = estimate_capacity(steps)
    except InvalidProblemError:
        if measured is None:
            raise
        return measured
    return telling_more(measured, estimated) or estimated


def estimate_capacity(steps: Sequence[Interval]) -> Capacity:
    """Estimate from the record the messages per second that a member of weight 1 can read.

    A member is observed over an interval in which it kept all its partitions and its commits show what it read. If it
    read something, but less than was waiting at the beginning, it never ran dry: the median of these rates is the
    capacity ("backlog"). If no member ever had such a backlog, the capacity is the highest observed rate ("highest"),
    because nothing more can be known.

    Raises
    ------
    InvalidProblemError
        No member was seen reading.
    """
    return capacity_of(each for step in steps for each in step.observed)


def capacity_of(cases: Iterable[tuple[Fraction, bool]]) -> Capacity:
    """Estimate the capacity from cases as in `Interval.observed`; see `estimate_capacity`."""
    observed = list(cases)
    busy = [rate for rate, backlog in observed if backlog]
    if busy:
        return Capacity(Fraction(median(busy)), BACKLOG, len(busy))
    if observed:
        return Capacity(max(rate for rate, _ in observed), "highest", len(observed))
    raise InvalidProblemError(
        "this record shows no member reading, so the rate at which members read is unknown: give capacity (--capacity)"
    )


def _lost(before: int | None, after: int | None) -> bool:
    return before is not None and (after is None or after < before)


def _are(count: int) -> str:
    return "is none" if count == 0 else "is one" if count == 1 else f"are {count}"
