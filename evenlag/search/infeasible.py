"""The error where no plan keeps the budgets and the ceiling: which limit it is, and the least that can be kept."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from evenlag.errors import InfeasibleError, NoPlanFoundError
from evenlag.figures import number
from evenlag.model.objective import MOVES, Objective, ObjectiveKind
from evenlag.model.plan import Number
from evenlag.search.incumbent import Incumbent
from evenlag.search.stage import Step, run_steps
from evenlag.search.task import Target, Task

SHARE = 0.2  # of the time left, to find the least ceiling


def no_plan(best: Incumbent, steps: tuple[Step, ...]) -> InfeasibleError:
    """Return the error for a task without a plan; `steps` look for the least ceiling."""
    task, goal = best.task, best.task.goal
    place = f"group {task.problem.group!r}"
    for pair in goal.pairs:
        if pair.budget is None:
            continue
        least = task.cache.cheapest_plan(task.rule, pair.costs, task.clock.room(found=False))
        if least is not None and least.bound > pair.budget:
            return InfeasibleError(
                f"{place}: the budget of {pair.name} is {pair.budget:,}, but {task.rule.balance} balance needs "
                f"{least.bound:,}: allow that, or relax the balance"
            )
    if goal.ceiling is not None:
        reached, bound = _least_ceiling(task, steps)
        if bound > goal.ceiling:
            needed = f"{_no_less(bound)} messages" if bound >= reached else f"at least {number(bound)} messages"
            return InfeasibleError(
                f"{place}: max_load is {float(goal.ceiling):,.10g}, but the fullest member needs {needed}: "
                f"{_no_less(reached)} can be kept; raise max_load to that, or add members"
            )
    limits = [f"{pair.name} {pair.budget:,}" for pair in goal.pairs if pair.budget is not None]
    limits += [f"{MOVES} {goal.max_moves}"] if goal.max_moves is not None else []
    limits += [f"max_load {number(goal.ceiling)}"] if goal.ceiling is not None else []
    together = f"all of these limits together: {', '.join(limits)}"
    if best.exhausted:
        return InfeasibleError(f"{place}: no plan keeps {together}; raise one of them")
    return NoPlanFoundError(
        f"{place}: no plan was found within the time that keeps {together}; give it more time, or raise one of them"
    )


def _least_ceiling(task: Task, steps: tuple[Step, ...]) -> tuple[Number, Number]:
    """Return the lowest largest load that was found, and a lower bound of any, whatever is moved or crossed."""
    goal = Objective(ObjectiveKind.MAKESPAN, across=task.goal.across)
    side = replace(task, goal=goal, clock=task.clock.afterwards(SHARE), target=Target(), tie_break=False)
    found = run_steps(side, Incumbent(side), steps)
    return found.value, max(found.bound, side.least_base)


def _no_less(load: Number) -> str:
    """Return a load as people read it, rounded up: who asks for that much gets it."""
    return number(Fraction(math.ceil(load * 100), 100) if load < 1000 else math.ceil(load))
