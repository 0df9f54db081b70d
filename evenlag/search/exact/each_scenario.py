"""Each scenario by itself: no plan for all of them is better in one than the best plan for that one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from evenlag.model.certificate import not_certified
from evenlag.model.plan import Plan
from evenlag.search.incumbent import Bound, Candidate, Finding, Incumbent, Note, begin
from evenlag.search.stage import Step, run_steps
from evenlag.search.task import Task


@dataclass(frozen=True)
class EachScenario:
    """Each scenario by itself: its plan is one for all, and the bounds of all of them make one.

    Attributes
    ----------
    steps : callable
        Gives the portfolio for a group without scenarios.
    most_partitions : int
        With more, bounds that need no solver say as much, and plans for one scenario are of little use.
    """

    steps: Callable[[], tuple[Step, ...]]
    most_partitions: int = 128
    name: str = "each scenario"

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """In small groups."""
        return bool(task.problem.futures) and len(task.problem.lags) <= self.most_partitions

    def run(self, task: Task, _best: Incumbent, share: float) -> Iterator[Finding]:
        """Run the portfolio on one scenario after another."""
        bounds = []
        for alone in task.each:
            side = replace(alone, clock=task.clock.part(share / len(task.each)), tie_break=False)
            found = run_steps(side, begin(Incumbent(side)), self.steps())
            yield Candidate(Plan(task.problem, found.plan.member_of), found.method)
            yield from map(Note, found.notes)
            if found.clocked:
                yield Note(f"{self.name}: ended by the wall clock, not by its work limit", clocked=True)
            bounds.append(found.bound)
        reason = "the bounds of several scenarios were put together"
        yield Bound(task.goal.combined(task.problem, bounds), certificate=not_certified(reason))
