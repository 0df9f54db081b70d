"""A group with so many members: how fast it can drain, with a plan and a bound, and how fast the published ones do."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from evenlag.compare.drain import NEVER, Ahead, Course, Time, without_owners
from evenlag.errors import EvenlagError, InfeasibleError
from evenlag.model.balance import Balance
from evenlag.model.check import plan_violation
from evenlag.model.objective import ObjectiveKind
from evenlag.model.plan import Number, Plan, current_plan
from evenlag.model.problem import NOBODY, Problem
from evenlag.search.cache import SolveCache
from evenlag.search.clock import LEAST_SECONDS, Clock
from evenlag.search.options import SolveOptions
from evenlag.search.solver import search

PUBLISHED = ("range", "cooperative-sticky", "uniform")
PROBES = 8  # questions for one count where messages keep coming in
NEAR = Fraction(1, 10**6)  # how closely bound and plan are to meet then, as a fraction of the time


class Counted:
    """A group of so many members, and what is known of its times so far.

    Parameters
    ----------
    today : Problem
        The group, with what its members hold today.
    course : Course
        What there is to read.
    options : SolveOptions

    Attributes
    ----------
    plan : Plan or None
    drain, bound : Fraction or NEVER
        Seconds that the best plan takes, and that any plan takes at least.
    unruled, free_bound : Fraction or NEVER
        The same without any count rule. More members can do whatever fewer can then, so that `free_bound` holds for all
        smaller groups too.
    solved : bool
        Whether plans were looked for.
    """

    def __init__(self, today: Problem, course: Course, options: SolveOptions) -> None:
        self.today, self.course, self.options = today, course, options
        self.members = len(today.members)
        self.problem = without_owners(today)
        self.plan: Plan | None = None
        self.drain: Time = NEVER
        self.unruled: Time = NEVER
        self.bound: Time = max(course.floor, course.mean(sum(self.problem.weights, Fraction(0))))
        lost = course.problem.assignable & ~self.problem.assignable
        if lost.any():  # nobody who is left reads them
            self.bound = NEVER
        self.free_bound: Time = self.bound
        self.solved = False

    @cached_property
    def _cache(self) -> SolveCache:
        return SolveCache(self.today)

    @cached_property
    def published(self) -> dict[str, Plan]:
        """Plans of the published strategies that break no pin and no cap."""
        plans = {}
        for name in PUBLISHED:
            try:
                plan = self._cache.plan(name)
            except EvenlagError:
                continue
            if plan_violation(plan) is None:
                plans[name] = plan
        return plans

    def time_of(self, strategy: str) -> Time | None:
        """Return how long a published strategy takes; None where it gives no plan."""
        plan = self.published.get(strategy)
        return None if plan is None else self.course.of_plan(plan)

    # ---- without a search ----

    def cheap_bound(self, deadline: Fraction) -> Time:
        """Raise the bound by what needs no search, whatever the counts; it holds for fewer members too."""
        if self.bound == NEVER or not self.problem.active.any():
            return self.free_bound
        ahead = self._ahead(deadline)
        try:
            cache = SolveCache(ahead.problem)
            load = cache.load_bounds(cache.rule(Balance.NONE)).least(ObjectiveKind.MAKESPAN)
        except InfeasibleError:
            self.bound = self.free_bound = NEVER
            return NEVER
        self.free_bound = max(self.free_bound, self._proven(ahead, load, deadline))
        self.bound = max(self.bound, self.free_bound)
        return self.free_bound

    def ruled_bound(self, deadline: Fraction) -> Time:
        """Raise the bound by what the counts say without a search."""
        if self.bound < NEVER and self.problem.active.any():
            ahead = self._ahead(deadline)
            cache = SolveCache(ahead.problem)
            rule = cache.rule(self.options.balance, self.options.slack)
            load = cache.load_bounds(rule).least(ObjectiveKind.MAKESPAN)
            self.bound = max(self.bound, self._proven(ahead, load, deadline))
        return self.bound

    # ---- by search ----

    def solve(self, deadline: Fraction, clock: Clock, work: float) -> None:
        """Look for the fastest plan, and prove how fast any can be."""
        self.solved = True
        if self.bound == NEVER:
            return
        if not self.problem.active.any():
            self._take(Plan(self.problem, self.problem.owner.copy()))
            return
        try:
            if self.members == 1:
                self._take_all()
            else:
                self._begin()
                self._search(self.options, deadline, clock, work)
        except InfeasibleError:
            self.bound = NEVER

    def solve_unruled(self, deadline: Fraction, clock: Clock | None, work: float) -> None:
        """Look for the fastest plan whatever the counts, which shows what the balance costs; no clock: no time."""
        self.unruled = self.drain
        settled = self.drain <= self.free_bound or self.options.balance == Balance.NONE
        if clock is None or self.plan is None or settled:
            return
        free = copy(self)
        free.bound = self.free_bound
        free._search(replace(self.options, balance=Balance.NONE, slack=0), deadline, clock, work)
        self.unruled, self.free_bound = min(self.unruled, free.drain), max(self.free_bound, min(free.bound, free.drain))

    def _take_all(self) -> None:
        """Give one member what it may have: there is no other plan."""
        self._cache.rule(self.options.balance, self.options.slack)  # raises what it raises
        self._take(Plan(self.problem, np.where(self.problem.assignable, 0, NOBODY).astype(np.int32)))
        self.bound = self.free_bound = self.drain

    def _begin(self) -> None:
        """Take the best of the published plans, and today's, that keeps the balance."""
        rule = self._cache.rule(self.options.balance, self.options.slack)
        plans = list(self.published.values())
        if len(self.today.members) == len(self.course.problem.members):
            plans.append(current_plan(self.today))
        for plan in plans:
            if plan_violation(plan) is None and rule.violation(plan.topic_counts) is None:
                self._take(Plan(self.problem, plan.member_of.copy()))

    def _take(self, plan: Plan) -> None:
        """Take a plan if it is faster."""
        time = self.course.of_plan(plan)
        if self.plan is None or time < self.drain:
            self.plan, self.drain = plan, time

    def _search(self, options: SolveOptions, deadline: Fraction, clock: Clock, work: float) -> None:
        """Look for the fastest plan; where it may be as fast as the hottest partition, to the end."""
        if self.course.steady:
            self._ask(options, Fraction(0), clock.left(), work)
        else:
            self._close_in(options, deadline, clock, work)
        if self.bound == self.course.floor < self.drain < NEVER and clock.left() >= LEAST_SECONDS:
            self._ask(replace(options, gap=0.0), Fraction(self.course.floor), clock.left(), work / PROBES)

    def _close_in(self, options: SolveOptions, deadline: Fraction, clock: Clock, work: float) -> None:
        """Ask for the least makespan of the lags as they will be at one time after another.

        A plan is through by t if the lags of then, lag + rate · t, are no more for any member than it reads until t; so
        where no plan's makespan is that low, none is through by t, nor earlier. The first t is the deadline, or where
        that is decided the bound: plans that are good then are good a little later. The next ones are just before the
        best plan is through: either a better plan shows or that there is hardly one.
        """
        near, at = NEAR, deadline
        if self.bound and not self.bound <= deadline < self.drain:
            at = Fraction(self.bound)
        for probe in range(PROBES):
            if probe and clock.left() < LEAST_SECONDS:
                return
            before = self.drain
            self._ask(options, at, clock.left() / 2, work / PROBES)
            if self.drain == NEVER:
                if not probe:
                    self._ask_at_last(options, clock.left() / 2, work / PROBES)
                if self.bound == NEVER:
                    return
            if self.drain == NEVER:
                at = 8 * max(at, Fraction(self.bound))
                continue
            near = NEAR if not probe or self.drain < before else 10 * near
            at = Fraction(self.drain) * (1 - min(near, Fraction(1, 2)))
            if self.bound >= min(at, self.drain * (1 - NEAR)):
                return

    def _ask(self, options: SolveOptions, at: Fraction, seconds: float, work: float) -> None:
        """Look for the least makespan at a time."""
        ahead = self._ahead(at)
        limited = options.within(max(seconds, LEAST_SECONDS), work)
        start = None if self.plan is None else Plan(ahead.problem, self.plan.member_of.copy())
        result = search(ahead.problem, limited, start=start, tie_break=False, explain=False)
        self.bound = max(self.bound, self._proven(ahead, result.bound, at))
        self._take(Plan(self.problem, result.plan.member_of.copy()))

    def _ask_at_last(self, options: SolveOptions, seconds: float, work: float) -> None:
        """Look for a plan in which everyone reads more than comes in; if there is none, nothing is ever drained."""
        course = self.course
        ahead = course.at_last(self.problem)
        limited = options.within(max(seconds, LEAST_SECONDS), work)
        result = search(ahead.problem, limited, tie_break=False, explain=False)
        if course.time_of_load(self.problem, result.bound, ahead.parts) > 1:
            self.bound = NEVER
        self._take(Plan(self.problem, result.plan.member_of.copy()))

    def _ahead(self, at: Fraction) -> Ahead:
        return Ahead(self.problem, 1) if self.course.steady else self.course.at(self.problem, at)

    def _proven(self, ahead: Ahead, load: Number, at: Fraction) -> Time:
        """Return the time that a bound of the largest load at some time proves.

        Where nothing comes in it is the time to read that load. Otherwise it proves something only if it is more than
        can be read until then: then nobody is through by then, and whoever is later has that much to read at least.
        """
        needed = self.course.time_of_load(self.problem, load, ahead.parts)
        return needed if self.course.steady or needed > at else Fraction(0)
