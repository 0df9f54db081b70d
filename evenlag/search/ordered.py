"""Criteria in an order: each made least by itself, then kept as a budget of what comes after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from evenlag.model.objective import Objective
from evenlag.model.plan import Number, Plan
from evenlag.model.result import Result
from evenlag.search.incumbent import Bound, Candidate, Incumbent, begin
from evenlag.search.stage import Step, run_steps
from evenlag.search.task import Target, Task

EACH = 0.65  # of the time left, for one criterion: loads come after them all


@dataclass(frozen=True)
class Criterion:
    """Outcome of one criterion.

    Attributes
    ----------
    name : str
    value, bound : number
        Units of the best plan, and of any plan at least, given the criteria before.
    notes : tuple of str
        What the user should know of the stages.
    limit : int or None
        The budget that was asked for.
    """

    name: str
    value: Number
    bound: Number
    notes: tuple[str, ...] = ()
    limit: int | None = None

    @property
    def proven(self) -> bool:
        """Return True if it is proven that no plan has less."""
        return self.bound >= self.value


def in_order(
    task: Task, steps: Callable[[Objective], tuple[Step, ...]], start: Plan | None, known: Result | None = None
) -> tuple[Task, Plan | None, tuple[Criterion, ...], Result | None]:
    """Make one criterion after the other as small as it can be.

    Parameters
    ----------
    task : Task
        Its goal names the criteria in `first`.
    steps : callable
        Gives the portfolio for an objective.
    start : Plan, optional
    known : Result, optional
        What came of the same question before: no criterion comes out worse.

    Returns
    -------
    task : Task
        With these criteria as budgets, and nothing first.
    plan : Plan or None
        Keeps them all; None where no plan keeps the budgets and the ceiling, or none was found.
    criteria : tuple of Criterion
    known : Result or None
        The same, without bounds that hold only where criteria are as low as they were.
    """
    goal = task.goal
    found: list[Criterion] = []
    before = known
    for name in goal.first:
        clock = task.clock.part(EACH)
        side = replace(task, goal=goal.criterion(name), clock=clock, target=Target(), tie_break=False)
        best = begin(Incumbent(side), start)
        if before is not None:
            best.take(Candidate(before.plan, before.method, before.fallback), "start")
        if known is not None:
            best.take(Bound(known.cost_bounds.get(name)), "start")
        best = run_steps(side, best, steps(side.goal))
        if not best.found:
            return replace(task, goal=replace(goal, first=())), None, tuple(found), None
        found.append(Criterion(name, best.value, best.bound, tuple(best.notes), goal.budget(name)))
        if known is not None and best.value > side.goal.value(known.plan):
            known = None  # its bounds are of plans that have less of this
        start, goal = best.plan, goal.within(name, int(best.value))
    if known is None and before is not None:
        known = replace(before, bound=0, bound_by=None, moves_bound=0, proof=None)
    return replace(task, goal=replace(goal, first=())), start, tuple(found), known
