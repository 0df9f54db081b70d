"""Forecast for horizon `auto`: scenarios derived from the group's record up to the time of the plan."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from evenlag.compare.history import Capacity, Interval, estimate_capacity
from evenlag.errors import InvalidProblemError
from evenlag.model.forecast import Forecast, Record, Scenario, forecast, scenarios
from evenlag.model.problem import Problem
from evenlag.model.rates import horizon_micros

AUTO = "auto"
COURSE, RATES, LAG = "the daily course of rates", "the last rates", "today's lag alone"
KINDS = (COURSE, RATES, LAG)


def ahead_micros(horizon: float | str) -> int:
    """Parse a horizon, in microseconds; "auto" looks no fixed time ahead and gives 0.

    Raises
    ------
    InvalidProblemError
        The horizon is neither "auto" nor a time.
    """
    return 0 if horizon == AUTO else horizon_micros(horizon, also=f", or {AUTO}")


class Foresight:
    """A group's record, and the forecasts that its beginning allows at each snapshot.

    Parameters
    ----------
    course : sequence of Interval
        The whole record, at least one interval.
    given : Capacity, optional
        The members' capacity; by default estimated at each snapshot from the record up to then.

    Attributes
    ----------
    kind : str
        Source of the scenarios computed last: one of `KINDS`.
    """

    def __init__(self, course: Sequence[Interval], given: Capacity | None = None) -> None:
        self._course, self._given = course, given
        snapshots = [course[0].before, *(interval.after for interval in course)]
        self._times = np.array([snapshot.micros for snapshot in snapshots], dtype=np.int64)
        self._rebalances = np.array([each.after.micros for each in course if not each.same], dtype=np.int64)
        names = dict.fromkeys(name for snapshot in snapshots for name in snapshot.problem.partitions)
        self._column = {name: column for column, name in enumerate(names)}
        self._produced = np.full((len(course), len(names)), np.nan)
        self._columns: list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]] = []
        for n, snapshot in enumerate(snapshots):
            same = n > 0 and course[n - 1].same
            self._columns.append(self._columns[-1] if same else self._columns_of(snapshot.problem))
        for n, interval in enumerate(course):
            self._produced[n, self._columns[n]] = np.where(interval.restated, np.nan, interval.produced)
        self.kind = LAG

    def _columns_of(self, problem: Problem) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        return np.array([self._column[name] for name in problem.partitions], dtype=np.int64)

    def scenarios(self, problem: Problem, snapshot: int) -> list[Scenario]:
        """Return the scenarios for a plan of the group at a snapshot of the record; `snapshot` counts from 0.

        Later snapshots are not used. The problem has that snapshot's partitions, possibly without some whose rows were
        lost; its lags are the current ones.
        """
        expected = forecast(self.record(problem, snapshot).until(snapshot + 1)) if snapshot else None
        if expected is None:
            self.kind = LAG
            return []
        self.kind = kind_of(expected)
        return self.made_of(expected, problem, snapshot)

    def foreseen(self, problem: Problem, snapshot: int) -> tuple[Problem, str]:
        """Return the group at a snapshot with its scenarios, and a sentence on the assumption behind them."""
        several = self.scenarios(problem, snapshot)
        if not several:
            return problem, f"horizon {AUTO}: planned for {self.kind}"
        return with_foresight(problem, several), (
            f"horizon {AUTO}: planned for the forecast until the next rebalance, by {self.kind}; single lags and "
            "loads are those of now"
        )

    def made_of(self, expected: Forecast, problem: Problem, snapshot: int) -> list[Scenario]:
        """Return the scenarios of a forecast for the group at a snapshot."""
        members, capacity = int(problem.active.sum()), self.capacity(problem, snapshot)
        return scenarios(expected, problem.lags.astype(np.int64), problem.topic_of, members, capacity)

    def record(self, problem: Problem, snapshot: int) -> Record:
        """Return the whole record, including later snapshots, of the problem's partitions."""
        columns = self._columns[snapshot]
        if len(columns) != len(problem.lags):  # rows were lost, which the history filled in
            columns = self._columns_of(problem)
        return Record(self._times, self._produced[:, columns], problem.topic_of, self._rebalances)

    def capacity(self, problem: Problem, snapshot: int) -> float | None:
        """Return the messages per second that the whole group reads, as far as the record shows it by the snapshot."""
        known = self._given
        if known is None:
            try:
                known = estimate_capacity(self._course[:snapshot])
            except InvalidProblemError:  # no member was seen reading
                return None
        return group_capacity(known, problem)


def kind_of(expected: Forecast) -> str:
    """Return the source of a forecast: one of `KINDS`."""
    return COURSE if expected.known.any() else RATES


def with_foresight(problem: Problem, several: Sequence[Scenario]) -> Problem:
    """Return the problem with scenarios, at least one."""
    found = problem.with_scenarios(several)
    # Simplified as the search would do it: its caches are keyed by this very problem.
    return found.simplified if found.simplified.scenario_weights else found


def group_capacity(known: Capacity, problem: Problem) -> float | None:
    """Return the messages per second that the whole group reads; None if it may read faster than was observed."""
    if known.source == "highest":
        return None
    weights = (weight for weight, on in zip(problem.weights, problem.active, strict=True) if on)
    return float(known.rate * sum(weights, Fraction(0)))
