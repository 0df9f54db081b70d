"""What the leader of a group has seen of its lags, bounded and in memory, and what that lets a plan be made for."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from evenlag.compare.catch_up import rates_of
from evenlag.compare.foresight import AUTO, ahead_micros, group_capacity, kind_of, with_foresight
from evenlag.compare.history import Interval, Snapshot, capacity_of
from evenlag.live.cluster.group_offsets import Reading
from evenlag.live.group_state import TopicPartition
from evenlag.model.forecast import DAY, DAYS_BACK, STEP, Forecast, Record, Table, forecast, scenarios
from evenlag.model.payoff import Rates
from evenlag.model.problem import Problem, summable
from evenlag.model.rates import SECOND, Growth, Offsets, predicted_lag

FINE = 2 * STEP * SECOND  # microseconds: what is older is kept in steps of half an hour
KEPT = (DAYS_BACK * DAY + DAY) * STEP * SECOND  # microseconds: no forecast from a record so short looks back further
NOW = "the lags of now"
STALE = 0.1  # of the record, `STEP` at most: a forecast serves until so much has been added


@dataclass(frozen=True, eq=False)
class Step:
    """What came in between two readings.

    Attributes
    ----------
    start, end : int
        Microseconds of any clock that only goes forward.
    partitions : list of (topic, partition) (P,)
    produced : float array (P,)
        Messages; NaN where that is unknown.
    """

    start: int
    end: int
    partitions: list[TopicPartition]
    produced: Table


@dataclass(frozen=True, eq=False)
class _Seen:
    """All that is known at one time; replaced as a whole, so that no thread sees half of it."""

    steps: tuple[Step, ...]
    rebalances: tuple[int, ...]
    rates: Rates
    observed: tuple[tuple[Fraction, bool], ...]
    partitions: list[TopicPartition]
    expected: Forecast | None
    made: int  # when the forecast was


class LagRecord:
    """A group's record, and what a plan is made for by it. One thread may add to it while another asks it.

    Parameters
    ----------
    horizon : float or str
        `"auto"`: scenarios of what the record lets expect until the next rebalance (docs/forecast.md). Seconds or a
        time such as "10m": the lag predicted for then. 0: the lag of the moment.

    Raises
    ------
    InvalidProblemError
        The horizon is none of these.
    """

    def __init__(self, horizon: float | str) -> None:
        self._auto = horizon == AUTO
        self._ahead = ahead_micros(horizon)
        self._last: Snapshot | None = None
        self._partitions: list[TopicPartition] = []  # one list for all steps that have the same
        self._old: deque[Step] = deque()
        self._recent: deque[tuple[Step, list[tuple[Fraction, bool]]]] = deque()
        self._rebalances: deque[int] = deque()
        self._seen: _Seen | None = None

    @property
    def wanted(self) -> bool:
        """Whether plans are made by it."""
        return self._auto or self._ahead > 0

    def add(self, micros: int, problem: Problem, reading: Reading) -> None:
        """Take note of a reading.

        Parameters
        ----------
        micros
            When it was, later than the one before.
        problem
            The group then: its lags, and who holds what.
        """
        nothing = (0, None, None)
        told = [reading.offsets.get(key, nothing) for key in problem.partitions]
        starts = np.array([start for start, _, _ in told], dtype=np.int64)
        offsets = [Offsets(micros, end, commit) for _, end, commit in told]
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
        """Keep the forecast made before as long as it serves: in a long record of many partitions it takes seconds."""
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
        """Messages per second that came into partitions between the last two readings; None before there are two."""
        return None if self._seen is None else self._seen.rates

    def foreseen(self, problem: Problem) -> tuple[Problem, str]:
        """Give the group as it is now the lags that its plan should be made for; also say which they are."""
        seen = self._seen
        if not self.wanted:
            return problem, NOW
        if seen is None:
            return problem, f"{NOW}: no record of them yet"
        if self._ahead:
            growth = [_growth(seen.rates.get(key)) for key in problem.partitions]
            pairs = zip(problem.lags.tolist(), growth, strict=True)
            ahead = np.array([predicted_lag(lag, grown, self._ahead) for lag, grown in pairs], dtype=np.int64)
            return replace(problem, lags=summable(ahead)), f"the lags in {self._ahead / SECOND:g} s"
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
        how = f"by {kind_of(expected)} in a record of {minutes:,.4g} min"
        return with_foresight(problem, several), f"the time until the next rebalance, {how}"


def _expected(seen: _Seen, problem: Problem) -> Forecast | None:
    """What is to be expected of the partitions of a problem."""
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


def _growth(rate: Fraction | None) -> Growth | None:
    """A rate as what happened in so many microseconds."""
    return None if rate is None else Growth(rate.denominator * SECOND, rate.numerator, None)
