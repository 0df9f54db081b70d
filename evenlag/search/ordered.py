"""Criteria in an order: each made least by itself, then kept as a budget of what comes after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from evenlag.model.objective import Objective
from evenlag.model.plan import Number, Plan
from evenlag.search.incumbent import Incumbent, begin
from evenlag.search.stage import Step, run_steps
from evenlag.search.task import Target, Task

EACH = 0.65  # of the time left, for one criterion: loads come after them all


@dataclass(frozen=True)
class Criterion:
    """What came of one criterion.

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
        """Whether no plan has less."""
        return self.bound >= self.value


def in_order(
    task: Task, steps: Callable[[Objective], tuple[Step, ...]], start: Plan | None
) -> tuple[Task, Plan | None, tuple[Criterion, ...]]:
    """Make one criterion after the other as small as it can be.

    Parameters
    ----------
    task : Task
        Its goal names the criteria in `first`.
    steps : callable
        Gives the portfolio for an objective.
    start : Plan, optional

    Returns
    -------
    task : Task
        With these criteria as budgets, and nothing first.
    plan : Plan or None
        Keeps them all; None where no plan keeps the budgets and the ceiling, or none was found.
    criteria : tuple of Criterion
    """
    goal = task.goal
    found: list[Criterion] = []
    for name in goal.first:
        clock = task.clock.part(EACH)
        side = replace(task, goal=goal.criterion(name), clock=clock, target=Target(), tie_break=False)
        best = run_steps(side, begin(Incumbent(side), start), steps(side.goal))
        if not best.found:
            return replace(task, goal=replace(goal, first=())), None, tuple(found)
        found.append(Criterion(name, best.value, best.bound, tuple(best.notes), goal.budget(name)))
        start, goal = best.plan, goal.within(name, int(best.value))
    return replace(task, goal=replace(goal, first=())), start, tuple(found)
