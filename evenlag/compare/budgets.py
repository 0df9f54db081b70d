"""The frontier: the least spread for each budget of moves, or of another cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache as once

from evenlag.compare.budget_search import BudgetSearch, within
from evenlag.compare.cost_budgets import cost_frontier
from evenlag.compare.curve import Curve, Frontier, knee
from evenlag.model.backends import fits
from evenlag.model.balance import Balance, CountRule
from evenlag.model.bounds import LoadBounds
from evenlag.model.literals import BalanceWord
from evenlag.model.move_bounds import MoveBound
from evenlag.model.names import spelled
from evenlag.model.objective import FEWEST_MOVES, MOVES
from evenlag.model.plan import Plan, whole
from evenlag.model.problem import NOBODY, Problem, check_problem
from evenlag.search.cache import SolveCache
from evenlag.search.clock import Clock, Stop
from evenlag.search.construct.fresh import fewest_moves_plan
from evenlag.search.exact import move_patterns
from evenlag.search.exact.move_patterns import GridParams, MoveGrids, cheapest_window
from evenlag.search.improve.relocation import Way, relocate
from evenlag.search.options import SolveOptions
from evenlag.search.solver import search

PATHS = (
    (1.0, 0.0),
    (0.6, 0.0),
    (1.0, 0.5),
    (0.3, 0.5),
)  # greed and noise of relocations

# Shares of the time left, in order: bounds from move counts, solving budget by budget, bounds again. They are smaller
# with work limits, because a search may then take longer than by the clock.
BEFORE = 0.3
SHARES = {False: (0.8, 1.0), True: (0.3, 0.1)}

SOLVED, PICKED = 1.25, 1.05  # growth of the steps between budgets that are solved, and between those with known plans


@spelled
def frontier(
    problem: Problem,
    *,
    against: str = MOVES,
    balance: Balance | BalanceWord = Balance.BOTH,
    time_limit: float = 10.0,
    seed: int = 0,
    deterministic: bool = False,
    work: float | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Frontier:
    """Find the best plans for rising budgets of a cost, from the least that the balance allows to the largest useful.

    Against moves, relocations give plans for all budgets; if the MIP is small, budgets are then solved one by one, the
    widest gap first. Each point's bound is the better of the solver's and of a bound on the effect of that many moves.
    Against any other cost, moves are free, and up to 14 budgets are solved between the two ends.

    Parameters
    ----------
    problem : Problem
        Judged by current lags; scenarios are ignored.
    against : str
        The cost to vary: "moves", "crossings", "moved_size", or one of the problem's own costs.
    balance : {"both", "topic", "group", "none"}
        The counts that must be even, as in `solve`.
    time_limit : float
        Seconds for the whole curve.
    seed, deterministic, work, threads
        As in `solve`.
    progress : callable, optional
        Called with (budgets done, budgets in all); the time used counts as budgets done, if that is more.

    Returns
    -------
    Frontier

    Raises
    ------
    InvalidProblemError
        A parameter has an invalid value; the message names both.
    InfeasibleError
        The members' capacity is too small for all partitions.
    """
    check_problem(problem)
    problem = problem.now
    options = SolveOptions(
        balance=balance,
        stickiness=0,
        time_limit=time_limit,
        work=work,
        seed=seed,
        deterministic=deterministic,
        threads=threads,
    )
    if against != MOVES or problem.units is not problem:
        return cost_frontier(problem, against, options, progress)
    clock, cache = Clock(time_limit, deterministic, work), SolveCache(problem)
    allowed = clock.allowance()
    least = replace(options, stickiness=FEWEST_MOVES)
    fewest = search(problem, within(least, 0.15 * allowed, clock), cache=cache, explain=False)
    widest = search(problem, within(options, 0.2 * allowed, clock), cache=cache, explain=False)
    rule = cache.rule(balance)
    bounds = cache.load_bounds(rule)
    plans = [fewest.plan, *_on_the_way(rule, bounds, clock, seed), widest.plan]
    provable, owned = fits(problem), bool((problem.owner != NOBODY).any())
    budgets = _budgets(fewest.moves, widest.moves, SOLVED if provable else PICKED)
    curve = Curve(plans, lambda plan: plan.moves)
    curve.prove(fewest.moves, fewest.bound)
    curve.prove(widest.moves, widest.bound)
    solving, after = SHARES[deterministic]
    by_moves = once(lambda: MoveBound(rule, bounds, fewest.moves_bound))  # slow for many members
    if provable:
        if owned:
            _bound_by_moves(curve, budgets, by_moves, clock.stop(BEFORE))
        asked = BudgetSearch(budgets, lambda budget: options.with_budget(MOVES, budget), fewest, clock, cache, progress)
        asked.run(curve, solving)
    moves = [point.moves for point in curve.points([fewest.moves, *budgets, widest.moves])]
    if owned:
        _bound_by_moves(curve, moves, by_moves, clock.stop(after))
        if provable:
            _bound_by_patterns(curve, moves, rule, cache, clock.stop(after))
    points = curve.points(moves)
    return Frontier(problem, balance, points, knee(points), MOVES)


def _on_the_way(rule: CountRule, bounds: LoadBounds, clock: Clock, seed: int) -> list[Plan]:
    """Return plans from the fewest moves to even loads, found by relocation."""
    if not (rule.problem.owner != NOBODY).any():
        return []
    wanted = bounds.min_load_ub, bounds.max_load_lb
    start = fewest_moves_plan(rule)
    plans: list[Plan] = []
    for number, (greed, noise) in enumerate(PATHS):
        plans += relocate(start, rule, wanted, clock.stop(0.3), seed + number, Way(greed, noise))
    return plans


def _bound_by_moves(
    curve: Curve, budgets: list[int], moves: Callable[[], MoveBound], stop: Callable[[], bool]
) -> None:  # fmt: skip
    """Raise the bounds by what the budget's number of moves can achieve, the outermost budgets first."""
    for i in sorted(range(len(budgets)), key=lambda i: min(i, len(budgets) - 1 - i)):
        if stop():
            break
        curve.prove(budgets[i], whole(moves().base(budgets[i], stop)))


def _bound_by_patterns(
    curve: Curve, budgets: list[int], rule: CountRule, cache: SolveCache, stop: Callable[[], bool]
) -> None:
    """Raise the bounds by the load patterns of members, for budgets whose gap exceeds the rounding error."""
    value = max((curve.best(budget).spread for budget in budgets if curve.gap(budget) > 0), default=0)
    if not value or not move_patterns.applies(rule):
        return
    grids = cache.kept(MoveGrids, rule, True, GridParams())
    for patterns in grids.up_to(value, max(map(curve.gap, budgets)), Stop(stop)):
        left = set(budgets)
        while not stop():
            left = {budget for budget in left if curve.gap(budget) > patterns.resolution}
            if not left:
                break
            widest = max(left, key=curve.gap)
            left.remove(widest)
            curve.prove(widest, cheapest_window(patterns, curve.best(widest).spread, widest))


def _budgets(fewest: int, widest: int, growth: float) -> list[int]:
    """Return every budget if there are few, else budgets in growing steps."""
    budgets, step = [], 1.0
    budget = fewest + 1
    while budget < widest:
        budgets.append(budget)
        step = step if len(budgets) < 8 else step * growth
        budget += int(step)
    return budgets
