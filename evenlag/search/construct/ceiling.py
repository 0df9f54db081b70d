"""A first plan under a ceiling on loads: the makespan is made small until it is low enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from evenlag.model.objective import EVERY_TERM, Objective, ObjectiveKind
from evenlag.search.incumbent import Candidate, Exhausted, Finding, Incumbent, begin
from evenlag.search.stage import Step, run_round
from evenlag.search.task import Target, Task


@dataclass(frozen=True)
class Ceiling:
    """The portfolio for the makespan alone, until a plan keeps the ceiling or none can.

    Attributes
    ----------
    steps : callable
        Gives that portfolio.
    """

    steps: Callable[[], tuple[Step, ...]]
    name: str = "ceiling"
    handles: ClassVar[frozenset[str]] = EVERY_TERM

    def applies(self, task: Task, best: Incumbent) -> bool:
        """Where loads have a ceiling and no plan keeps it yet."""
        return task.goal.ceiling is not None and not best.found and not task.problem.futures

    def run(self, task: Task, _best: Incumbent) -> Iterator[Finding]:
        """Offer a plan that keeps the ceiling; where none can, all plans have been seen."""
        ceiling = task.goal.ceiling
        assert ceiling is not None
        goal = Objective(ObjectiveKind.MAKESPAN, max_moves=task.goal.max_moves, across=task.goal.across)
        target = Target(cutoff=ceiling + task.problem.load_unit)
        side = replace(task, goal=goal, clock=task.clock, target=target, tie_break=False)
        found = begin(Incumbent(side))
        run_round(side, found, self.steps(), side.clock.allowance(), set())
        yield Candidate(found.plan, found.method)
        if found.bound > ceiling:
            yield Exhausted()
