"""The rows of one group, out of all that was read: at each time, with its members, and what had to be assumed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evenlag.compare.history import Capacity
from evenlag.errors import InvalidProblemError
from evenlag.model.lag import partition_lag
from evenlag.model.problem import Problem
from evenlag.model.rates import Offsets, group_growth, predicted_lag, time_micros
from evenlag.tables.copies import MEMBER_ROWS, PARTITION_ROWS, CopyRule, Numbered, first_copies
from evenlag.tables.formats import Reading
from evenlag.tables.group import OFFSET_FIELDS, UNKNOWN, GroupRows, Member
from evenlag.tables.past import Past, unusable
from evenlag.tables.row_checks import Row, at, check_key, check_member, partition_of
from evenlag.tables.values import snapshot_order

_MOST_NAMES = 8  # groups listed in an error


class _Rows:
    """Rows of one group, of several readings, numbered through; a number tells the place."""

    def __init__(self) -> None:
        self.numbered: list[Numbered] = []
        self._places: list[tuple[Reading, int]] = []

    def add(self, reading: Reading, number: int, row: Row) -> None:
        self.numbered.append((len(self._places), row))
        self._places.append((reading, number))

    def place(self, number: int) -> str:
        """Say where a row stands: `offsets.csv, line 3`."""
        reading, its_number = self._places[number]
        return f"{reading.source}, {reading.unit} {its_number}"

    def once(self, rows: Iterable[Numbered], rule: CopyRule, source: str) -> tuple[list[Numbered], list[str]]:
        """Keep each thing's first row, and say how many copies there were."""
        kept, copies = first_copies(rows, rule, self.place)
        again = "1 row is there again" if copies == 1 else f"{copies} rows are there again"
        return kept, [f"{source}: {again} for the same {rule.what}, saying the same; counted once"] if copies else []


class OneGroup:
    """The rows of one group by time, and those of its members.

    Parameters
    ----------
    source : str
        What errors call the input.
    offsets, members : list of Reading
        `members` is None where no members table was given.
    group : str, optional
        Needed where the rows are of several.
    auto_offset_reset : str

    Attributes
    ----------
    times : list
        Values of `snapshot_ts`, in the order of `snapshot_order`.
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
        self._group = _chosen(source, {name for name, *_ in _with_groups(offsets, "offsets", group)}, group)
        self._rows = self._of_group(offsets, "offsets", group)
        self._at: defaultdict[Any, list[Numbered]] = defaultdict(list)
        for number, row in self._rows.numbered:
            self._at[row["snapshot_ts"]].append((number, row))
        self.times: list[Any] = sorted(self._at, key=snapshot_order)
        self._members_source = None if members is None else ", ".join(dict.fromkeys(each.source for each in members))
        self._members = self._of_group(members or (), "members", group)

    def rows_at(self, ts: Any) -> tuple[GroupRows, list[str]]:
        """Return the rows of a time, each partition once, and notes."""
        usable = [(number, self._with_lag(number, row)) for number, row in self._at[ts]]
        rows, notes = self._rows.once(usable, PARTITION_ROWS, self.source)
        members = None
        if self._members_source is not None:
            members, more = self._members_at(self._members_source, ts)
            notes += more
        return _group_rows((ts, self._group), [row for _, row in rows], members), notes

    def predicted(self, rows: GroupRows, ahead: int) -> GroupRows:
        """Take the lags of a time for what they will be `ahead` microseconds later."""
        offsets: list[tuple[tuple[str, int], Offsets]] = []
        places: dict[tuple[str, int], int] = {}
        for number, row in self._rows.numbered:
            with at(self._rows.place(number)):
                partition = partition_of(row)
            if (micros := time_micros(row["snapshot_ts"])) is None:
                continue
            if row["snapshot_ts"] == rows.snapshot_ts:
                places[partition] = len(offsets)
            offsets.append((partition, Offsets(micros, row["log_end_offset"], row["current_offset"])))
        growth = group_growth(offsets)
        partitions = zip(rows.topic_of.tolist(), rows.partition_ids.tolist(), strict=True)
        grown = [growth[places[key]] if (key := (rows.topics[t], i)) in places else None for t, i in partitions]
        lags = [predicted_lag(lag, by, ahead) for lag, by in zip(rows.lags.tolist(), grown, strict=True)]
        known = sum(by is not None and by.produced is not None for by in grown)
        return replace(rows, lags=np.array(lags, dtype=np.int64), predicted=known, unrated=len(lags) - known)

    def foreseen(self, problem: Problem, given: Capacity | None) -> tuple[Problem, list[str]]:
        """Give the group at the last time scenarios, from all times; also say what was assumed (`Past.foreseen`)."""
        try:
            past = Past([self.rows_at(ts)[0] for ts in self.times], given)
        except InvalidProblemError as error:  # of a row, before all that `Past` looks at
            return problem, [unusable(error)]
        return past.foreseen(problem, self.times[-1])

    def _of_group(self, readings: Sequence[Reading], kind: str, group: str | None) -> _Rows:
        rows = _Rows()
        for name, reading, number, row in _with_groups(readings, kind, group):
            if name == self._group:
                rows.add(reading, number, row)
        return rows

    def _with_lag(self, number: int, row: Row) -> dict[str, Any]:
        """Return a row with the lag that the lag rule gives it, and how that was clamped."""
        with at(self._rows.place(number)):
            partition_of(row)
            lag = partition_lag(
                row["log_start_offset"], row["log_end_offset"], row["current_offset"], row["lag"],
                row["auto_offset_reset"] or self._reset,
            )  # fmt: skip
        return {**row, "lag": lag.messages, "clamped": lag.clamped}

    def _members_at(self, source: str, ts: Any) -> tuple[tuple[Member, ...], list[str]]:
        """Return the members at a time, each once, and notes."""
        rows = [(number, row) for number, row in self._members.numbered if row["snapshot_ts"] == ts]
        if not rows:
            return (), [self._nobody(source, ts)]
        for number, row in rows:
            with at(self._members.place(number)):
                check_member(row)
        once, notes = self._members.once(rows, MEMBER_ROWS, source)
        fields = ("consumer_id", *MEMBER_ROWS.content)
        return tuple(Member(**{name: row[name] for name in fields}) for _, row in once), notes

    def _nobody(self, source: str, ts: Any) -> str:
        """Say that the members table has no row of the group, at this time or at all."""
        lacks = f"has no row of group {self._group!r}"
        if self._members.numbered:
            lacks = f"has rows of group {self._group!r}, but none {'without a time' if ts is None else f'of {ts}'}"
        return f"{source}: {lacks}, so nobody is taken to be in it; see that both tables say the same"


def _with_groups(
    readings: Sequence[Reading], kind: str, named: str | None
) -> Iterable[tuple[str | None, Reading, int, Row]]:
    """Give all rows with the group that each is of: rows that name none are of the group that the user names."""
    for reading in readings:
        for number, row in reading.offsets if kind == "offsets" else reading.members:
            with at(f"{reading.source}, {reading.unit} {number}"):
                check_key(row)
            yield row["group"] or (reading.group and (named or reading.group)) or None, reading, number, row


def _chosen(source: str, names: Iterable[str | None], group: str | None) -> str:
    """Return the group asked for, or the only one."""
    known = sorted(name for name in names if name)
    listed = ", ".join(known[:_MOST_NAMES])
    if len(known) > _MOST_NAMES:
        listed += f" and {len(known) - _MOST_NAMES} more"
    if not known:
        raise InvalidProblemError(f"{source}: holds no group")
    if group is None and len(known) > 1:
        raise InvalidProblemError(f"{source}: holds {len(known)} groups; choose one with --group: {listed}")
    if group is not None and group not in known:
        raise InvalidProblemError(f"{source}: holds no group {group!r}; it has {listed}")
    return group or known[0]


def _group_rows(key: tuple[Any, str], rows: list[Row], members: tuple[Member, ...] | None) -> GroupRows:
    topics = {topic: place for place, topic in enumerate(dict.fromkeys(row["topic"] for row in rows))}
    clamped = Counter(row["clamped"] for row in rows)
    offsets = [[UNKNOWN if row[name] is None else row[name] for row in rows] for name in OFFSET_FIELDS]
    return GroupRows.sort(
        key,
        list(topics),
        np.array([topics[row["topic"]] for row in rows]),
        np.array([row["partition"] for row in rows]),
        np.array([row["lag"] for row in rows], dtype=np.int64),
        [row["consumer_id"] for row in rows],
        np.array(offsets, dtype=np.int64),
        members=members,
        beyond_end=clamped["beyond_end"],
        before_start=clamped["before_start"],
    )
