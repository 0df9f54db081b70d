"""The groups of a source: its rows from all inputs, checked once by the rule of a row."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenlag.errors import InvalidProblemError
from evenlag.figures import quantity
from evenlag.model.arrays import Bools, Whole
from evenlag.model.names import did_you_mean
from evenlag.tables.call_defaults import AUTO_OFFSET_RESET
from evenlag.tables.copies import MEMBER_ROWS, PARTITION_ROWS, CopyRule
from evenlag.tables.formats import Reading
from evenlag.tables.group_table import GroupTable, numbers_in
from evenlag.tables.growth import predict_lags
from evenlag.tables.lag_remarks import LagRemarks
from evenlag.tables.placed_rows import PlacedRows
from evenlag.tables.rules import LAG_UNKNOWN, CheckedRows, reject_copies

_MOST_NAMES = 8  # groups listed in an error


class SourceGroups:
    """The rows of all groups of a source.

    Parameters
    ----------
    source : str
        Name of the input in errors.
    offsets, members : sequences of Reading
        `members` is None without a members table; texts of offsets may list members too.
    label : str, optional
        The group of rows of texts that name none; without it, that of their reading.

    Attributes
    ----------
    names : list of str
        The groups, sorted.
    offsets : CheckedRows
    remarks : LagRemarks
    notes : list of str
        Notes on rows that belong to no group.
    """

    def __init__(
        self,
        source: str,
        offsets: Sequence[Reading],
        members: Sequence[Reading] | None,
        auto_offset_reset: str = AUTO_OFFSET_RESET,
        label: str | None = None,
    ) -> None:
        self.source, self.readings, self.given = source, offsets, members
        self._label = label
        self.placed = PlacedRows.of(offsets, "offsets", label)
        self.offsets = self.placed.checked(auto_offset_reset)
        self.remarks = LagRemarks(self.offsets, self.placed.of_text, auto_offset_reset)
        reject_copies(self.offsets, PARTITION_ROWS)
        groups = self.offsets.values["group"]
        self.names = [groups.names[code] for code in np.unique(groups.data).tolist() if code >= 0]
        self._code_of = {name: code for code, name in enumerate(groups.names)}
        nameless = int(groups.null.sum())
        self.notes = [f"{source}: left out {quantity(nameless, 'row')} without a group"] if nameless else []

    def chosen(self, group: str | None) -> str:
        """Return the requested group, or the only one.

        Raises
        ------
        InvalidProblemError
            There is no such group, or none is requested of several.
        """
        if not self.names:
            raise InvalidProblemError(f"{self.source}: {self._why_empty()}")
        if group is None and len(self.names) > 1:
            raise InvalidProblemError(
                f"{self.source}: has {len(self.names):,} groups; choose one with --group: {self._listed()}"
            )
        if group is not None and group not in self._code_of:
            hint = did_you_mean(group, self.names) or f"; the input has {self._listed()}"
            raise InvalidProblemError(f"{self.source}: no group {group!r}{hint}")
        if self._label is None:
            self._label = group or self.names[0]
        return group or self.names[0]

    def _listed(self) -> str:
        """Return the groups with the largest lag, each with its lag and members in its latest snapshot."""
        sizes = np.bincount(self.table.group_of, weights=self.table.lags, minlength=len(self.table))
        members = np.diff(self.table.member_starts)
        latest = {name: places[-1] for name, places in self._places.items()}
        lags = {name: int(sizes[latest[name]]) if name in latest else 0 for name in self.names}
        shown = sorted(self.names, key=lambda name: (-lags[name], name))[:_MOST_NAMES]
        words = [
            f"{name} (lag {lags[name]:,}, {quantity(int(members[latest[name]]), 'member')})" if name in latest else name
            for name in shown
        ]
        more = len(self.names) - len(shown)
        return ", ".join(words) + (f" and {more:,} more" if more else "")

    def _why_empty(self) -> str:
        if any(len(reading.rows("members")) for reading in self.readings):
            return "lists members but no partitions; give it as --members, and the offsets as INPUT"
        notes = [note for reading in self.readings for note in reading.notes]
        return "; ".join(["no group found: there are no rows of partitions", *notes])

    def ahead(self, micros: int) -> SourceGroups:
        """Return the same groups with the lags predicted for `micros` microseconds later."""
        later = copy(self)
        later.offsets = replace(self.offsets, values=dict(self.offsets.values))
        predict_lags(later.offsets, micros)
        for name in ("table", "_places", "_remarkable"):  # made again from the predicted lags
            later.__dict__.pop(name, None)
        return later

    # ---- members -----------------------------------------------------------------------------------------------------

    @cached_property
    def member_readings(self) -> list[Reading]:
        """The readings that list members."""
        if self.given is not None:
            return list(self.given)
        return [reading for reading in self.readings if len(reading.rows("members"))]

    @cached_property
    def placed_members(self) -> PlacedRows | None:
        """Member rows; a row that applies to several snapshots is repeated for each. None if no input lists members."""
        if not self.member_readings:
            return None
        placed = PlacedRows.of(self.member_readings, "members", self._label)
        times, groups = placed.rows.values("snapshot_ts", "string"), placed.rows.values("group", "string")
        everywhere = times.null & (placed.of_text | self._timeless(groups.named(), times.null))
        if not everywhere.any():
            return placed
        keys = GroupTable(self.offsets).keys
        times_of: dict[str, list[str | None]] = {}
        for ts, group in keys:
            times_of.setdefault(group, []).append(ts)
        stamps, names = times.named().tolist(), groups.named().tolist()
        copies = [
            (row, ts)
            for row, applies in enumerate(everywhere.tolist())
            for ts in (times_of.get(names[row], [None]) if applies else [stamps[row]])
        ]
        return placed.at_times(np.array([row for row, _ in copies], dtype=np.int64), [ts for _, ts in copies])

    def _timeless(self, groups: NDArray[np.object_], untimed: Bools) -> Bools:
        """Return which rows of a members table are of a group that has no times there, although it goes with texts.

        Monitors add times to their samples. A members table without times then applies to all samples.
        """
        if self.given is None or not all(reading.group for reading in self.readings):
            return np.zeros(len(groups), dtype=bool)
        timed = {*groups[~untimed].tolist()}
        return np.array([name not in timed for name in groups.tolist()], dtype=bool)

    @cached_property
    def members(self) -> CheckedRows | None:
        """The checked rows of members."""
        if self.placed_members is None:
            return None
        checked = self.placed_members.checked(AUTO_OFFSET_RESET)
        reject_copies(checked, MEMBER_ROWS)
        return checked

    # ---- groups ------------------------------------------------------------------------------------------------------

    @cached_property
    def table(self) -> GroupTable:
        """The groups in each snapshot."""
        return GroupTable(self.offsets, self.members, told=True)

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """The numbers of each group's snapshots, in order of time."""
        found: dict[str, list[int]] = {}
        for g, (_, name) in enumerate(self.table.keys):
            found.setdefault(name, []).append(g)
        return found

    def snapshots_of(self, name: str) -> list[int]:
        """Return the numbers of a group's snapshots in `table`, in order of time."""
        return self._places.get(name, [])

    @cached_property
    def _rows(self) -> SnapshotRows:
        return SnapshotRows(self.placed, self.offsets, PARTITION_ROWS, self.table.number_of, len(self.table))

    @cached_property
    def _member_rows(self) -> SnapshotRows | None:
        if self.members is None or self.placed_members is None:
            return None
        number_of = numbers_in(self.members, self.table.keys)
        return SnapshotRows(self.placed_members, self.members, MEMBER_ROWS, number_of, len(self.table))

    @cached_property
    def _group_faults(self) -> ByGroup:
        """The rows of the offsets table that are errors, of each group."""
        groups = self.offsets.values["group"]
        return ByGroup(self._rows.faults, groups.data[self._rows.faults], len(groups.names))

    @cached_property
    def _remarkable(self) -> ByGroup:
        rows = self.remarks.remarkable
        return ByGroup(rows, self.table.number_of[rows], len(self.table))

    def check_snapshot(self, g: int) -> None:
        """Raise the error of the first row of a snapshot that cannot be used, or of a row with log ends alone.

        Raises
        ------
        InvalidProblemError
            The message names file and line.
        """
        rows = self._group_faults.of(self._code_of[self.table.keys[g][1]])
        if len(rows):
            of_past = self.offsets.log_only | self.offsets.values["log_only"].wrong
            rows = rows[of_past[rows] | (self.table.number_of[rows] == g)]
        self._rows.check(rows)

    def check_group(self, name: str) -> None:
        """Raise the error of the first row of a group that cannot be used, in any snapshot."""
        self._rows.check(self._group_faults.of(self._code_of[name]))

    def check_members(self, g: int) -> None:
        """Raise the error of the first row of members in a snapshot that cannot be used."""
        if self._member_rows is not None:
            self._member_rows.check(self._member_rows.faults_of(g))

    def lag_notes(self, g: int) -> list[str]:
        """Return the notes on unknown and corrected lags of a snapshot."""
        rows = self._remarkable.of(g)
        return self.remarks.notes(rows) if len(rows) else []

    def copy_notes(self, g: int) -> list[str]:
        """Return a note if copies were dropped from a snapshot."""
        return self._rows.copy_notes(g, self.source)

    def member_copy_notes(self, g: int, source: str) -> list[str]:
        """Return a note if copies of members were dropped from a snapshot."""
        return [] if self._member_rows is None else self._member_rows.copy_notes(g, source)

    def readings_of(self, g: int) -> list[Reading]:
        """Return the readings of a snapshot's partitions."""
        used = np.unique(self.placed.reading_of[self.table.number_of == g])
        return [self.readings[place] for place in used.tolist()]


class ByGroup:
    """Rows sorted by the number of their group.

    Parameters
    ----------
    rows, number_of : int arrays (N,)
        Rows, and the number of the group of each; a row with a number below 0 is of none.
    count : int
        Number of groups.
    """

    def __init__(self, rows: Whole, number_of: Whole, count: int) -> None:
        order = np.argsort(number_of, kind="stable")
        self._rows = rows[order]
        self._bounds = np.searchsorted(number_of[order], np.arange(count + 1))

    def of(self, g: int) -> Whole:
        """Return the rows of a group, in their order."""
        return self._rows[self._bounds[g] : self._bounds[g + 1]]


class SnapshotRows:
    """Rows of one table that are errors where one group is read, or copies that were dropped.

    Parameters
    ----------
    number_of : int array (N,)
        Number of the snapshot of each row; −1 for none.
    count : int
        Number of snapshots.
    """

    def __init__(self, placed: PlacedRows, checked: CheckedRows, rule: CopyRule, number_of: Whole, count: int) -> None:
        self._placed, self._checked, self._rule = placed, checked, rule
        self.faults = np.flatnonzero(~checked.usable & ~checked.having(LAG_UNKNOWN, rule.again))
        copies = np.flatnonzero(checked.having(rule.again))
        self._faults, self._copies = (ByGroup(rows, number_of[rows], count) for rows in (self.faults, copies))

    def faults_of(self, g: int) -> Whole:
        """Return the rows of a snapshot that are errors."""
        return self._faults.of(g)

    def check(self, faults: Whole) -> None:
        """Raise the error of the first of these rows."""
        if len(faults):
            raise self._placed.error(self._checked, int(faults.min()))

    def copy_notes(self, g: int, source: str) -> list[str]:
        """Return a note if copies were dropped from a snapshot; `source` is the name of the table."""
        copies = len(self._copies.of(g))
        dropped = "1 row repeats" if copies == 1 else f"{copies:,} rows repeat"
        return [f"{source}: {dropped} an earlier row of the same {self._rule.what}; dropped"] if copies else []
