"""A group of a given size: its drain time, with a plan and a bound, and the published strategies' times."""

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
PROBES = 8  # searches per group size if messages keep arriving
NEAR = Fraction(1, 10**6)  # required closeness of bound and plan in that case, as a fraction of the time


class Counted:
    """A group of a given size, with the times known so far.

    Parameters
    ----------
    today : Problem
        The group, with the partitions that its members own today.
    course : Course
        Lag, incoming rates and capacity.

    Attributes
    ----------
    plan : Plan or None
    drain, bound : Fraction or NEVER
        Seconds that the best plan takes, and a lower bound for any plan.
    unruled, free_bound : Fraction or NEVER
        The same without any count rule. Without one, more members can do whatever fewer can, so `free_bound` also holds
        for all smaller groups.
    solved : bool
        True once a search for plans was made.
    """

    def __init__(self, today: Problem, course: Course, options: SolveOptions) -> None:
        self.today, self.course, self.options = today, course, options
        self.members = len(today.members)
        self.problem = without_owners(today)
        self.plan: Plan | None = None
        self.drain: Time = NEVER
        self.unruled: Time = NEVER
        self.bound: Time = max(course.floor, course.mean(sum(self.problem.weights, Fraction(0))))
        lost = course.problem.assignable & ~(self.problem.assignable & self.problem.active.any())
        if lost.any():  # no remaining member may take these partitions
            self.bound = NEVER
        self.free_bound: Time = self.bound
        self.solved = False

    @cached_property
    def _cache(self) -> SolveCache:
        return SolveCache(self.today)

    @cached_property
    def published(self) -> dict[str, Plan]:
        """Plans of the published strategies that respect pins and caps."""
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
        """Return the time of a published strategy; None if it gives no valid plan."""
        plan = self.published.get(strategy)
        return None if plan is None else self.course.of_plan(plan)

    # ---- without a search ----

    def cheap_bound(self, deadline: Fraction) -> Time:
        """Raise the bound without a search and regardless of counts; the result also holds for fewer members."""
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
        """Raise the bound by the count rule, without a search."""
        if self.bound < NEVER and self.problem.active.any():
            ahead = self._ahead(deadline)
            cache = SolveCache(ahead.problem)
            rule = cache.rule(self.options.balance, self.options.slack)
            load = cache.load_bounds(rule).least(ObjectiveKind.MAKESPAN)
            self.bound = max(self.bound, self._proven(ahead, load, deadline))
        return self.bound

    # ---- by search ----

    def solve(self, deadline: Fraction, clock: Clock, work: float) -> None:
        """Search for the fastest plan, and prove a bound."""
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
        """Search for the fastest plan without a count rule, to show what the balance costs; skip it without a clock."""
        self.unruled = self.drain
        settled = self.drain <= self.free_bound or self.options.balance == Balance.NONE
        if clock is None or self.plan is None or settled:
            return
        free = copy(self)
        free.bound = self.free_bound
        free._search(replace(self.options, balance=Balance.NONE, slack=0), deadline, clock, work)
        self.unruled, self.free_bound = min(self.unruled, free.drain), max(self.free_bound, min(free.bound, free.drain))

    def _take_all(self) -> None:
        """Give the only member everything it may have, which is the only plan."""
        self._cache.rule(self.options.balance, self.options.slack)  # raises InfeasibleError where there is no plan
        self._take(Plan(self.problem, np.where(self.problem.assignable, 0, NOBODY).astype(np.int32)))
        self.bound = self.free_bound = self.drain

    def _begin(self) -> None:
        """Take the best of the published plans and today's that keeps the balance."""
        rule = self._cache.rule(self.options.balance, self.options.slack)
        plans = list(self.published.values())
        if len(self.today.members) == len(self.course.problem.members):
            plans.append(current_plan(self.today))
        for plan in plans:
            if plan_violation(plan) is None and rule.violation(plan.topic_counts) is None:
                self._take(Plan(self.problem, plan.member_of.copy()))

    def _take(self, plan: Plan) -> None:
        """Take the plan if it is faster."""
        time = self.course.of_plan(plan)
        if self.plan is None or time < self.drain:
            self.plan, self.drain = plan, time

    def _search(self, options: SolveOptions, deadline: Fraction, clock: Clock, work: float) -> None:
        """Search for the fastest plan; if it may match the hottest partition's time, search until proven."""
        if self.course.steady:
            self._ask(options, Fraction(0), clock.left(), work)
        else:
            self._close_in(options, deadline, clock, work)
        if self.bound == self.course.floor < self.drain < NEVER and clock.left() >= LEAST_SECONDS:
            self._ask(replace(options, gap=0.0), Fraction(self.course.floor), clock.left(), work / PROBES)

    def _close_in(self, options: SolveOptions, deadline: Fraction, clock: Clock, work: float) -> None:
        """Search for the least makespan of the projected lags, for a sequence of times.

        A plan drains by time t if no member's share of the lags at t, lag + rate · t, exceeds what the member reads
        until t. If no plan has so small a makespan, none drains by t or earlier. The first t is the deadline, or the
        bound if the deadline is decided: plans that are good at that time are also good slightly later. The next times
        lie just before the best plan's time, which yields either a better plan or a proof that none is much better.
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
        """Search for the least makespan at a time."""
        ahead = self._ahead(at)
        limited = options.within(max(seconds, LEAST_SECONDS), work)
        start = None if self.plan is None else Plan(ahead.problem, self.plan.member_of.copy())
        result = search(ahead.problem, limited, start=start, tie_break=False, explain=False)
        self.bound = max(self.bound, self._proven(ahead, result.bound, at))
        self._take(Plan(self.problem, result.plan.member_of.copy()))

    def _ask_at_last(self, options: SolveOptions, seconds: float, work: float) -> None:
        """Search for a plan in which every member reads more than it receives; without one, the group never drains."""
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
        """Return the time that a lower bound on the largest load at a time proves.

        If nothing arrives, it is the time to read that load. Otherwise the bound proves something only if the load
        exceeds what can be read until then: then no plan drains by then, and a later one has at least that much to
        read.
        """
        needed = self.course.time_of_load(self.problem, load, ahead.parts)
        return needed if self.course.steady or needed > at else Fraction(0)
