"""Every group of an input, one by one, each in its latest snapshot with earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenlag.compare.history import Snapshot
from evenlag.errors import InvalidProblemError
from evenlag.model.problem import Problem
from evenlag.model.rates import Offsets, time_micros
from evenlag.tables.columns import Row
from evenlag.tables.formats import Reading
from evenlag.tables.group import GroupRows
from evenlag.tables.one_group import OneGroup, all_groups
from evenlag.tables.past import RECORD, snapshots
from evenlag.tables.source_groups import SourceGroups

Choice = Callable[[Sequence[str]], Sequence[str]]
"""A function that returns which of the groups of an input to read."""


@dataclass(frozen=True, eq=False)
class GroupNow:
    """A group in its latest snapshot.

    Attributes
    ----------
    record : tuple of Snapshot
        The latest snapshot, and earlier ones if the input has them; in order of time.
    notes : tuple of str
        Assumptions about the input.
    """

    name: str
    record: tuple[Snapshot, ...]
    notes: tuple[str, ...] = ()

    def subscribing(self, topics: Sequence[str]) -> GroupNow:
        """Return the group with its members subscribed to whichever of the topics it has."""
        here = [topic for topic in topics if topic in self.problem.topics]
        record = [replace(each, problem=each.problem.subscribing(here)) for each in self.record]
        return replace(self, record=tuple(record)) if here else self

    @property
    def problem(self) -> Problem:
        """The group in its latest snapshot."""
        return self.record[-1].problem


Found = tuple[str, GroupNow | InvalidProblemError]
"""The name of a group, and the group, or the reason why its rows cannot be used."""


def every_group(
    source: str,
    offsets: Sequence[Reading],
    members: Sequence[Reading] | None,
    *,
    choice: Choice = lambda names: names,
    auto_offset_reset: str = "latest",
    ts: str,
    whole: bool = False,
) -> Iterator[Found]:
    """Yield every chosen group of some readings, sorted by name.

    Parameters
    ----------
    source : str
        Name of the input in errors.
    offsets, members : list of Reading
        `members` is None without a members table.
    choice : callable (list of str) -> list of str
        Gets the sorted names of all groups; returns those to read.
    auto_offset_reset : {"latest", "earliest"}
    ts : str
        Time of rows without one, ISO 8601.
    whole : bool
        Plan for the forecast of the whole record, as horizon `auto` does, and keep its last `RECORD` snapshots. Else
        plan for the lags of the latest snapshot; the previous snapshot gives the rates.

    Raises
    ------
    InvalidProblemError
        There is no group, or a row has no valid group, topic or partition.
    """
    groups = all_groups(source, offsets, members, auto_offset_reset)
    alone = len(groups.names) == 1
    for name in choice(groups.names):
        yield _found(groups, name, ts, alone=alone, whole=whole)


def of_rows(source: str, offsets: Sequence[Row], members: Sequence[Row], auto_offset_reset: str) -> Iterator[Found]:
    """Yield every group in rows of the snapshot tables of one time, sorted by name."""
    if offsets:
        tables = (
            Reading(offsets=list(enumerate(offsets, 1)), source=source, unit="row"),
            Reading(members=list(enumerate(members, 1)), source=source, unit="row"),
        )
        groups = SourceGroups(source, [tables[0]], [tables[1]], auto_offset_reset)
        for name in groups.names:
            yield _found(groups, name, str(offsets[0]["snapshot_ts"]))


def of_problem(problem: Problem, ts: str) -> Found:
    """Return the group of a problem file, which has lags but no offsets, at a time."""
    micros = time_micros(ts) or 0
    size = len(problem.lags)
    offsets = [Offsets(micros, None, None)] * size
    return problem.group, GroupNow(
        problem.group, (Snapshot(ts, micros, problem, offsets, np.zeros(size, dtype=np.int64)),)
    )


def _found(groups: SourceGroups, name: str, ts: str, *, alone: bool = False, whole: bool = False) -> Found:
    """Return a group, with the notes on the whole input if it is alone in it."""
    try:
        group = OneGroup(groups, name)
    except InvalidProblemError as error:
        return name, error
    return name, _latest(group, group.notes if alone else group.group_notes, ts, whole=whole)


def _latest(group: OneGroup, notes: Sequence[str], ts: str, *, whole: bool) -> GroupNow | InvalidProblemError:
    """Return a group in its latest snapshot, or the reason why its rows cannot be used."""
    try:
        rows, more = group.rows_at(group.times[-1])
        if time_micros(rows.snapshot_ts) is None:
            rows = replace(rows, snapshot_ts=ts)
        record = snapshots([rows])
    except InvalidProblemError as error:
        return error
    if len(group.times) > 1:
        record = _with_earlier(group, rows, RECORD if whole else 2) or record
    assumed: list[str] = []
    if whole and (len(group.times) > 1 or group.past_times):
        problem, assumed = group.foreseen(record[-1].problem, None)
        record[-1] = replace(record[-1], problem=problem)
    return GroupNow(group.name, tuple(record), (*notes, *more, *rows.notes, *assumed))


def _with_earlier(group: OneGroup, rows: GroupRows, most: int) -> list[Snapshot]:
    """Return up to `most` of the latest snapshots; none if an earlier one cannot be used, as rates are then unknown."""
    try:
        return snapshots([*(group.rows_at(ts)[0] for ts in group.times[-most:-1]), rows])
    except InvalidProblemError:
        return []
