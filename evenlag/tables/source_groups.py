"""The groups of a source: its rows from all inputs, checked once by the rule of a row."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenlag.errors import InvalidProblemError
from evenlag.model.arrays import Bools, Whole
from evenlag.tables.copies import MEMBER_ROWS, PARTITION_ROWS, CopyRule
from evenlag.tables.defaults import AUTO_OFFSET_RESET
from evenlag.tables.formats import Reading
from evenlag.tables.groups import GroupTable, numbers_in
from evenlag.tables.growth import predict_lags
from evenlag.tables.lag_remarks import LagRemarks
from evenlag.tables.placed_rows import PlacedRows
from evenlag.tables.rules import LAG_UNKNOWN, USABLE, CheckedRows, reject_copies

_MOST_NAMES = 8  # groups listed in an error


class SourceGroups:
    """The rows of all groups of a source.

    Parameters
    ----------
    source : str
        Name of the input in errors.
    offsets, members : sequences of Reading
        `members` is None without a members table; texts of offsets may list members too.
    auto_offset_reset : str
    label : str, optional
        The group of rows of texts that name none; without it, that of their reading.

    Attributes
    ----------
    names : list of str
        The groups, sorted.
    offsets : CheckedRows
    remarks : LagRemarks
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

    def chosen(self, group: str | None) -> str:
        """Return the requested group, or the only one.

        Raises
        ------
        InvalidProblemError
            There is no such group, or none is requested of several.
        """
        if not self.names:
            raise InvalidProblemError(f"{self.source}: {self._why_empty()}")
        listed = ", ".join(self.names[:_MOST_NAMES])
        if len(self.names) > _MOST_NAMES:
            listed += f" and {len(self.names) - _MOST_NAMES:,} more"
        if group is None and len(self.names) > 1:
            raise InvalidProblemError(
                f"{self.source}: has {len(self.names):,} groups; choose one with --group: {listed}"
            )
        if group is not None and group not in self._code_of:
            raise InvalidProblemError(f"{self.source}: no group {group!r}; the input has {listed}")
        if self._label is None:
            self._label = group or self.names[0]
        return group or self.names[0]

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
        """The rows of members, once for each time at which they apply; None if no input lists members."""
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

        Monitors add times to their samples. A members table without times then applies to all of them.
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
    def _faults(self) -> tuple[ByGroup, ByGroup]:
        """The rows of the offsets table that are errors, of each snapshot and of each group."""
        rows = _errors(self.offsets, PARTITION_ROWS)
        count = len(self.offsets.values["group"].names)
        return self._by_snapshot(rows), ByGroup(rows, self.offsets.values["group"].data[rows], count)

    @cached_property
    def _member_faults(self) -> ByGroup:
        assert self.members is not None
        rows = _errors(self.members, MEMBER_ROWS)
        return ByGroup(rows, self._member_numbers[rows], len(self.table))

    @cached_property
    def _member_numbers(self) -> Whole:
        """The number of the snapshot of each row of members; −1 for none."""
        assert self.members is not None
        return numbers_in(self.members, self.table.keys, "")

    @cached_property
    def _copies(self) -> tuple[ByGroup, ByGroup | None]:
        """The copies among the rows of both tables, of each snapshot."""
        members = None
        if self.members is not None:
            rows = _with_reason(self.members, {MEMBER_ROWS.again})
            members = ByGroup(rows, self._member_numbers[rows], len(self.table))
        return self._by_snapshot(_with_reason(self.offsets, {PARTITION_ROWS.again})), members

    @cached_property
    def _remarkable(self) -> ByGroup:
        return self._by_snapshot(self.remarks.remarkable)

    def _by_snapshot(self, rows: Whole) -> ByGroup:
        return ByGroup(rows, self.table.number_of[rows], len(self.table))

    def check_snapshot(self, g: int) -> None:
        """Raise the error of the first row of a snapshot that cannot be used, or of a row with log ends alone.

        Raises
        ------
        InvalidProblemError
            The message names file and line.
        """
        self._raise_first(np.union1d(self._faults[0].of(g), self._log_end_faults(self.table.keys[g][1])))

    def check_group(self, name: str) -> None:
        """Raise the error of the first row of a group that cannot be used, in any snapshot."""
        self._raise_first(self._faults[1].of(self._code_of[name]))

    def _log_end_faults(self, name: str) -> Whole:
        rows = self._faults[1].of(self._code_of[name])
        if not len(rows):
            return rows
        marked = self.offsets.log_only | self.offsets.values["log_only"].wrong
        return rows[marked[rows]]

    def _raise_first(self, rows: Whole) -> None:
        if len(rows):
            raise self.placed.error(self.offsets, int(rows.min()))

    def check_members(self, g: int) -> None:
        """Raise the error of the first row of members in a snapshot that cannot be used."""
        if self.members is not None and len(rows := self._member_faults.of(g)):
            assert self.placed_members is not None
            raise self.placed_members.error(self.members, int(rows.min()))

    def lag_notes(self, g: int) -> list[str]:
        """Return the notes on unknown and corrected lags of a snapshot."""
        rows = self._remarkable.of(g)
        return self.remarks.notes(rows) if len(rows) else []

    def copy_notes(self, g: int) -> list[str]:
        """Return a note if copies were dropped from a snapshot."""
        return _dropped(self.source, len(self._copies[0].of(g)), PARTITION_ROWS)

    def member_copy_notes(self, g: int, source: str) -> list[str]:
        """Return a note if copies of members were dropped from a snapshot."""
        copies = self._copies[1]
        return [] if copies is None else _dropped(source, len(copies.of(g)), MEMBER_ROWS)

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


def _errors(checked: CheckedRows, rule: CopyRule) -> Whole:
    """Return the rows that are errors where one group is read."""
    forgiven = _with_reason(checked, {LAG_UNKNOWN, rule.again})
    faults = checked.reason_of != USABLE
    faults[forgiven] = False
    return np.flatnonzero(faults)


def _with_reason(checked: CheckedRows, reasons: set[str]) -> Whole:
    codes = [code for code, each in enumerate(checked.reasons) if each in reasons]
    return np.flatnonzero(np.isin(checked.reason_of, codes))


def _dropped(source: str, copies: int, rule: CopyRule) -> list[str]:
    dropped = "1 row repeats" if copies == 1 else f"{copies:,} rows repeat"
    return [f"{source}: {dropped} an earlier row of the same {rule.what}; dropped"] if copies else []
