"""The frontier against crossings, moved size or one of the problem's own costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from evenlag.compare.budget_search import BudgetSearch, within
from evenlag.compare.curve import Curve, Frontier, knee
from evenlag.errors import InvalidProblemError
from evenlag.model.asked_terms import NEEDED
from evenlag.model.names import one_of
from evenlag.model.objective import measure_of, names_of_costs
from evenlag.model.plan import Plan
from evenlag.model.problem import Problem
from evenlag.search.cache import SolveCache
from evenlag.search.clock import Clock
from evenlag.search.options import SolveOptions
from evenlag.search.solver import search

MOST_BUDGETS = 14  # budgets between the least cost and the cost of the least spread
LEAST, WIDEST = 0.2, 0.2  # shares of the time for the two ends of the frontier: least cost, least spread
SOLVING = {False: 1.0, True: 0.4}  # share of the time left, by deterministic; smaller as work may take longer
_SIZES = "the problem needs move_sizes"


def cost_frontier(
    problem: Problem, against: str, options: SolveOptions, progress: Callable[[int, int], None] | None
) -> Frontier:
    """Find the best plans for rising budgets of one cost, each solved separately.

    Parameters
    ----------
    problem : Problem
        A problem without scenarios.
    against : str
        "crossings", "moved_size", "moves" or one of the problem's own costs.
    options : SolveOptions
        Moves and all other costs are free.
    progress : callable, optional
        As in `frontier`.

    Raises
    ------
    InvalidProblemError
        There is no such cost, or the problem lacks its data.
    """
    cost = _measure(problem, against)
    clock = Clock(options.time_limit, options.deterministic, options.work)
    cache, allowed = SolveCache(problem), clock.allowance()
    first = replace(options, first=(against,))
    least = search(problem, within(first, LEAST * allowed, clock), cache=cache, explain=False)
    widest = search(problem, within(options, WIDEST * allowed, clock), cache=cache, explain=False)
    curve = Curve([least.plan, widest.plan], cost)
    low, high = cost(least.plan), cost(widest.plan)
    curve.prove(low, least.bound)
    curve.prove(max(low, high), widest.bound)
    budgets = _budgets(low, high)
    asked = BudgetSearch(
        [low, *budgets], lambda budget: options.with_budget(against, budget), widest, clock, cache, progress
    )
    asked.run(curve, SOLVING[options.deterministic])
    points = curve.points([low, *budgets, max(low, high)])
    return Frontier(problem, options.balance, points, knee(points), against)


def _measure(problem: Problem, against: str) -> Callable[[Plan], int]:
    """Return a function that gives the units of the cost in a plan."""
    one_of(names_of_costs(problem), against, "against")
    measure = measure_of(problem, against)
    if measure is None:
        raise InvalidProblemError(f"against {against!r}: {NEEDED.get(against, _SIZES)}")
    return measure


def _budgets(low: int, high: int) -> list[int]:
    """Return every budget between the ends while they are few, else a selection that is denser at low cost."""
    if high - low - 1 <= MOST_BUDGETS:
        return list(range(low + 1, high))
    steps = range(1, MOST_BUDGETS + 1)
    return sorted({low + max((high - low) * i * i // (MOST_BUDGETS + 1) ** 2, 1) for i in steps})
