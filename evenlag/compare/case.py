"""A group under diagnosis: its plans, its times to drain, and its record, each computed once and only if needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from evenlag.compare.built_in import BuiltIn, built_in
from evenlag.compare.catch_up import Pace
from evenlag.compare.drain import NEVER, Course, Time
from evenlag.compare.history import BACKLOG, GIVEN, Interval, Snapshot, known_intervals
from evenlag.compare.members_needed import Size, SizeOptions, run, solving_of
from evenlag.compare.unlike_members import differing_speeds, with_speeds
from evenlag.errors import InvalidProblemError
from evenlag.figures import number
from evenlag.model.balance import Balance
from evenlag.model.names import Name
from evenlag.model.plan import Plan, current_plan, plain
from evenlag.model.problem import Problem
from evenlag.model.rates import SECOND
from evenlag.model.result import Result, StoppedBy
from evenlag.search.cache import SolveCache
from evenlag.search.clock import LEAST_SECONDS, Clock
from evenlag.search.entry import with_payoff
from evenlag.search.options import SolveOptions
from evenlag.search.solver import search

DEADLINE = Fraction(3600)  # seconds in which a group that never catches up should read all its lag, or longer:
SPARE = Fraction(6, 5)  # times the seconds that its backlog, or its hottest partition alone, takes
STILL = Fraction(15)  # seconds without a commit before a member counts as stuck
MINUTE = 60
REPLACED = Fraction(1, 2)  # share of intervals with changes of members at which a group counts as unsettled
PARTS = 4  # questions among which the time of a call is shared; the first plan gets two parts


class Measure(Name):
    """The figure by which remedies are compared."""

    SPREAD = "spread"
    DRAIN = "drain_seconds"


@dataclass(frozen=True, eq=False)
class Case:
    """A group, its record, and what follows from them.

    Attributes
    ----------
    record : tuple of Snapshot
        In order of time; may be empty.
    pace : Pace
        Rates of partitions and the capacity of members.
    drain_seconds : Fraction or None
        Seconds in which the group should read all its lag, if asked for.
    options : SolveOptions
        Options of the plans.
    clock : Clock
        Time of the call.
    known : Result or None
        The best plan of the group, if it was searched for already.
    free : Result or None
        The best plan without a rule on counts, likewise.
    cache : SolveCache or None
        Data of earlier searches for the same problem.
    """

    problem: Problem
    record: tuple[Snapshot, ...]
    pace: Pace
    drain_seconds: Fraction | None
    options: SolveOptions
    clock: Clock
    known: Result | None = None
    free: Result | None = None
    cache: SolveCache | None = None

    @cached_property
    def today(self) -> Plan:
        """Today's assignment."""
        return current_plan(self.problem)

    @cached_property
    def members(self) -> int:
        """Number of members that can take a partition."""
        return int(self.problem.active.sum())

    @cached_property
    def steps(self) -> list[Interval]:
        """The intervals of the record; none if it has fewer than two snapshots."""
        return known_intervals(self.record)

    @property
    def changes(self) -> list[Interval]:
        """The intervals of the record in which the members changed."""
        return [step for step in self.steps if step.before.problem.members != step.after.problem.members]

    @property
    def replaced(self) -> bool:
        """True if the members change all the time."""
        return len(self.changes) > 1 and len(self.changes) >= REPLACED * len(self.steps)

    # ---- plans

    def solve(self, problem: Problem, parts: float = 1, **others: Any) -> Result:
        """Return a plan of a group within a share of the time, with its payoff."""
        budget = self.options.time_limit * parts / PARTS
        seconds = self.clock.left() if self.options.deterministic else min(budget, self.clock.left())
        work = budget if self.options.deterministic else None
        options = replace(self.options.within(max(seconds, LEAST_SECONDS), work), **others)
        cache = self.cache if problem is self.problem else None
        return with_payoff(search(problem, options, cache=cache), options, self.pace.rates)

    @cached_property
    def solved(self) -> Result:
        """The best plan of the unchanged group."""
        return self.solve(self.problem, 2) if self.known is None else replace(self.known, plan=self.known.found)

    @property
    def cut_short(self) -> bool:
        """True if the time limit ended the search of an uneven group before it found a better plan."""
        return not self.solved.moves and self.solved.stopped_by == StoppedBy.TIME

    @cached_property
    def weighted(self) -> Result:
        """The best plan for the speeds of the record."""
        return self.solve(self.by_speed)

    @cached_property
    def unruled(self) -> Result:
        """The best plan without a count balance."""
        return self.solve(self.problem, balance=Balance.NONE) if self.free is None else self.free

    @cached_property
    def settings(self) -> BuiltIn | None:
        """The group's built-in assignors."""
        return built_in(self.problem, None if self.cache is None else self.cache.plan)

    # ---- times

    @property
    def knows_capacity(self) -> bool:
        """True if members cannot read faster: the capacity is given, or measured under a backlog."""
        capacity = self.pace.capacity
        return capacity is not None and capacity.source in (BACKLOG, GIVEN)

    @property
    def assumed_speed(self) -> str | None:
        """A sentence on the members' speed in the record; None if the speed is given or differs between members."""
        capacity = self.pace.capacity
        if capacity is None or capacity.source == GIVEN or self.speeds:
            return None
        seen = "members with a backlog read" if capacity.source == BACKLOG else "the fastest member read"
        return f"a member reads {number(capacity.rate)} messages/s, as {seen} in the record"

    @cached_property
    def deadline(self) -> Fraction:
        """Seconds in which the group should read all its lag: the given time, or whole minutes that it can achieve."""
        if self.drain_seconds is not None:
            return self.drain_seconds
        course, needed = self.course(self.problem, self.pace.rates_in(self.problem)), [DEADLINE]
        if course is not None:
            all_of_it = course.mean(sum(self.problem.weights, Fraction(0)))
            needed += [Fraction(SPARE * time) for time in (all_of_it, course.floor) if time != NEVER]
        return Fraction(-(-max(needed) // MINUTE) * MINUTE)

    @cached_property
    def speeds(self) -> Mapping[str, Fraction]:
        """Messages per second of members that read at different speeds although weights are equal; else empty."""
        return differing_speeds(self.record)

    @cached_property
    def by_speed(self) -> Problem:
        """The group with the speeds of its record as weights."""
        return with_speeds(self.problem, self.record)

    def course(self, problem: Problem, rates: list[Fraction]) -> Course | None:
        """Return the times of a group with these rates; None if no capacity is known."""
        capacity = self.pace.capacity
        if capacity is None:
            return None
        rate = min(self.speeds.values()) if self.speeds else capacity.rate
        return Course(problem, rates, rate, max(problem.weights, default=Fraction(1)))

    def drain(self, plan: Plan) -> Time | None:
        """Return the seconds until a plan of today's partitions has read all its lag; None if no capacity is known."""
        problem = plan.problem
        if self.speeds and problem.members == self.problem.members:
            problem = self.by_speed
        course = self.course(problem, self.pace.rates_in(problem))
        return None if course is None else course.of_plan(Plan(problem, plan.member_of.copy()))

    @cached_property
    def drain_today(self) -> Time | None:
        """Seconds until today's assignment has read all lag; None if unknown."""
        return NEVER if self.stuck and self.pace.capacity is not None else self.drain(self.today)

    @cached_property
    def size(self) -> Size | None:
        """The number of members that read all lag by the deadline; None if it cannot be found."""
        capacity = self.pace.capacity
        if capacity is None:
            return None
        known = {"balance": self.options.balance, "slack": self.options.slack}
        options = SizeOptions(
            drain_seconds=self.deadline,
            solving=solving_of(
                time_limit=max(self.clock.left() / 2, LEAST_SECONDS), deterministic=self.options.deterministic,
                seed=self.options.seed, threads=self.options.threads, **known,
            ),
        )  # fmt: skip
        try:
            return run(self.problem, options, capacity.rate, self.pace.rates_in(self.problem))
        except InvalidProblemError:  # the topics of new members are unknown
            return None

    # ---- members that do not commit

    @cached_property
    def stuck(self) -> list[int]:
        """Members with a growing lag that committed nothing at the end of the record."""
        if not self.steps:
            return []
        return [m for m in range(len(self.problem.members)) if self._stands_still(m)]

    def _stands_still(self, member: int) -> bool:
        """Return whether a member committed nothing for a while, though messages waited and more arrived."""
        seconds, waited, came = Fraction(0), True, 0
        name = self.problem.members[member]
        for step in reversed(self.steps):
            before = step.before.problem
            held = np.flatnonzero(before.owner == before.members.index(name)).tolist() if name in before.members else []
            if not held or not all(step.steady[p] and step.consumed[p] == 0 for p in held):
                break
            waited = waited and sum(int(before.lags[p]) for p in held) > 0
            came += sum(int(step.produced[p]) for p in held)
            seconds += Fraction(step.micros, SECOND)
        return seconds >= STILL and waited and came > 0

    # ---- documents

    def today_document(self) -> dict[str, Any]:
        """Return today's figures for JSON."""
        drain = self.drain_today
        return {
            "partitions": len(self.problem.lags),
            "members": len(self.problem.members),
            "lag": self.problem.whole_lag,
            "spread": plain(self.today.spread),
            "makespan": plain(self.today.makespan),
            "drain_seconds": None if drain is None or drain == NEVER else float(drain),
            "drains": None if drain is None else drain != NEVER,
        }

    @cached_property
    def hottest(self) -> int | None:
        """The partition with the most lag that a member can take; None if there is none."""
        there = np.flatnonzero(self.problem.assignable)
        return int(there[np.argmax(self.problem.lags[there])]) if len(there) else None
