"""Forecast for horizon `auto`: scenarios derived from the group's record up to the time of the plan."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from evenlag.compare.history import Capacity, Interval, Snapshot, estimate_capacity
from evenlag.errors import InvalidProblemError
from evenlag.model.forecast import Forecast, Record, Scenario, Table, forecast, scenarios
from evenlag.model.payoff import Rates
from evenlag.model.problem import NOBODY, Problem
from evenlag.model.rates import SECOND, Growth, Offsets, horizon_micros, predicted_lag

AUTO = "auto"
COURSE, RATES, LAG = "the daily course of rates", "the usual rates", "today's lag alone"
KINDS = (COURSE, RATES, LAG)

Columns = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def ahead_micros(horizon: float | str) -> int:
    """Parse a horizon, in microseconds; "auto" looks no fixed time ahead and gives 0.

    Raises
    ------
    InvalidProblemError
        The horizon is neither "auto" nor a time.
    """
    return 0 if horizon == AUTO else horizon_micros(horizon, also=f", or {AUTO}")


class Foresight:
    """A group's record, and forecasts at each snapshot from the record up to then.

    Parameters
    ----------
    course : sequence of Interval
        The whole record.
    given : Capacity, optional
        The members' capacity; by default estimated at each snapshot from the record up to then.
    first : Snapshot, optional
        The first snapshot; needed if the record has no other, and thus no interval.

    Attributes
    ----------
    kind : str
        Source of the scenarios computed last: one of `KINDS`.
    basis : str
        The same, with the weight of the latest rates and its reason.
    """

    def __init__(
        self, course: Sequence[Interval], given: Capacity | None = None, first: Snapshot | None = None
    ) -> None:
        self._course, self._given = course, given
        snapshots = [*([] if first is None else [first])] if not course else [course[0].before]
        snapshots += [interval.after for interval in course]
        self._rebalances = np.array([each.after.micros for each in course if not each.same], dtype=np.int64)
        self._watched = snapshots[0].micros
        names = dict.fromkeys(name for snapshot in snapshots for name in snapshot.problem.partitions)
        self._column = {name: column for column, name in enumerate(names)}
        self._columns: list[Columns] = []
        for n, snapshot in enumerate(snapshots):
            same = n > 0 and course[n - 1].same
            self._columns.append(self._columns[-1] if same else self._columns_of(snapshot.problem))
        times: list[int] = []
        produced: list[Table] = []
        self._place: list[int] = []  # index of each snapshot in the times of the record
        for n, snapshot in enumerate(snapshots):
            produced += self._arrivals(n, snapshot)
            times += [*([] if snapshot.log_ends is None else snapshot.log_ends.times.tolist()), snapshot.micros]
            self._place.append(len(times) - 1)
        self._times = np.array(times, dtype=np.int64)
        self._produced = np.array(produced, dtype=np.float64).reshape(len(times) - 1, len(names))
        self.kind = self.basis = LAG

    def _arrivals(self, n: int, snapshot: Snapshot) -> list[Table]:
        """Return the messages that arrived in each partition of the record, until each time up to a snapshot."""
        step = self._course[n - 1] if n else None
        if snapshot.log_ends is not None:
            before = None if step is None else _aligned(step)
            columns, rows = self._columns[n], list(snapshot.log_ends.produced(before, snapshot.offsets))
        elif step is None:
            return []
        else:
            columns, rows = self._columns[n - 1], [np.where(step.restated, np.nan, step.produced)]
        found = np.full((len(rows), len(self._column)), np.nan)
        found[:, columns] = rows
        return list(found)

    def _columns_of(self, problem: Problem) -> Columns:
        return np.array([self._column[name] for name in problem.partitions], dtype=np.int64)

    def scenarios(self, problem: Problem, snapshot: int) -> list[Scenario]:
        """Return the scenarios for a plan of the group at a snapshot of the record; `snapshot` counts from 0.

        Later snapshots are not used. The problem has that snapshot's partitions, possibly without some whose rows were
        lost; its lags are the current ones.
        """
        place = self._place[snapshot]
        expected = forecast(self.record(problem, snapshot).until(place + 1)) if place else None
        if expected is None:
            self.kind = self.basis = LAG
            return []
        self.kind, self.basis = kind_of(expected), basis_of(expected)
        return self.made_of(expected, problem, snapshot)

    def foreseen(self, problem: Problem, snapshot: int) -> tuple[Problem, str]:
        """Return the group at a snapshot with its scenarios, and a sentence on the assumption behind them."""
        several = self.scenarios(problem, snapshot)
        if not several:
            return problem, f"horizon {AUTO}: planned for {self.kind}"
        return with_foresight(problem, several), (
            f"horizon {AUTO}: planned for the forecast until the next rebalance, by {self.basis}; single lags "
            "and loads are those of now"
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
        return Record(self._times, self._produced[:, columns], problem.topic_of, self._rebalances, self._watched)

    def capacity(self, problem: Problem, snapshot: int) -> float | None:
        """Return the group's capacity in messages per second: the given one, or an estimate from the record so far."""
        known = self._given
        if known is None:
            try:
                known = estimate_capacity(self._course[:snapshot])
            except InvalidProblemError:  # no member was seen reading
                return None
        return group_capacity(known, problem)


def _aligned(step: Interval) -> list[Offsets]:
    """Return the partitions' offsets at the start of an interval; unknown for new partitions and for older rows."""
    before, nothing = step.before, Offsets(step.before.micros, None, None)
    found = [nothing if p == NOBODY else before.offsets[p] for p in step.source.tolist()]
    return [each if each.micros == before.micros else nothing for each in found]


def kind_of(expected: Forecast) -> str:
    """Return the source of a forecast: one of `KINDS`."""
    return COURSE if expected.known.any() else RATES


def basis_of(expected: Forecast) -> str:
    """Return the source of a forecast, with the weight of the latest rates and its reason."""
    if not expected.compared:
        why = "no earlier day shows which of them predicts better"
    elif expected.latest_share > 0.5:
        why = "on earlier days they predicted better"
    else:
        why = "on earlier days the course predicted better"
    return f"{kind_of(expected)} and, for {100 * expected.latest_share:.0f} %, the latest rates ({why})"


def lags_ahead(problem: Problem, rates: Rates, micros: int) -> Columns:
    """Return the lags predicted for `micros` microseconds later at these rates; a lag without a rate stays. (P,)."""
    lags = []
    for lag, name in zip(problem.lags.tolist(), problem.partitions, strict=True):
        rate = rates.get(name)
        grown = None if rate is None else Growth(rate.denominator * SECOND, rate.numerator, None)
        lags.append(predicted_lag(lag, grown, micros))
    return np.array(lags, dtype=np.int64)


def with_foresight(problem: Problem, several: Sequence[Scenario]) -> Problem:
    """Return the problem with scenarios, at least one."""
    found = problem.with_scenarios(several)
    # Simplify here as the search would: its caches are keyed by this very object.
    return found.simplified if found.simplified.scenario_weights else found


def group_capacity(known: Capacity, problem: Problem) -> float | None:
    """Return the messages per second that the whole group reads; None if it may read faster than was observed."""
    if known.source == "highest":
        return None
    weights = (weight for weight, on in zip(problem.weights, problem.active, strict=True) if on)
    return float(known.rate * sum(weights, Fraction(0)))
