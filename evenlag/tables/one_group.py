"""The rows of one group from all inputs: its partitions and members in each snapshot, and the assumptions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from evenlag.compare.history import Capacity
from evenlag.errors import InvalidProblemError
from evenlag.model.problem import Problem
from evenlag.model.rates import Offsets, group_growth, predicted_lag, time_micros
from evenlag.tables.columns import LOG_ONLY
from evenlag.tables.copies import PARTITION_ROWS, Numbered
from evenlag.tables.formats import Reading
from evenlag.tables.group import OFFSET_FIELDS, UNKNOWN, GroupRows
from evenlag.tables.group_members import GroupMembers
from evenlag.tables.lag_remarks import LagRemarks
from evenlag.tables.pair_columns import PAIR_COLUMNS, PairColumns
from evenlag.tables.past import Past, unusable
from evenlag.tables.past_rows import PastRows, add_log_end, before_each
from evenlag.tables.placed_rows import rows_of_group, with_groups
from evenlag.tables.row_checks import Row, partition_of
from evenlag.tables.values import snapshot_order

_MOST_NAMES = 8  # groups listed in an error


class OneGroup:
    """The rows of one group and its members, by snapshot.

    Parameters
    ----------
    source : str
        Name of the input in errors.
    offsets, members : list of Reading
        `members` is None without a members table.
    group : str, optional
        The group to read; required if the rows have several. Rows without a group belong to it.
    auto_offset_reset : str

    Attributes
    ----------
    name : str
        The group.
    times : list
        Values of `snapshot_ts`, in the order of `snapshot_order`.
    notes : list of str
        Notes of the input's readers.
    """

    def __init__(
        self,
        source: str,
        offsets: Sequence[Reading],
        members: Sequence[Reading] | None,
        group: str | None,
        auto_offset_reset: str,
    ) -> None:
        self.source, self._reset = source, auto_offset_reset
        label = group or _named_by(offsets, members)
        self.name = _chosen(source, offsets, label, group)
        readings = (*offsets, *(members or ()))
        self.notes = [note for reading in readings for note in (*reading.notes, *reading.notes_of.get(self.name, ()))]
        self._rows = rows_of_group(offsets, "offsets", self.name, label)
        self._at: defaultdict[Any, list[Numbered]] = defaultdict(list)
        for number, row in self._rows.numbered:
            if not row[LOG_ONLY]:
                self._at[row["snapshot_ts"]].append((number, row))
        self.times: list[Any] = sorted(self._at, key=snapshot_order)
        if not self.times:
            raise InvalidProblemError(
                f"{source}: group {self.name!r} has only log ends of the past (log_only); add a snapshot with its "
                "commits and owners: evenlag snapshot"
            )
        self._members = GroupMembers(self.name, offsets, members)

    @cached_property
    def _past(self) -> dict[Any, tuple[PastRows, ...]]:
        """Return the log ends before each snapshot, by its time."""
        past: dict[int, dict[tuple[str, int], int]] = {}
        micros = {ts: time_micros(ts) for ts in {row["snapshot_ts"] for _, row in self._rows.numbered if row[LOG_ONLY]}}
        for number, row in self._rows.numbered:
            if row[LOG_ONLY]:
                with self._rows.at(number):
                    add_log_end(past, row, micros[row["snapshot_ts"]])
        rows = [PastRows.of_ends(micros, ends) for micros, ends in past.items()]
        return dict(zip(self.times, before_each(rows, [time_micros(ts) for ts in self.times]), strict=True))

    @property
    def past_times(self) -> int:
        """The number of times before the latest snapshot at which only log ends are known."""
        return sum(len({rows.micros for rows in past}) for past in self._past.values())

    def rows_at(self, ts: Any) -> tuple[GroupRows, list[str]]:
        """Return the rows of a snapshot, each partition once, and notes.

        Raises
        ------
        InvalidProblemError
            A row is invalid, or no partition has a known lag.
        """
        remarks = LagRemarks()
        usable = [(number, self._with_lag(number, row, remarks)) for number, row in self._at[ts]]
        left_out = frozenset(row["consumer_id"] for _, row in usable if row["lag"] is None) - {None}
        usable = [(number, row) for number, row in usable if row["lag"] is not None]
        if not usable:
            raise InvalidProblemError(
                f"{self.source}: nothing to plan, because no partition of group {self.name!r} has a known lag: "
                f"{'; '.join(remarks.notes())}"
            )
        rows, notes = self._rows.once(usable, PARTITION_ROWS, self.source)
        found = replace(_group_rows((ts, self.name), [row for _, row in rows]), left_out=left_out)
        members, more = self._members.at(ts, found)
        return replace(found, members=members, past=self._past[ts]), [*remarks.notes(), *notes, *more]

    def predicted(self, rows: GroupRows, ahead: int) -> GroupRows:
        """Return the rows of a snapshot with the lags predicted for `ahead` microseconds later."""
        offsets: list[tuple[tuple[str, int], Offsets]] = []
        places: dict[tuple[str, int], int] = {}
        for number, row in self._rows.numbered:
            with self._rows.at(number):
                partition = partition_of(row)
            if (micros := time_micros(row["snapshot_ts"])) is None:
                continue
            if row["snapshot_ts"] == rows.snapshot_ts and not row[LOG_ONLY]:
                places[partition] = len(offsets)
            commit = None if row[LOG_ONLY] else row["current_offset"]
            offsets.append((partition, Offsets(micros, row["log_end_offset"], commit)))
        growth = group_growth(offsets)
        partitions = zip(rows.topic_of.tolist(), rows.partition_ids.tolist(), strict=True)
        grown = [growth[places[key]] if (key := (rows.topics[t], i)) in places else None for t, i in partitions]
        lags = [predicted_lag(lag, by, ahead) for lag, by in zip(rows.lags.tolist(), grown, strict=True)]
        known = sum(by is not None and by.produced is not None for by in grown)
        return replace(rows, lags=np.array(lags, dtype=np.int64), predicted=known, unrated=len(lags) - known)

    def foreseen(self, problem: Problem, given: Capacity | None) -> tuple[Problem, list[str]]:
        """Add scenarios to the latest snapshot, from all snapshots; see `Past.foreseen`."""
        try:
            past = Past([self.rows_at(ts)[0] for ts in self.times], given)
        except InvalidProblemError as error:  # an invalid row in an earlier snapshot
            return problem, [unusable(error)]
        return past.foreseen(problem, self.times[-1])

    def _with_lag(self, number: int, row: Row, remarks: LagRemarks) -> dict[str, Any]:
        """Return a row with its `lag` by the lag rule (None if unknown) and how it was `clamped`."""
        with self._rows.at(number):
            lag = remarks.lag_of(row, row["auto_offset_reset"] or self._reset, self._rows.of_text(number))
        return {**row, "lag": lag and lag.messages, "clamped": lag and lag.clamped}


def _named_by(offsets: Sequence[Reading], members: Sequence[Reading] | None) -> str | None:
    """Return the group of offsets rows that name none: the only one that the members name, else None."""
    if any(row["group"] for reading in offsets for _, row in reading.offsets):
        return None
    named = {row["group"] for reading in members or offsets for _, row in reading.members} - {None}
    return named.pop() if len(named) == 1 and isinstance(next(iter(named)), str) else None


def _chosen(source: str, offsets: Sequence[Reading], label: str | None, group: str | None) -> str:
    """Return the requested group, or the only one."""
    names = {name for name, *_ in with_groups(offsets, "offsets", label)}
    known = sorted(name for name in names if name)
    listed = ", ".join(known[:_MOST_NAMES])
    if len(known) > _MOST_NAMES:
        listed += f" and {len(known) - _MOST_NAMES} more"
    if not known:
        raise InvalidProblemError(f"{source}: {_why_empty(offsets)}")
    if group is None and len(known) > 1:
        raise InvalidProblemError(f"{source}: has {len(known)} groups; choose one with --group: {listed}")
    if group is not None and group not in known:
        raise InvalidProblemError(f"{source}: no group {group!r}; the input has {listed}")
    return group or known[0]


def _why_empty(offsets: Sequence[Reading]) -> str:
    if any(reading.members for reading in offsets):
        return "lists members but no partitions; give it as --members, and the offsets as INPUT"
    notes = [note for reading in offsets for note in reading.notes]
    return "; ".join(["no group found: there are no rows of partitions", *notes])


def _group_rows(key: tuple[Any, str], rows: list[Row]) -> GroupRows:
    topics = {topic: place for place, topic in enumerate(dict.fromkeys(row["topic"] for row in rows))}
    clamped = Counter(row["clamped"] for row in rows)
    racks, size, traffic = PAIR_COLUMNS
    offsets = [[UNKNOWN if row[name] is None else row[name] for row in rows] for name in OFFSET_FIELDS]
    return GroupRows.sort(
        key,
        list(topics),
        np.array([topics[row["topic"]] for row in rows]),
        np.array([row["partition"] for row in rows]),
        np.array([row["lag"] for row in rows], dtype=np.int64),
        [row["consumer_id"] for row in rows],
        np.array(offsets, dtype=np.int64),
        PairColumns.of_rows((row[racks], row[size], row[traffic]) for row in rows),
        beyond_end=clamped["beyond_end"],
        before_start=clamped["before_start"],
    )
