"""What a plan is made for under horizon `auto`: scenarios from the record of a group up to the moment of the plan."""

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
    """Read a horizon that may be "auto", which looks no fixed time ahead: 0.

    Raises
    ------
    InvalidProblemError
        It is neither "auto" nor a time.
    """
    return 0 if horizon == AUTO else horizon_micros(horizon, also=f", or {AUTO}")


class Foresight:
    """A group's record, and what its beginning tells at each of its snapshots.

    Parameters
    ----------
    course : sequence of Interval
        All of the record, at least one interval.
    given : Capacity, optional
        How fast members read; by default estimated at each snapshot from what the record says till then.

    Attributes
    ----------
    kind : str
        What the scenarios looked at last were made from: one of `KINDS`.
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
        """Return what a plan for the group as it is at a snapshot of the record, counted from 0, should be for.

        Nothing is known of later snapshots. The problem has that snapshot's partitions, or those of them whose rows
        were not lost; its lags are those of now.
        """
        expected = forecast(self.record(problem, snapshot).until(snapshot + 1)) if snapshot else None
        if expected is None:
            self.kind = LAG
            return []
        self.kind = kind_of(expected)
        return self.made_of(expected, problem, snapshot)

    def foreseen(self, problem: Problem, snapshot: int) -> tuple[Problem, str]:
        """Return the group as it is at a snapshot with these scenarios; also say in a sentence what was assumed."""
        several = self.scenarios(problem, snapshot)
        if not several:
            return problem, f"horizon {AUTO}: planned for {self.kind}"
        return with_foresight(problem, several), (
            f"horizon {AUTO}: planned for the time until the next rebalance that the record lets expect, by "
            f"{self.kind}; single lags and loads are those of now"
        )

    def made_of(self, expected: Forecast, problem: Problem, snapshot: int) -> list[Scenario]:
        """Return the scenarios that a forecast gives for the group as it is at a snapshot."""
        members, capacity = int(problem.active.sum()), self.capacity(problem, snapshot)
        return scenarios(expected, problem.lags.astype(np.int64), problem.topic_of, members, capacity)

    def record(self, problem: Problem, snapshot: int) -> Record:
        """Return the whole record, later snapshots too, of the partitions of the problem."""
        columns = self._columns[snapshot]
        if len(columns) != len(problem.lags):  # rows of some were lost, and the history has them as they were
            columns = self._columns_of(problem)
        return Record(self._times, self._produced[:, columns], problem.topic_of, self._rebalances)

    def capacity(self, problem: Problem, snapshot: int) -> float | None:
        """Return the messages a second that the whole group reads, as far as the record has shown that by now."""
        known = self._given
        if known is None:
            try:
                known = estimate_capacity(self._course[:snapshot])
            except InvalidProblemError:  # nobody was seen to read anything
                return None
        return group_capacity(known, problem)


def kind_of(expected: Forecast) -> str:
    """What a forecast is made from: one of `KINDS`."""
    return COURSE if expected.known.any() else RATES


def with_foresight(problem: Problem, several: Sequence[Scenario]) -> Problem:
    """Return a problem with scenarios, at least one."""
    found = problem.with_scenarios(several)
    # In the order that a search puts them in: what it works out is kept for this very problem.
    return found.simplified if found.simplified.scenario_weights else found


def group_capacity(known: Capacity, problem: Problem) -> float | None:
    """Return the messages a second that the whole group reads; None where it may read faster than was seen."""
    if known.source == "highest":
        return None
    weights = (weight for weight, on in zip(problem.weights, problem.active, strict=True) if on)
    return float(known.rate * sum(weights, Fraction(0)))
