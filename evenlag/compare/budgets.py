"""How much spread each further move, or unit of another cost, buys: the curve of best spread against a budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache as once

from evenlag.compare.budget_search import BudgetSearch, within
from evenlag.compare.cost_budgets import cost_frontier
from evenlag.compare.curve import Curve, Frontier, knee
from evenlag.model.asked_terms import FetchFrom
from evenlag.model.backends import fits
from evenlag.model.balance import Balance, CountRule
from evenlag.model.bounds import LoadBounds
from evenlag.model.literals import BalanceWord, FetchFromWord
from evenlag.model.move_bounds import MoveBound
from evenlag.model.names import spelled
from evenlag.model.objective import FEWEST_MOVES, MOVES
from evenlag.model.plan import Plan, whole
from evenlag.model.problem import NOBODY, Problem, check_problem
from evenlag.search.cache import SolveCache
from evenlag.search.clock import Clock
from evenlag.search.construct.greedy import fewest_moves_plan
from evenlag.search.exact import move_patterns
from evenlag.search.exact.move_patterns import MoveGrids, cheapest_window
from evenlag.search.improve.equalize import equalize
from evenlag.search.improve.exchange_moves import relocate
from evenlag.search.options import SolveOptions
from evenlag.search.solver import search

PATHS = (
    (1.0, 0.0),
    (0.6, 0.0),
    (1.0, 0.5),
    (0.3, 0.5),
)  # greed and noise of relocations

# What is taken of the time left when plans are there, one after the other: bounds by moves, solving budget by budget,
# bounds again. With work limits, by which a search may take longer than by the clock, it is less.
BEFORE = 0.3
SHARES = {False: (0.8, 1.0), True: (0.3, 0.1)}

SOLVED, PICKED = 1.25, 1.05  # how steps between budgets grow where each is solved, and where plans are there anyway


@spelled
def frontier(
    problem: Problem,
    *,
    against: str = MOVES,
    fetch_from: FetchFrom | FetchFromWord = FetchFrom.FOLLOWERS,
    balance: Balance | BalanceWord = Balance.BOTH,
    time_limit: float = 10.0,
    seed: int = 0,
    deterministic: bool = False,
    work: float | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Frontier:
    """Find the best plans for rising budgets of a cost, from the least that the balance allows to as much as helps.

    Against moves, relocations give plans all the way; where the MIP is small budgets are then solved one by one, the
    widest gap first. Every point's bound is the better of that and of what so many moves can bring at best. Against
    any other cost moves are free, and up to 14 budgets are solved between the ends.

    Parameters
    ----------
    problem : Problem
        Judged by the lags of now, whatever scenarios it has.
    against : str
        What the budgets are of: "moves", "crossings", "moved_size", or a cost of the problem's own.
    fetch_from : {"followers", "leader"}
        As in `solve`.
    balance : {"both", "topic", "group", "none"}
        Which counts must be even, as in `solve`.
    time_limit : float
        Seconds for the whole curve.
    seed, deterministic, work, threads
        As in `solve`.
    progress : callable, optional
        Called with how many budgets are done, or how many of them the time used up comes to, and how many there are.

    Returns
    -------
    Frontier

    Raises
    ------
    InvalidProblemError
        A parameter has a value that it cannot have; the message names both.
    InfeasibleError
        Too little capacity for all partitions.
    """
    check_problem(problem)
    problem = problem.now
    options = SolveOptions(
        fetch_from=fetch_from,
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
    by_moves = once(lambda: MoveBound(rule, bounds, fewest.moves_bound))  # slow where members are many
    if provable:
        if owned:
            _bound_by_moves(curve, budgets, by_moves, clock.stop(BEFORE))
        asked = BudgetSearch(budgets, lambda budget: replace(options, max_moves=budget), fewest, clock, cache, progress)
        asked.run(curve, solving)
    moves = [point.moves for point in curve.points([fewest.moves, *budgets, widest.moves])]
    if owned:
        _bound_by_moves(curve, moves, by_moves, clock.stop(after))
        if provable:
            _bound_by_patterns(curve, moves, rule, cache, clock.stop(after))
    points = curve.points(moves)
    return Frontier(problem, balance, points, knee(points), MOVES, fetch_from)


def _on_the_way(rule: CountRule, bounds: LoadBounds, clock: Clock, seed: int) -> list[Plan]:
    """Plans from the fewest moves to even loads, by relocation; at each what costs no move is done too."""
    if not (rule.problem.owner != NOBODY).any():
        return []
    wanted = bounds.min_load_ub, bounds.max_load_lb
    start = equalize(fewest_moves_plan(rule), rule, wanted, clock.stop(0.05), seed, keep_home=True)
    plans: list[Plan] = []
    for number, (greed, noise) in enumerate(PATHS):
        plans += relocate(start, rule, wanted, clock.stop(0.3), seed + number, greed=greed, noise=noise)
    return plans


def _bound_by_moves(
    curve: Curve, budgets: list[int], moves: Callable[[], MoveBound], stop: Callable[[], bool]
) -> None:  # fmt: skip
    """Raise bounds by what so many moves can bring at best, the outermost first."""
    for i in sorted(range(len(budgets)), key=lambda i: min(i, len(budgets) - 1 - i)):
        if stop():
            break
        curve.prove(budgets[i], whole(moves().base(budgets[i], stop)))


def _bound_by_patterns(
    curve: Curve, budgets: list[int], rule: CountRule, cache: SolveCache, stop: Callable[[], bool]
) -> None:
    """Raise bounds by what each member may hold, where the gap is wider than what rounding loses."""
    value = max((curve.best(budget).spread for budget in budgets if curve.gap(budget) > 0), default=0)
    if not value or not move_patterns.applies(rule):
        return
    for patterns in cache.kept(MoveGrids, rule, True).up_to(value, max(map(curve.gap, budgets)), stop):
        left = set(budgets)
        while not stop():
            left = {budget for budget in left if curve.gap(budget) > patterns.resolution}
            if not left:
                break
            widest = max(left, key=curve.gap)
            left.remove(widest)
            curve.prove(widest, cheapest_window(patterns, curve.best(widest).spread, widest))


def _budgets(fewest: int, widest: int, growth: float) -> list[int]:
    """Every budget while they are few, then in growing steps."""
    budgets, step = [], 1.0
    budget = fewest + 1
    while budget < widest:
        budgets.append(budget)
        step = step if len(budgets) < 8 else step * growth
        budget += int(step)
    return budgets
