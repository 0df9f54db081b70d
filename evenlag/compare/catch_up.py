"""Time for a plan's most loaded member to catch up, at the rates in a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from evenlag.compare.drain import NEVER, Time, reading_time
from evenlag.compare.history import Capacity, Interval, Snapshot, known_capacity, known_intervals
from evenlag.errors import InvalidProblemError
from evenlag.model.drain_time import DrainTime
from evenlag.model.payoff import Rates
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Problem
from evenlag.model.rates import SECOND, Growth


@dataclass(frozen=True)
class Pace:
    """Rates of messages into a group, and the rate at which its members read.

    Attributes
    ----------
    rates : mapping of (topic, partition) to Fraction, or None
        Messages per second into each partition since the snapshot before, if known; None without a record.
    capacity : Capacity or None
        None if it is neither given nor in the record.
    """

    rates: Rates | None
    capacity: Capacity | None

    @classmethod
    def of(
        cls,
        steps: Sequence[Interval],
        now: Snapshot | None,
        given: Capacity | None = None,
        measured: Capacity | None = None,
    ) -> Pace:
        """Derive the pace at a snapshot from the intervals until then.

        A given capacity takes precedence; a measured one is compared with that of the record (`known_capacity`).
        """
        rates = None if now is None else rates_at(now, steps[-1] if steps else None)
        try:
            return cls(rates, given or known_capacity(steps, measured))
        except InvalidProblemError:  # no member was seen reading
            return cls(rates, None)

    def ceiling(self, problem: Problem, seconds: Fraction, parameter: str) -> DrainTime | None:
        """Return the ceiling on loads that a time to drain sets, given by this parameter.

        Messages that arrive meanwhile are not counted. Return None if the capacity is unknown.
        """
        if self.capacity is None:
            return None
        return DrainTime(seconds, Fraction(self.capacity.rate * problem.mean_weight), parameter)

    def rates_in(self, problem: Problem) -> list[Fraction]:
        """Return the messages per second into each partition of a group; unknown rates count as 0."""
        known = self.rates or {}
        return [known.get(name, Fraction(0)) for name in problem.partitions]

    def coming(self, plan: Plan) -> list[Fraction]:
        """Return the messages per second that arrive in each member's partitions; unknown rates count as 0."""
        coming, rates = [Fraction(0)] * len(plan.problem.members), self.rates or {}
        for name, m in zip(plan.problem.partitions, plan.member_of.tolist(), strict=True):
            if m != NOBODY:
                coming[m] += rates.get(name, 0)
        return coming

    def member_seconds(self, plan: Plan) -> list[Time] | None:
        """Return the seconds until each member has caught up, while messages keep arriving; infinite means never.

        A member of weight w reads capacity · w messages per second from its partitions together. Return None if the
        capacity is unknown.
        """
        if self.capacity is None:
            return None
        return [
            reading_time(load, rate, self.capacity.rate * weight)
            for load, rate, weight in zip(plan.loads.tolist(), self.coming(plan), plan.problem.weights, strict=True)
        ]

    def seconds(self, plan: Plan) -> Fraction | None:
        """Return the seconds until a plan has read all lag: until its last member has caught up (`member_seconds`).

        Return None if that is never, because a member receives more than it can read or a partition that some member
        could read has none, or if the capacity is unknown.
        """
        if (plan.problem.assignable & (plan.member_of == NOBODY)).any():
            return None
        longest = max(self.member_seconds(plan) or [NEVER], default=Fraction(0))
        return longest if isinstance(longest, Fraction) else None

    def lags_ahead(self, plan: Plan, seconds: Sequence[Fraction]) -> list[float] | None:
        """Return the largest member lag in messages after each of these times, at constant rates and capacity.

        Return None if the capacity is unknown.
        """
        if self.capacity is None:
            return None
        reads = [self.capacity.rate * weight for weight in plan.problem.weights]
        growth = np.array([float(rate - speed) for rate, speed in zip(self.coming(plan), reads, strict=True)])
        loads = plan.loads.astype(np.float64)
        return [float(np.maximum(loads + growth * float(time), 0).max(initial=0)) for time in seconds]


UNKNOWN_PACE = Pace(None, None)


def rates_at(now: Snapshot, step: Interval | None) -> Rates | None:
    """Return the known rates into partitions at a snapshot, in messages per second; None without a record.

    They are counted from the last log end before it, of another snapshot or of a time with log ends alone.

    Parameters
    ----------
    step : Interval or None
        The interval that ends there; None for the first snapshot.
    """
    if now.log_ends is None:
        return None if step is None else rates_of(step)
    return {**({} if step is None else rates_of(step)), **_rates(now.problem, now.log_ends.growth(now.offsets))}


def rates_of(step: Interval) -> Rates:
    """Return the known rates into partitions during an interval, in messages per second."""
    return _rates(step.after.problem, step.grown)


def _rates(problem: Problem, growth: Sequence[Growth | None]) -> Rates:
    return {
        name: Fraction(grown.produced * SECOND, grown.micros)
        for name, grown in zip(problem.partitions, growth, strict=True)
        if grown is not None and grown.produced is not None
    }


def pace_of(
    record: Sequence[Snapshot], capacity: float | Fraction | None = None, measured: Capacity | None = None
) -> Pace:
    """Derive the pace of a group from its record.

    Parameters
    ----------
    record : sequence of Snapshot
        In order of time; rates need two, or the log ends of earlier times.
    capacity : float, optional
        Messages per second of a member of weight 1; default: estimated from the record (`estimate_capacity`).
    measured : Capacity, optional
        The capacity that the group's commits show, if it is not given.
    """
    given = Capacity.of_user(capacity)
    return Pace.of(known_intervals(record), record[-1] if record else None, given, measured)
