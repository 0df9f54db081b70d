"""The leader's record of lags, bounded and in memory, and the lags forecast from it for a plan."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from evenlag.compare.catch_up import rates_of
from evenlag.compare.foresight import AUTO, ahead_micros, basis_of, group_capacity, lags_ahead, with_foresight
from evenlag.compare.history import Interval, Snapshot, capacity_of
from evenlag.live.cluster.group_offsets import Reading
from evenlag.live.group_state import TopicPartition
from evenlag.model.forecast import DAY, DAYS_BACK, STEP, Forecast, Record, Table, forecast, scenarios
from evenlag.model.payoff import Rates
from evenlag.model.problem import Problem, summable
from evenlag.model.rates import SECOND, Offsets

FINE = 2 * STEP * SECOND  # microseconds after which intervals are merged into steps of half an hour
KEPT = (DAYS_BACK * DAY + DAY) * STEP * SECOND  # longest lookback of a forecast, in microseconds
NOW = "the current lags"
STALE = 0.1  # a forecast is renewed once the record has grown by this share, or by `STEP`


@dataclass(frozen=True, eq=False)
class Step:
    """The messages produced between two readings.

    Attributes
    ----------
    start, end : int
        Microseconds of a monotonic clock.
    partitions : list of (topic, partition) (P,)
    produced : float array (P,)
        Messages produced to each partition; NaN if unknown.
    """

    start: int
    end: int
    partitions: list[TopicPartition]
    produced: Table


@dataclass(frozen=True, eq=False)
class _Seen:
    """The state of the record at one time, replaced as a whole so that threads never see a partial update."""

    steps: tuple[Step, ...]
    rebalances: tuple[int, ...]
    rates: Rates
    observed: tuple[tuple[Fraction, bool], ...]
    partitions: list[TopicPartition]
    expected: Forecast | None
    made: int  # time of the forecast


class LagRecord:
    """The record of a group's lags. One thread may add readings while another requests the lags to plan for.

    Parameters
    ----------
    horizon : float or str
        `"auto"`: plan for scenarios until the next rebalance, forecast from the record (docs/forecast.md). Seconds, or
        a time such as "10m": plan for the lags predicted for that time. 0: plan for the current lags.

    Raises
    ------
    InvalidProblemError
        The horizon is invalid.
    """

    def __init__(self, horizon: float | str) -> None:
        self._auto = horizon == AUTO
        self._ahead = ahead_micros(horizon)
        self._last: Snapshot | None = None
        self._partitions: list[TopicPartition] = []  # one list shared by all steps with the same partitions
        self._old: deque[Step] = deque()
        self._recent: deque[tuple[Step, list[tuple[Fraction, bool]]]] = deque()
        self._rebalances: deque[int] = deque()
        self._seen: _Seen | None = None

    @property
    def wanted(self) -> bool:
        """True if plans depend on the record."""
        return self._auto or self._ahead > 0

    def add(self, micros: int, problem: Problem, reading: Reading) -> None:
        """Add a reading.

        Parameters
        ----------
        micros
            Time of the reading, later than the previous one.
        problem
            The group at that time, with its lags and assignment.
        reading
            The offsets.
        """
        nothing = (0, None, None)
        found = [reading.offsets.get(key, nothing) for key in problem.partitions]
        starts = np.array([start for start, _, _ in found], dtype=np.int64)
        offsets = [Offsets(micros, end, commit) for _, end, commit in found]
        before, self._last = self._last, Snapshot(str(micros), micros, problem, offsets, starts)
        if before is None:
            return
        interval = Interval(before, self._last)
        if self._partitions != before.problem.partitions:
            self._partitions = before.problem.partitions
        produced = np.where(interval.restated, np.nan, interval.produced)
        self._recent.append((Step(before.micros, micros, self._partitions, produced), interval.observed))
        if not interval.same:
            self._rebalances.append(micros)
        self._thin(micros)
        steps = (*self._old, *(step for step, _ in self._recent))
        observed = tuple(case for _, cases in self._recent for case in cases)
        seen = _Seen(steps, tuple(self._rebalances), rates_of(interval), observed, problem.partitions, None, micros)
        if self._auto:
            seen = self._with_forecast(seen, problem)
        self._seen = seen

    def _with_forecast(self, seen: _Seen, problem: Problem) -> _Seen:
        """Reuse the previous forecast while it is recent, because a forecast of many partitions takes seconds."""
        before = self._seen
        if before is not None and before.expected is not None and before.partitions == seen.partitions:
            serves = min(STALE * (seen.steps[-1].end - seen.steps[0].start), STEP * SECOND)
            if seen.made - before.made < serves:
                return replace(seen, expected=before.expected, made=before.made)
        return replace(seen, expected=_expected(seen, problem))

    def _thin(self, micros: int) -> None:
        while self._recent and self._recent[0][0].end < micros - FINE:
            step, _ = self._recent.popleft()
            last = self._old[-1] if self._old else None
            fits = last is not None and step.end - last.start <= STEP * SECOND and last.partitions == step.partitions
            if last is not None and fits:
                self._old[-1] = Step(last.start, step.end, step.partitions, last.produced + step.produced)
            else:
                self._old.append(step)
        while self._old and self._old[0].end < micros - KEPT:
            self._old.popleft()
        while self._rebalances and self._rebalances[0] < micros - KEPT:
            self._rebalances.popleft()

    @property
    def rates(self) -> Rates | None:
        """Messages per second produced to partitions between the last two readings; None before the second one."""
        return None if self._seen is None else self._seen.rates

    def foreseen(self, problem: Problem) -> tuple[Problem, str]:
        """Return the group with the lags or scenarios to plan for, and a description of what they are."""
        seen = self._seen
        if not self.wanted:
            return problem, NOW
        if seen is None:
            return problem, f"{NOW}: no record of them yet"
        if self._ahead:
            ahead = summable(lags_ahead(problem, seen.rates, self._ahead))
            return replace(problem, lags=ahead), f"the lags in {self._ahead / SECOND:g} s"
        same = seen.partitions == problem.partitions
        expected = seen.expected if same else _expected(seen, problem)
        if expected is None:
            return problem, NOW
        capacity = group_capacity(capacity_of(seen.observed), problem) if seen.observed else None
        lags = problem.lags.astype(np.int64)
        several = scenarios(expected, lags, problem.topic_of, int(problem.active.sum()), capacity)
        if not several:
            return problem, NOW
        minutes = (seen.steps[-1].end - seen.steps[0].start) / SECOND / 60
        how = f"by {basis_of(expected)} in a record of {minutes:,.4g} min"
        return with_foresight(problem, several), f"the time until the next rebalance, {how}"


def _expected(seen: _Seen, problem: Problem) -> Forecast | None:
    """Return the forecast for the partitions of a problem."""
    times = [seen.steps[0].start, *(step.end for step in seen.steps)]
    produced = np.full((len(seen.steps), len(problem.lags)), np.nan)
    column = {name: p for p, name in enumerate(problem.partitions)}
    found: list[TopicPartition] | None = None
    here, there = np.empty(0, np.int64), np.empty(0, np.int64)
    for n, step in enumerate(seen.steps):
        if step.partitions is not found:
            found = step.partitions
            pairs = [(p, column[name]) for p, name in enumerate(found) if name in column]
            here, there = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        produced[n, there] = step.produced[here]
    record = Record(
        np.array(times, dtype=np.int64), produced, problem.topic_of, np.array(seen.rebalances, dtype=np.int64)
    )
    return forecast(record)
