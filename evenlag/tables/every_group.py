"""Every group of an input, one by one, each in its latest snapshot and the one before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenlag.compare.history import Snapshot
from evenlag.errors import InvalidProblemError
from evenlag.model.problem import Problem
from evenlag.model.rates import Offsets, time_micros
from evenlag.tables.columns import Row, TableKind
from evenlag.tables.formats import Reading
from evenlag.tables.group import GroupRows
from evenlag.tables.one_group import OneGroup
from evenlag.tables.past import snapshots
from evenlag.tables.placed_rows import with_groups

Choice = Callable[[Sequence[str]], Sequence[str]]
"""A function that returns which of the groups of an input to read."""


@dataclass(frozen=True, eq=False)
class GroupNow:
    """A group in its latest snapshot.

    Attributes
    ----------
    name : str
    record : tuple of Snapshot
        The latest snapshot, and the one before if the input has it; in order of time.
    notes : tuple of str
        Assumptions about the input.
    """

    name: str
    record: tuple[Snapshot, ...]
    notes: tuple[str, ...] = ()

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
        The time of rows that have none, ISO 8601.

    Raises
    ------
    InvalidProblemError
        There is no group, or a row has no valid group, topic or partition.
    """
    names = sorted({name for name, *_ in with_groups(offsets, "offsets", None) if name})
    if len(names) < 2:
        only = OneGroup(source, offsets, members, None, auto_offset_reset)
        names = [name for name in choice([only.name]) if name == only.name]
        yield from ((name, _latest(name, only, ts)) for name in names)
        return
    chosen = list(choice(names))
    wanted = set(chosen)
    own_offsets = _split(offsets, "offsets", wanted)
    own_members = None if members is None else _split(members, "members", wanted)
    none = [] if members is None else [_without_rows(each) for each in members[:1]]
    for name in chosen:
        mine = None if own_members is None else own_members.pop(name, none)
        try:
            group = OneGroup(source, own_offsets.pop(name), mine, name, auto_offset_reset)
        except InvalidProblemError as error:
            yield name, error
        else:
            yield name, _latest(name, group, ts)


def of_rows(source: str, offsets: Sequence[Row], members: Sequence[Row], auto_offset_reset: str) -> Iterator[Found]:
    """Yield every group in rows of the snapshot tables of one time, sorted by name."""
    by_group: dict[str, tuple[list[Row], list[Row]]] = {}
    for place, rows in enumerate((offsets, members)):
        for row in rows:
            by_group.setdefault(str(row["group"]), ([], []))[place].append(row)
    for name, (own_offsets, own_members) in sorted(by_group.items()):
        if own_offsets:  # a group that reads nothing has no rows of partitions
            tables = (
                Reading(offsets=list(enumerate(own_offsets, 1)), source=source, unit="row"),
                Reading(members=list(enumerate(own_members, 1)), source=source, unit="row"),
            )
            try:
                group = OneGroup(source, [tables[0]], [tables[1]], name, auto_offset_reset)
            except InvalidProblemError as error:
                yield name, error
            else:
                yield name, _latest(name, group, str(own_offsets[0]["snapshot_ts"]))


def of_problem(problem: Problem, ts: str) -> Found:
    """Return the group of a problem file, which has lags but no offsets, at a time."""
    micros = time_micros(ts) or 0
    size = len(problem.lags)
    offsets = [Offsets(micros, None, None)] * size
    return problem.group, GroupNow(
        problem.group, (Snapshot(ts, micros, problem, offsets, np.zeros(size, dtype=np.int64)),)
    )


def _split(readings: Sequence[Reading], kind: TableKind, wanted: set[str]) -> dict[str, list[Reading]]:
    """Return the readings of each wanted group, with its rows alone."""
    found: defaultdict[str, list[Reading]] = defaultdict(list)
    for reading in readings:
        parts: dict[str, Reading] = {}
        kinds: tuple[TableKind, ...] = ("offsets", "members") if kind == "offsets" else ("members",)
        for table in kinds:
            for name, _, number, row in with_groups([reading], table, None):
                if name is not None and name in wanted:
                    part = parts.setdefault(name, _without_rows(reading))
                    (part.offsets if table == "offsets" else part.members).append((number, row))
        for name, part in parts.items():
            found[name].append(part)
    return found


def _without_rows(reading: Reading) -> Reading:
    """Return a reading without its rows, and without its notes on the whole input."""
    return replace(reading, offsets=[], members=[], notes=[])


def _latest(name: str, group: OneGroup, ts: str) -> GroupNow | InvalidProblemError:
    """Return a group in its latest snapshot, or the reason why its rows cannot be used."""
    try:
        rows, notes = group.rows_at(group.times[-1])
        if time_micros(rows.snapshot_ts) is None:
            rows = replace(rows, snapshot_ts=ts)
        record = snapshots([rows])
    except InvalidProblemError as error:
        return error
    if len(group.times) > 1:
        record = _with_earlier(group, rows) or record
    return GroupNow(name, tuple(record), (*group.notes, *notes, *rows.notes))


def _with_earlier(group: OneGroup, rows: GroupRows) -> list[Snapshot]:
    """Return the latest snapshot and the one before; none if the earlier cannot be used, as rates are then unknown."""
    try:
        return snapshots([group.rows_at(group.times[-2])[0], rows])
    except InvalidProblemError:
        return []
