"""The rows of one group in several snapshots, and its history for forecasts and replays (no Spark)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from evenlag.compare.catch_up import Pace, rates_at
from evenlag.compare.foresight import AUTO, Foresight
from evenlag.compare.history import Capacity, Interval, Snapshot, intervals
from evenlag.errors import InvalidProblemError
from evenlag.model.payoff import Rates
from evenlag.model.problem import Problem
from evenlag.model.rates import Offsets, time_micros
from evenlag.tables.group import UNKNOWN, GroupRows
from evenlag.tables.pair_columns import PairColumns
from evenlag.tables.past_rows import log_ends

Key = tuple[str, int]  # topic and partition

RECORD = 30  # latest snapshots used to estimate rates and capacity for one plan


class Past:
    """A group in several snapshots, with rates and forecasts from the earlier ones, computed on first use.

    Parameters
    ----------
    rows : sequence of GroupRows
        One for each time, with offsets, in any order.
    given : Capacity, optional
        Messages per second that members read; by default estimated from the snapshots.
    """

    def __init__(self, rows: Sequence[GroupRows], given: Capacity | None = None) -> None:
        self._rows, self._given = rows, given

    @cached_property
    def _read(self) -> tuple[list[Snapshot], list[Interval], InvalidProblemError | None]:
        """Return the snapshots and the intervals between them, and the error if they cannot be used."""
        try:
            made = snapshots(self._rows)
            return made, (list(intervals(made)) if len(made) > 1 else []), None
        except InvalidProblemError as error:
            return [], [], error

    @cached_property
    def _foresight(self) -> Foresight:
        made, steps, _ = self._read
        return Foresight(steps, self._given, made[0])

    @cached_property
    def _number_of(self) -> dict[str, int]:
        """Return the number of the snapshot of each time; the first is left out, unless log ends precede it."""
        made, *_ = self._read
        return {each.ts: number for number, each in enumerate(made) if number or each.log_ends is not None}

    def foreseen(self, problem: Problem, snapshot_ts: object) -> tuple[Problem, list[str]]:
        """Add scenarios to the group's problem at a time, from the snapshots until then (horizon `auto`).

        Returns
        -------
        Problem
            Unchanged at the first time, or if the snapshots cannot be used.
        list of str
            A note on the assumptions; empty at the first time.
        """
        *_, error = self._read
        if error is not None:
            return problem, [unusable(error)]
        number = self._number_of.get(str(snapshot_ts))
        if number is None:
            return problem, []
        problem, assumed = self._foresight.foreseen(problem, number)
        return problem, [assumed]

    def rates(self, snapshot_ts: object) -> Rates | None:
        """Return the messages per second produced to each partition at a time; None if unknown."""
        number = self._number_of.get(str(snapshot_ts))
        if number is None:
            return None
        made, steps, _ = self._read
        return rates_at(made[number], steps[number - 1] if number else None)

    def until(self, snapshot_ts: object) -> list[Snapshot]:
        """Return the snapshots until a time; none if they cannot be used, or if it is the first."""
        number = self._number_of.get(str(snapshot_ts))
        made, *_ = self._read
        return [] if number is None else made[: number + 1]

    def pace(self, snapshot_ts: object) -> Pace:
        """Return what comes in, and how fast members read, by the record until a time."""
        number = self._number_of.get(str(snapshot_ts))
        if number is None:
            return Pace.of([], None, self._given)
        made, steps, _ = self._read
        return Pace.of(steps[:number], made[number], self._given)


def unusable(error: InvalidProblemError) -> str:
    """Return the note that horizon `auto` cannot use the earlier snapshots."""
    return f"horizon {AUTO}: planned for the current lag alone, as the earlier snapshots cannot be used: {error}"


def snapshots(rows: Sequence[GroupRows]) -> list[Snapshot]:
    """Return the snapshots of a group, in order of time.

    If a partition is missing from a snapshot but present in earlier and later ones, its last row is repeated. A lost or
    rejected row therefore does not look like a deleted partition.

    Parameters
    ----------
    rows : sequence of GroupRows
        One for each time, with offsets, in any order. Those without a usable row are left out.

    Raises
    ------
    InvalidProblemError
        A time is invalid, or rows do not form a valid problem. The message names the snapshot.
    """
    timed = sorted(((_micros(snapshot), snapshot) for snapshot in rows if snapshot.topics), key=lambda pair: pair[0])
    missing = _missing([snapshot for _, snapshot in timed])
    made: list[Snapshot] = []
    last: dict[Key, tuple[GroupRows, int, Offsets]] = {}
    for (micros, snapshot), lost in zip(timed, missing, strict=True):
        starts, ends, commits = (values.tolist() for values in _offsets(snapshot))
        seen = {
            key: (snapshot, p, Offsets(micros, _known(ends[p]), _known(commits[p])))
            for p, key in enumerate(_keys(snapshot))
        }
        filled = _filled(snapshot, [last[key] for key in lost]) if lost else snapshot
        last |= seen
        placed = [last[key] for key in _keys(filled)]
        try:
            problem = filled.problem()
        except InvalidProblemError as error:
            raise InvalidProblemError(f"snapshot of {snapshot.snapshot_ts}: {error}") from error
        log_starts = [max(int(_offsets(source)[0][p]), 0) for source, p, _ in placed] if lost else np.maximum(starts, 0)
        made.append(
            Snapshot(
                ts=str(snapshot.snapshot_ts),
                micros=micros,
                problem=problem,
                offsets=[offsets for _, _, offsets in placed],
                log_starts=np.array(log_starts, dtype=np.int64),
                log_ends=log_ends(snapshot.past, _keys(filled)),
            )
        )
    return made


def _micros(rows: GroupRows) -> int:
    micros = time_micros(rows.snapshot_ts)
    if micros is None:
        problem = (
            "is missing"
            if rows.snapshot_ts is None
            else f"is not a time such as 2026-01-31T12:00:00Z: {rows.snapshot_ts!r}"
        )
        raise InvalidProblemError(f"group {rows.group!r}: snapshot_ts {problem}")
    return micros


def _keys(rows: GroupRows) -> list[Key]:
    topics = rows.topics
    return [(topics[t], i) for t, i in zip(rows.topic_of.tolist(), rows.partition_ids.tolist(), strict=True)]


def _offsets(rows: GroupRows) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.full((3, len(rows.lags)), UNKNOWN) if rows.offsets is None else rows.offsets


def _known(offset: int) -> int | None:
    return None if offset == UNKNOWN else offset


def _missing(rows: Sequence[GroupRows]) -> list[list[Key]]:
    """Return for each snapshot the partitions that it lacks but earlier and later ones have."""
    last: dict[Key, int] = {}
    lost: list[list[Key]] = [[] for _ in rows]
    for now, snapshot in enumerate(rows):
        for key in _keys(snapshot):
            for between in range(last.get(key, now) + 1, now):
                lost[between].append(key)
            last[key] = now
    return lost


def _filled(rows: GroupRows, lost: Sequence[tuple[GroupRows, int, Offsets]]) -> GroupRows:
    """Return the rows of a snapshot with the last known rows of its missing partitions added."""
    names = sorted({*rows.topics, *(source.topics[source.topic_of[p]] for source, p, _ in lost)})
    place = {name: t for t, name in enumerate(names)}
    own = [place[rows.topics[t]] for t in rows.topic_of.tolist()]
    added = [place[source.topics[source.topic_of[p]]] for source, p, _ in lost]
    ids = [int(source.partition_ids[p]) for source, p, _ in lost]
    lags = [int(source.lags[p]) for source, p, _ in lost]
    owners = [source.owners[p] for source, p, _ in lost]
    facts = [*map(rows.pairs.row, range(len(rows.lags))), *(source.pairs.row(p) for source, p, _ in lost)]
    made = GroupRows(
        rows.snapshot_ts,
        rows.group,
        tuple(names),
        np.array([*own, *added]),
        np.array([*rows.partition_ids.tolist(), *ids]),
        np.array([*rows.lags.tolist(), *lags], dtype=np.int64),
        [*rows.owners, *owners],
        pairs=PairColumns.of_rows(facts),
    ).in_order()
    kept = ("members", "beyond_end", "before_start", "below_zero", "rejected_rows", "left_out", "assumed", "facts")
    others = {name: getattr(rows, name) for name in kept}
    owned = {*rows.topics} - {*rows.unowned} if rows.owners_seen else set[str]()
    owned |= {names[t] for t, owner in zip(added, owners, strict=True) if owner is not None}
    unowned = tuple(name for name in names if name not in owned) if owned else ()
    return replace(made, **others, unowned=unowned)
