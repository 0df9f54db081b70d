"""Time that a plan takes to drain a group while messages keep arriving, in exact arithmetic.

A member of weight w reads capacity · w messages per second. It has drained at time t if L + R · t <= capacity · w · t,
where L is the lag and R the incoming rate of its partitions. That takes L / (capacity · w - R) seconds, or for ever if
more arrives than it reads. A plan has drained when its last member has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from evenlag.model.lag import MAX_LAG
from evenlag.model.plan import Number, Plan
from evenlag.model.problem import NOBODY, Problem

NEVER = math.inf
Time = Fraction | float  # seconds; the only float is NEVER

FINE = 45  # bits of a group's lag; finer fractions of a message are rounded off


def reading_time(lag: int, rate: Fraction, speed: Fraction) -> Time:
    """Return the seconds to read a lag at `speed` messages per second, while `rate` messages per second arrive.

    Examples
    --------
    >>> reading_time(60, Fraction(1), Fraction(3)), reading_time(0, Fraction(4), Fraction(3))
    (Fraction(30, 1), inf)
    """
    spare = speed - rate
    if spare < 0 or (spare == 0 and lag):
        return NEVER
    return Fraction(lag) / spare if lag else Fraction(0)


class Ahead(NamedTuple):
    """A group at a future time: its lags if nothing were read until then, in fractions of a message, rounded down.

    Attributes
    ----------
    problem : Problem
        Has no owners.
    parts : int
        Number of parts into which a message is divided.
    """

    problem: Problem
    parts: int


class Course:
    """Lags of a group, incoming rates and its members' capacity.

    Parameters
    ----------
    problem : Problem
        Today's group.
    rates : sequence of Fraction (P,)
        Messages per second into each partition.
    capacity : Fraction
        Messages per second read by a member of weight 1.
    heaviest : Fraction
        The largest weight that any member may have.

    Attributes
    ----------
    steady : bool
        True if nothing arrives.
    hottest : int or None
        The partition that takes longest, alone on the heaviest member; None if no partition can be assigned.
    floor : Fraction or NEVER
        Its time in seconds: no plan is faster, whatever the number of members.
    """

    def __init__(self, problem: Problem, rates: Sequence[Fraction], capacity: Fraction, heaviest: Fraction) -> None:
        self.problem, self.capacity = problem, capacity
        self._lags = [int(lag) for lag in problem.lags]
        self._unit = math.lcm(*(rate.denominator for rate in rates)) if rates else 1
        self._rates = [int(rate * self._unit) for rate in rates]
        self._rate_array = np.array(self._rates, dtype=object)
        self.steady = not any(self._rates)
        self.hottest: int | None = None
        self.floor: Time = Fraction(0)
        for p in np.flatnonzero(problem.assignable).tolist():
            alone = self.alone(p, heaviest)
            if self.hottest is None or alone > self.floor:
                self.hottest, self.floor = p, alone

    def alone(self, partition: int, weight: Fraction) -> Time:
        """Return the time of one partition alone on a member of the given weight."""
        return self._time(self._lags[partition], self._rates[partition], weight)

    def capacity_for(self, partition: int, deadline: Fraction) -> Fraction:
        """Return the rate at which a member must read to drain a partition by the deadline, in messages per second."""
        return self._lags[partition] / deadline + Fraction(self._rates[partition], self._unit)

    @cached_property
    def total_lag(self) -> int:
        """Messages to be read now."""
        return self.problem.total_lag

    @cached_property
    def total_rate(self) -> Fraction:
        """Messages per second that arrive."""
        here = np.flatnonzero(self.problem.assignable).tolist()
        return Fraction(sum(self._rates[p] for p in here), self._unit)

    def mean(self, weight: Fraction) -> Time:
        """Return a lower bound on the time of members with this total weight: one such member reading everything."""
        return self._time(self.total_lag, int(self.total_rate * self._unit), weight)

    def of_plan(self, plan: Plan) -> Time:
        """Return the time of a plan; NEVER if one of today's assignable partitions has no member."""
        problem = plan.problem
        if (self.problem.assignable & (plan.member_of == NOBODY)).any():
            return NEVER
        rates = np.zeros(len(problem.members), dtype=object)
        if not self.steady:
            held = plan.member_of != NOBODY
            np.add.at(rates, plan.member_of[held], self._rate_array[held])
        loads = zip(plan.loads.tolist(), rates.tolist(), problem.weights, strict=True)
        return max((self._time(lag, rate, weight) for lag, rate, weight in loads), default=Fraction(0))

    def _time(self, lag: int, rate: int, weight: Fraction) -> Time:
        """Return the time of a member; `rate` is in messages per `_unit` seconds."""
        return reading_time(lag, Fraction(rate, self._unit), self.capacity * weight)

    def at(self, problem: Problem, seconds: Fraction) -> Ahead:
        """Return the group at a time from now if nothing is read until then."""
        common = self._unit * seconds.denominator
        wholes = [lag * common + rate * seconds.numerator for lag, rate in zip(self._lags, self._rates, strict=True)]
        reduced = common // math.gcd(common, *wholes)
        total = sum(wholes) // common + 1
        parts = reduced if reduced * total < 2**FINE else 2 ** max(FINE - total.bit_length(), 0)
        return Ahead(_with_lags(problem, [min(whole * parts // common, MAX_LAG) for whole in wholes]), parts)

    def at_last(self, problem: Problem) -> Ahead:
        """Return the group with the incoming messages of some seconds as its lags: its state in the long run."""
        parts = self._unit if max(self._rates, default=0) <= MAX_LAG else 1
        return Ahead(_with_lags(problem, [rate * parts // self._unit for rate in self._rates]), parts)

    def time_of_load(self, problem: Problem, load: Number, parts: int) -> Fraction:
        """Return the time to read a load per weight, scaled as a plan's makespan is: to a mean weight of 1."""
        return Fraction(load) / (parts * self.capacity * problem.mean_weight)

    def load_within(self, problem: Problem, seconds: Fraction, parts: int) -> Fraction:
        """Return the largest load per weight that is read within a time; see `time_of_load`."""
        return seconds * parts * self.capacity * problem.mean_weight


def without_owners(problem: Problem) -> Problem:
    """Return the same group without owners, as a group of another size may move any partition."""
    return _with_lags(problem, problem.lags.tolist())


def _with_lags(problem: Problem, lags: Sequence[int]) -> Problem:
    return problem.at(np.array(lags, dtype=np.int64), np.full_like(problem.owner, NOBODY))
