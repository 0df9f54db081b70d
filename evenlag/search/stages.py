"""The stages, for now in one file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil, floor

import numpy as np

from evenlag.errors import EvenlagError
from evenlag.heuristics import HEURISTICS
from evenlag.model.backends import BACKENDS, LARGEST, Limits
from evenlag.model.backends.runner import run as run_backend
from evenlag.model.balance import Balance, CountRule
from evenlag.model.bounds import lower_bound
from evenlag.model.check import violation
from evenlag.model.formulation import boolean_count, formulate
from evenlag.model.move_bounds import MoveBound
from evenlag.model.objective import Objective
from evenlag.model.plan import Plan, whole
from evenlag.model.problem import NOBODY, Index
from evenlag.search.construct import differencing
from evenlag.search.construct.greedy import deal, lightest_first
from evenlag.search.construct.relabel import keep_owners
from evenlag.search.exact import move_dp
from evenlag.search.exact.set_partitioning import best_cover, provable
from evenlag.search.improve.equalize import even_out
from evenlag.search.improve.local_search import improve
from evenlag.search.improve.relocation import relocate
from evenlag.search.incumbent import Bound, Candidate, Finding, Incumbent, Note, begin
from evenlag.search.stage import run_steps
from evenlag.search.task import Task


def fresh_plan(rule: CountRule) -> Plan:
    """Start from nothing: by differencing, or longest first, where members are alike, else greedily."""
    if not differencing.applies(rule):
        return deal(rule)
    return (lightest_first if rule.balance == Balance.NONE else differencing.difference)(rule)


@dataclass(frozen=True)
class Construct:
    """A plan from nothing."""

    name: str = "construct"

    def applies(self, _task: Task, _best: Incumbent) -> bool:
        """For all."""
        return True

    def run(self, task: Task, _best: Incumbent, _share: float) -> Iterator[Finding]:
        """Offer one plan."""
        yield Candidate(fresh_plan(task.rule))


@dataclass(frozen=True)
class Baselines:
    """The published heuristics, as they are."""

    name: str = "baselines"
    largest: Mapping[str, int] = field(default_factory=lambda: {"swap-balance": 2_000})

    def applies(self, _task: Task, _best: Incumbent) -> bool:
        """For all."""
        return True

    def run(self, task: Task, best: Incumbent, _share: float) -> Iterator[Finding]:
        """Offer each that is defined for the problem."""
        for name in HEURISTICS:
            if best.found and task.clock.passed():
                return
            if len(task.problem.lags) > self.largest.get(name, np.inf):
                continue
            try:
                plan = task.cache.plan(name)
            except EvenlagError:  # not defined for this problem, so no baseline of it
                continue
            yield Candidate(plan, name, fallback=True)


@dataclass(frozen=True)
class Greedy:
    """Plans that keep every rule, where no baseline does."""

    name: str = "greedy"

    def applies(self, _task: Task, best: Incumbent) -> bool:
        """Where no baseline keeps the rule."""
        return not best.found

    def run(self, task: Task, _best: Incumbent, _share: float) -> Iterator[Finding]:
        """Offer the plan with the fewest moves, and a fresh one where the budget of moves allows it."""
        if task.has_owners:
            yield Candidate(task.fewest_moves_plan)
        if task.goal.max_moves is None or not task.has_owners:
            yield Candidate(deal(task.rule))


@dataclass(frozen=True)
class Bounds:
    """What needs no solver: how high the largest and how low the smallest load must be, and the moves that takes."""

    name: str = "bounds"

    def applies(self, _task: Task, best: Incumbent) -> bool:
        """Once."""
        return self.name not in best.seconds

    def run(self, task: Task, best: Incumbent, share: float) -> Iterator[Finding]:
        """Prove the bound without moves, then with them."""
        started = task.clock.spent
        moves = 0
        if task.has_owners and (task.target.cutoff is None or task.goal.stickiness):
            moves, _ = task.rule.fewest_moves()
        objective = lower_bound(task.bounds, task.goal, moves)
        yield Bound(objective, task.bounds.least(task.goal.kind), moves)
        if task.moves_count and (task.clock.deterministic or task.clock.left() > 2 * (task.clock.spent - started)):
            yield bound_with_moves(task, best, share)


def bound_with_moves(task: Task, best: Incumbent, share: float) -> Bound:
    """Bound the objective by the moves that a spread takes."""
    moves = MoveBound(task.rule, task.bounds, best.moves_bound, spread=task.spread_counts, least=best.base_bound)
    objective = moves.objective(task.goal.stickiness, task.goal.max_moves, task.clock.stop(share))
    return Bound(whole(objective))


@dataclass(frozen=True)
class LocalSearch:
    """Single swaps and shifts."""

    name: str = "local search"

    def applies(self, _task: Task, _best: Incumbent) -> bool:
        """For all."""
        return True

    def run(self, task: Task, best: Incumbent, share: float) -> Iterator[Finding]:
        """Go on from the best plan to a local optimum."""
        from_current = best.from_current
        plan = improve(best.plan, task.rule, task.goal, task.clock.stop(share))
        yield Candidate(plan, from_current=from_current)


@dataclass(frozen=True)
class Relocation:
    """From the fewest moves towards even loads, as far as moves are worth it; again and again, with noise."""

    name: str = "relocation"
    again: bool = False
    first: int = 0
    few: int = 100
    most: int = 1_000
    greeds: tuple[float, ...] = (1.0, 0.6, 0.3, 0.0)
    noise: float = 0.5

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """For groups with owners."""
        return task.has_owners

    def _starts(self, task: Task) -> range:
        if self.again:
            return range(self.most, 2 * self.most)
        if boolean_count(task.problem) > LARGEST["cp-sat"]:
            return range(self.most)
        return range(self.few if task.moves_count else 2 * len(self.greeds))

    def run(self, task: Task, best: Incumbent, share: float) -> Iterator[Finding]:
        """Offer the best plan of each relocation, and what local search makes of it."""
        start = task.fewest_moves_plan
        yield Candidate(start, "greedy")
        stop = task.clock.stop(share)
        start = even_out(start, task.rule, best.wanted, task.clock.stop(0.05), task.seed, keep_home=True)
        yield Candidate(start)
        for number in self._starts(task):
            most = best.moves_worth
            if stop() or best.settled or (most is not None and most < start.moves):
                break
            points = relocate(
                start, task.rule, best.wanted, stop, task.seed + number,
                most_moves=most, greed=self.greeds[number % len(self.greeds)],
                noise=0.0 if number < len(self.greeds) else self.noise,
            )  # fmt: skip
            point = min(points, key=task.goal.value)
            if task.goal.key(point) < task.goal.key(best.plan):
                yield Candidate(point)
                yield Candidate(improve(point, task.rule, task.goal, task.clock.stop(0.02)), "local search")
        from_current = best.from_current
        plan = improve(best.plan, task.rule, task.goal, task.clock.stop(0.1))
        yield Candidate(plan, "local search", from_current=from_current)


@dataclass(frozen=True)
class LoadsAlone:
    """The best spread that there is whatever is moved: less is not to be had by any moves."""

    name: str = "loads alone"

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Where moves count, and the group is small enough to prove the best spread without them."""
        return task.moves_count and task.spread_counts and provable(task.rule)

    def run(self, task: Task, best: Incumbent, share: float) -> Iterator[Finding]:
        """Run the whole portfolio with moves free; what it proves bounds plans with moves too."""
        side = Task(
            task.rule, Objective(task.goal.kind), task.clock.part(share), task.cache, task.steps,
            seed=task.seed, threads=task.threads, tie_break=False,
        )  # fmt: skip
        freed = run_steps(side, begin(Incumbent(side)))
        yield Candidate(freed.plan, freed.method)
        if freed.bound > best.base_bound:
            yield Bound(base=freed.bound)
            yield bound_with_moves(task, best, 0.1)


@dataclass(frozen=True)
class MoveDP:
    """All that members may give and take in a better plan, and what of that fits together."""

    name: str = "move-dp"
    least_seconds: float = 0.02
    full_seconds: float = 2.0

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Where moves count or the objective is the makespan, in small groups of members alike."""
        return not task.spread_alone and move_dp.applies(task.rule, task.goal)

    def run(self, task: Task, best: Incumbent, share: float) -> Iterator[Finding]:
        """Offer the best plan there is, or prove how good one can be."""
        seconds = share * task.clock.worth()
        if seconds < self.least_seconds:
            return
        stop, size = task.clock.stop(share), min(seconds / self.full_seconds, 1.0)
        low, high = best.wanted
        window = floor(low), ceil(high)
        plan, bound = move_dp.best_transfers(
            task.rule, task.goal, window, ceil(best.bound), int(best.value), stop, size, least=ceil(best.base_bound)
        )
        if plan is not None:
            yield Candidate(plan)
        yield Bound(bound)


@dataclass(frozen=True)
class SetPartitioning:
    """List what a member may hold in a better plan, and cover the partitions."""

    name: str = "set partitioning"
    size: float = 1.0
    by_solver: bool = True
    full_seconds: float = 1.0

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Where only the spread counts, in small groups of members alike."""
        return task.spread_alone and provable(task.rule)

    def run(self, task: Task, best: Incumbent, share: float) -> Iterator[Finding]:
        """Offer a better plan, or prove that there is none."""
        clock = task.clock
        limits = None
        if self.by_solver:
            limits = Limits(0.7 * clock.left(), clock.work(), task.threads, task.seed)
        size = self.size * min(clock.worth() / self.full_seconds, 1.0)
        window = (task.bounds.min_load_ub, task.bounds.max_load_lb)
        plan, bound = best_cover(task.rule, window, int(best.value), limits, clock.stop(share), size)
        if plan is not None:
            yield Candidate(plan)
        if bound is not None:
            yield Bound(bound)


@dataclass(frozen=True)
class Equalize:
    """Search for loads inside the bounds, moves not counted."""

    name: str = "equalize"
    fresh: bool = True

    def applies(self, task: Task, best: Incumbent) -> bool:
        """Where plans may move more than half of what is owned, and `LoadsAlone` has not done it."""
        most = best.moves_worth
        few = most is not None and most < int((task.problem.owner != NOBODY).sum()) // 2
        return not few and not LoadsAlone().applies(task, best)

    def run(self, task: Task, best: Incumbent, share: float) -> Iterator[Finding]:
        """Offer one plan."""
        start = fresh_plan(task.rule) if self.fresh else best.plan
        plan = even_out(start, task.rule, best.wanted, task.clock.stop(share), task.seed)
        if self.fresh and task.has_owners and differencing.applies(task.rule):
            plan = keep_owners(plan)
        yield Candidate(plan)


@dataclass(frozen=True)
class Restarts:
    """Equalize from the best plan, drawing anew, for the time that is left."""

    name: str = "equalize"
    most_idle: int = 100

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Where only the spread counts."""
        return task.spread_alone

    def run(self, task: Task, best: Incumbent, share: float) -> Iterator[Finding]:
        """Offer a plan for each draw, until none has been better for long."""
        stop, seed, start = task.clock.stop(share), task.seed, best.plan
        idle = 0
        while idle < self.most_idle and not stop() and not best.settled:
            seed, idle, before = seed + 1, idle + 1, best.plan
            start = even_out(start, task.rule, best.wanted, stop, seed)
            yield Candidate(start)
            if best.plan is not before:
                idle = 0


@dataclass(frozen=True)
class Mip:
    """The mixed-integer program, by one of the backends in a process of its own."""

    backend: str
    said: bool = True
    least_seconds: float = 0.02

    @property
    def name(self) -> str:
        """The backend's."""
        return self.backend

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Where the program is not too large, or that is to be said."""
        return self.said or boolean_count(task.problem) <= LARGEST[self.backend]

    def run(self, task: Task, best: Incumbent, share: float) -> Iterator[Finding]:
        """Offer the backend's plan, and what local search makes of it; take its bound."""
        booleans = boolean_count(task.problem)
        if booleans > LARGEST[self.backend]:
            yield Note(f"{self.backend}: not tried, its model would have {booleans:,} booleans")
            return
        clock = task.clock
        if clock.worth() < self.least_seconds:
            return
        mip = formulate(task.problem, task.rule, task.goal)
        hint = mip.encode(best.plan.member_of)
        limits = Limits(share * clock.left(), clock.work(share), task.threads, task.seed)
        outcome = run_backend(BACKENDS[self.backend], mip, hint, limits)
        if outcome.failure is not None:
            yield Note(f"{self.backend}: {outcome.failure}")
        if outcome.values is not None:
            yield from self._solution(mip.decode(outcome.values), task, best)
        if outcome.bound is not None:
            yield Bound(mip.in_messages(outcome.bound))

    def _solution(self, member_of: Index | None, task: Task, best: Incumbent) -> Iterator[Finding]:
        if member_of is None:
            yield Note(f"{self.backend}: discarded a solution that gives a partition to nobody or to two")
            return
        plan = Plan(task.problem, member_of)
        broken = violation(plan, task.rule, task.goal)
        if broken is not None:
            yield Note(f"{self.backend}: discarded a solution that breaks a rule: {broken}")
        elif task.goal.value(plan) < best.value:
            yield Candidate(plan)
            yield Candidate(improve(plan, task.rule, task.goal, task.clock.stop()))
