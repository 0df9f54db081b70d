"""The stages, for now in one file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evenlag.model.backends import LARGEST
from evenlag.model.formulation import boolean_count
from evenlag.model.problem import NOBODY
from evenlag.search.construct import differencing
from evenlag.search.construct.fresh import fresh_plan
from evenlag.search.construct.relabel import keep_owners
from evenlag.search.exact.loads_alone import LoadsAlone
from evenlag.search.improve.equalize import even_out
from evenlag.search.improve.local_search import improve
from evenlag.search.improve.relocation import relocate
from evenlag.search.incumbent import Candidate, Finding, Incumbent
from evenlag.search.task import Task


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
