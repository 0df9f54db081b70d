"""How long a plan takes to read what there is while more comes in; all in exact numbers.

A member of weight w reads capacity · w messages a second. It has read everything at t when L + R · t <= capacity · w ·
t, L being the lag and R the rate of its partitions: after L / (capacity · w - R) seconds, and never where more comes
in than it reads. A plan is drained when its last member is.
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

FINE = 45  # bits of a group's lag: finer parts of a message than that are rounded off


def reading_time(lag: int, rate: Fraction, speed: Fraction) -> Time:
    """Return the seconds until a lag is read at so many messages a second, while so many come in.

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
    """A group as it will be: lags as if nothing were read until then, in parts of a message, rounded down.

    Attributes
    ----------
    problem : Problem
        Without owners.
    parts : int
        Of a message.
    """

    problem: Problem
    parts: int


class Course:
    """What a group has to read: its lags now, what comes in, and how fast members read.

    Parameters
    ----------
    problem : Problem
        Today's group.
    rates : sequence of Fraction (P,)
        Messages per second that come in.
    capacity : Fraction
        Messages per second that a member of weight 1 reads.
    heaviest : Fraction
        The largest weight that a member may have.

    Attributes
    ----------
    steady : bool
        Nothing comes in.
    hottest : int or None
        The partition that takes longest, even alone on the heaviest member; None where there is none to be read.
    floor : Fraction or NEVER
        How long it takes: no plan for any number of members is faster.
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
        """Return how long a member takes for one partition alone."""
        return self._time(self._lags[partition], self._rates[partition], weight)

    def capacity_for(self, partition: int, deadline: Fraction) -> Fraction:
        """Return how many messages per second a member must read to be through with a partition by then."""
        return self._lags[partition] / deadline + Fraction(self._rates[partition], self._unit)

    @cached_property
    def total_lag(self) -> int:
        """Messages to be read now."""
        return self.problem.total_lag

    @cached_property
    def total_rate(self) -> Fraction:
        """Messages per second that come in."""
        here = np.flatnonzero(self.problem.assignable).tolist()
        return Fraction(sum(self._rates[p] for p in here), self._unit)

    def mean(self, weight: Fraction) -> Time:
        """Return how long members of so much weight in all take at least: as one that reads everything."""
        return self._time(self.total_lag, int(self.total_rate * self._unit), weight)

    def of_plan(self, plan: Plan) -> Time:
        """Return how long a plan takes; NEVER too where a partition of today's group goes to nobody."""
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
        """Return the time of a member; the rate is in messages per `_unit` seconds."""
        return reading_time(lag, Fraction(rate, self._unit), self.capacity * weight)

    def at(self, problem: Problem, seconds: Fraction) -> Ahead:
        """Return a group of these partitions as it will be after some time, if nothing is read."""
        common = self._unit * seconds.denominator
        wholes = [lag * common + rate * seconds.numerator for lag, rate in zip(self._lags, self._rates, strict=True)]
        reduced = common // math.gcd(common, *wholes)
        total = sum(wholes) // common + 1
        parts = reduced if reduced * total < 2**FINE else 2 ** max(FINE - total.bit_length(), 0)
        return Ahead(_with_lags(problem, [min(whole * parts // common, MAX_LAG) for whole in wholes]), parts)

    def at_last(self, problem: Problem) -> Ahead:
        """Return a group with what comes in alone as its lags, as it is for ever: messages in so many seconds."""
        parts = self._unit if max(self._rates, default=0) <= MAX_LAG else 1
        return Ahead(_with_lags(problem, [rate * parts // self._unit for rate in self._rates]), parts)

    def time_of_load(self, problem: Problem, load: Number, parts: int) -> Fraction:
        """Return the time for a load per weight, the mean of weights being 1 as in a plan's makespan."""
        return Fraction(load) / (parts * self.capacity * problem.mean_weight)

    def load_within(self, problem: Problem, seconds: Fraction, parts: int) -> Fraction:
        """Return the most load per weight that is read within a time; see `time_of_load`."""
        return seconds * parts * self.capacity * problem.mean_weight


def without_owners(problem: Problem) -> Problem:
    """Return the same group, its partitions nobody's: a new size moves what it likes."""
    return _with_lags(problem, problem.lags.tolist())


def _with_lags(problem: Problem, lags: Sequence[int]) -> Problem:
    return problem.at(np.array(lags, dtype=np.int64), np.full_like(problem.owner, NOBODY))
