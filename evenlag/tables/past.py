"""The rows of one group at many times, and the history they make for a replay. No Spark here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from evenlag.compare.catch_up import rates_of
from evenlag.compare.foresight import AUTO, Foresight
from evenlag.compare.history import Capacity, Interval, Snapshot, intervals
from evenlag.errors import InvalidProblemError
from evenlag.model.payoff import Rates
from evenlag.model.problem import Problem
from evenlag.model.rates import Offsets, time_micros
from evenlag.tables.group import UNKNOWN, GroupRows
from evenlag.tables.pair_columns import PairColumns

Key = tuple[str, int]  # topic and partition


class Past:
    """A group at several times, and what those before each of them tell; worked out when it is asked for.

    Parameters
    ----------
    rows : sequence of GroupRows
        With offsets, one for each time, in any order.
    given : Capacity, optional
        How fast members read; by default estimated.
    """

    def __init__(self, rows: Sequence[GroupRows], given: Capacity | None = None) -> None:
        self._rows, self._given = rows, given

    @cached_property
    def _read(self) -> tuple[list[Interval], InvalidProblemError | None]:
        """What happened from each snapshot to the next, and why that cannot be told where it cannot."""
        try:
            made = snapshots(self._rows)
            return (list(intervals(made)) if len(made) > 1 else []), None
        except InvalidProblemError as error:
            return [], error

    @cached_property
    def _foresight(self) -> Foresight:
        return Foresight(self._read[0], self._given)

    @cached_property
    def _number_of(self) -> dict[str, int]:
        """Which interval ends at each time but the first."""
        return {step.after.ts: number for number, step in enumerate(self._read[0])}

    def foreseen(self, problem: Problem, snapshot_ts: object) -> tuple[Problem, list[str]]:
        """Give the group as its rows have it at a time scenarios, from the record until then (horizon `auto`).

        Returns
        -------
        Problem
            As it came at the first time, and where the record cannot be used.
        list of str
            What was assumed, in a sentence; nothing at the first time.
        """
        _, error = self._read
        if error is not None:
            return problem, [unusable(error)]
        number = self._number_of.get(str(snapshot_ts))
        if number is None:
            return problem, []
        problem, assumed = self._foresight.foreseen(problem, number + 1)
        return problem, [assumed]

    def rates(self, snapshot_ts: object) -> Rates | None:
        """Return the messages per second that come into partitions at a time; None where none is known."""
        number = self._number_of.get(str(snapshot_ts))
        return None if number is None else rates_of(self._read[0][number])


def unusable(error: InvalidProblemError) -> str:
    """Say that horizon `auto` finds no record that it could use."""
    return f"horizon {AUTO}: planned for today's lag alone, since the record cannot be used: {error}"


def snapshots(rows: Sequence[GroupRows]) -> list[Snapshot]:
    """Make snapshots of a group's rows, in order of time.

    A partition whose row is missing from a snapshot, but not from earlier and later ones, is taken to be as it was: a
    row that was lost or rejected does not make a partition come and go.

    Parameters
    ----------
    rows : sequence of GroupRows
        With offsets, one for each time, in any order. Those without a usable row are left out.

    Raises
    ------
    InvalidProblemError
        A time that is none, or rows that make no problem; the message names the snapshot.
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
            )
        )
    return made


def _micros(rows: GroupRows) -> int:
    micros = time_micros(rows.snapshot_ts)
    if micros is None:
        problem = (
            "is missing"
            if rows.snapshot_ts is None
            else f"is no time such as 2026-01-31T12:00:00Z: {rows.snapshot_ts!r}"
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
    """Return for each snapshot the partitions that it lacks though earlier and later ones have them."""
    last: dict[Key, int] = {}
    lost: list[list[Key]] = [[] for _ in rows]
    for now, snapshot in enumerate(rows):
        for key in _keys(snapshot):
            for between in range(last.get(key, now) + 1, now):
                lost[between].append(key)
            last[key] = now
    return lost


def _filled(rows: GroupRows, lost: Sequence[tuple[GroupRows, int, Offsets]]) -> GroupRows:
    """Add the rows that were lost, as they were."""
    names = sorted({*rows.topics, *(source.topics[source.topic_of[p]] for source, p, _ in lost)})
    place = {name: t for t, name in enumerate(names)}
    own = [place[rows.topics[t]] for t in rows.topic_of.tolist()]
    added = [place[source.topics[source.topic_of[p]]] for source, p, _ in lost]
    ids = [int(source.partition_ids[p]) for source, p, _ in lost]
    lags = [int(source.lags[p]) for source, p, _ in lost]
    owners = [source.owners[p] for source, p, _ in lost]
    facts = [*map(rows.pairs.row, range(len(rows.lags))), *(source.pairs.row(p) for source, p, _ in lost)]
    sorted_rows = GroupRows.sort(
        (rows.snapshot_ts, rows.group),
        names,
        np.array([*own, *added]),
        np.array([*rows.partition_ids.tolist(), *ids]),
        np.array([*rows.lags.tolist(), *lags], dtype=np.int64),
        [*rows.owners, *owners],
        pairs=PairColumns.of_rows(facts),
    )
    kept = ("members", "beyond_end", "before_start", "rejected_rows", "left_out")
    counts = {name: getattr(rows, name) for name in kept}
    return replace(sorted_rows, **counts)
