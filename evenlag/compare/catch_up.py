"""How long until the most loaded member has read all that waits for it, at the pace that a record shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from evenlag.compare.drain import reading_time
from evenlag.compare.history import Capacity, Interval, Snapshot, estimate_capacity, intervals
from evenlag.errors import InvalidProblemError
from evenlag.model.payoff import Rates
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Problem
from evenlag.model.rates import SECOND


@dataclass(frozen=True)
class Pace:
    """What comes into a group, and how fast its members read.

    Attributes
    ----------
    rates : mapping of (topic, partition) to Fraction, or None
        Messages per second since the snapshot before, where they are known; None without a record.
    capacity : Capacity or None
        None where nobody says and no record tells.
    """

    rates: Rates | None
    capacity: Capacity | None

    @classmethod
    def of(cls, steps: Sequence[Interval], given: Capacity | None = None) -> Pace:
        """Read the pace off a record; without intervals it tells nothing. A capacity that is given goes before it."""
        if not steps:
            return cls(None, given)
        rates = rates_of(steps[-1])
        try:
            return cls(rates, given or estimate_capacity(steps))
        except InvalidProblemError:  # nobody is seen to read
            return cls(rates, None)

    def ceiling(self, problem: Problem, seconds: Fraction) -> Fraction | None:
        """Return the most load per weight, as in `max_load`, that members read within a time.

        Messages that come in meanwhile are not counted. None where the capacity is not known.
        """
        return None if self.capacity is None else seconds * self.capacity.rate * problem.mean_weight

    def seconds(self, plan: Plan) -> Fraction | None:
        """Return the seconds until the last member of a plan has caught up, while messages keep coming in.

        A member of weight w reads capacity · w messages a second, its partitions together. What is not known to come
        in is taken not to. None where some member gets more than it can read, or the capacity is not known.
        """
        if self.capacity is None:
            return None
        problem, rates = plan.problem, self.rates or {}
        coming = [Fraction(0)] * len(problem.members)
        for name, m in zip(problem.partitions, plan.member_of.tolist(), strict=True):
            if m != NOBODY:
                coming[m] += rates.get(name, 0)
        times = [
            reading_time(load, rate, self.capacity.rate * weight)
            for load, rate, weight in zip(plan.loads.tolist(), coming, problem.weights, strict=True)
        ]
        longest = max(times, default=Fraction(0))
        return longest if isinstance(longest, Fraction) else None


def rates_of(step: Interval) -> Rates:
    """Return the messages per second that come into each partition at the end of an interval, where that is known."""
    return {
        name: Fraction(grown.produced * SECOND, grown.micros)
        for name, grown in zip(step.after.problem.partitions, step.grown, strict=True)
        if grown is not None and grown.produced is not None
    }


def pace_of(record: Sequence[Snapshot], capacity: float | None = None) -> Pace:
    """Read the pace of a group off its record.

    Parameters
    ----------
    record : sequence of Snapshot
        In order of time; fewer than two tell nothing.
    capacity : float, optional
        Messages per second of a member of weight 1; default: estimated from the record (`estimate_capacity`).
    """
    given = Capacity.of_user(capacity)
    try:
        steps = list(intervals(record)) if len(record) > 1 else []
    except InvalidProblemError:  # two snapshots of one time
        steps = []
    return Pace.of(steps, given)
