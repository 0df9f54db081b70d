"""The frontier: the least spread for each budget of moves, or of another cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache as once
from itertools import count

from evenlag.compare.curve import Curve, Frontier, knee
from evenlag.compare.resized import growing_steps
from evenlag.errors import InvalidProblemError
from evenlag.model.asked_terms import NEEDED, NO_DATA
from evenlag.model.backends import fits
from evenlag.model.balance import Balance, CountRule
from evenlag.model.bounds import LoadBounds
from evenlag.model.literals import BalanceWord
from evenlag.model.move_bounds import MoveBound
from evenlag.model.names import one_of, spelled
from evenlag.model.objective import FEWEST_MOVES, MOVES, measure_of, names_of_costs
from evenlag.model.plan import Plan, whole
from evenlag.model.problem import NOBODY, Problem, check_problem
from evenlag.model.result import Result
from evenlag.search.cache import SolveCache
from evenlag.search.clock import LEAST_SECONDS, Clock, Stop
from evenlag.search.construct.fresh import fewest_moves_plan
from evenlag.search.exact import move_patterns
from evenlag.search.exact.move_patterns import GridParams, MoveGrids, cheapest_window
from evenlag.search.improve.relocation import Way, relocate
from evenlag.search.options import MOST_SEED, SolveOptions
from evenlag.search.solver import search

PATHS = ((1.0, 0.0), (0.6, 0.0), (1.0, 0.5), (0.3, 0.5))  # greed and noise of relocations

# Shares of the time left, in order: bounds from move counts, solving budget by budget, bounds again. They are smaller
# with work limits, because a search may then take longer than by the clock.
BEFORE = 0.3
SHARES = {False: (0.8, 1.0), True: (0.3, 0.1)}

SOLVED, PICKED = 1.25, 1.05  # growth of the steps between budgets that are solved, and between those with known plans

# Against other costs than moves.
MOST_BUDGETS = 14  # budgets between the least cost and the cost of the least spread
LEAST, WIDEST = 0.2, 0.2  # shares of the time for the two ends of the frontier: least cost, least spread
SOLVING = {False: 1.0, True: 0.4}  # share of the time left, by deterministic; smaller as work may take longer

# Budget by budget.
FIRST = 0.25  # share of the solving time for the first solve of all budgets
ENOUGH_SECONDS = 1.0  # for a first solve, where possible: less rarely gives a bound


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
        return _cost_frontier(problem, against, options, progress)
    clock, cache = Clock(time_limit, deterministic, work), SolveCache(problem)
    allowed = clock.allowance()
    least = replace(options, stickiness=FEWEST_MOVES)
    fewest = search(problem, within(least, 0.15 * allowed, clock), cache=cache, explain=False)
    widest = search(problem, within(options, 0.2 * allowed, clock), cache=cache, explain=False)
    rule = cache.rule(balance)
    bounds = cache.load_bounds(rule)
    plans = [fewest.plan, *_on_the_way(rule, bounds, clock, seed), widest.plan]
    provable, owned = fits(problem), bool((problem.owner != NOBODY).any())
    budgets = growing_steps(fewest.moves + 1, widest.moves, SOLVED if provable else PICKED)
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


def _bound_by_moves(curve: Curve, budgets: list[int], moves: Callable[[], MoveBound], stop: Callable[[], bool]) -> None:
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


# ---- against another cost --------------------------------------------------------------------------------------------


def _cost_frontier(
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
        The cost is unknown, or the problem lacks its data.
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
    budgets = _denser_at_low_cost(low, high)
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
        raise InvalidProblemError(f"against {against!r}: {NEEDED.get(against, NO_DATA)}")
    return measure


def _denser_at_low_cost(low: int, high: int) -> list[int]:
    """Return every budget between the ends while they are few, else a selection that is denser at low cost."""
    if high - low - 1 <= MOST_BUDGETS:
        return list(range(low + 1, high))
    steps = range(1, MOST_BUDGETS + 1)
    return sorted({low + max((high - low) * i * i // (MOST_BUDGETS + 1) ** 2, 1) for i in steps})


# ---- budget by budget ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BudgetSearch:
    """A search for the best plan of each budget.

    Attributes
    ----------
    asked : callable
        Returns the solve options for a budget.
    known : Result
        A result for the same group, used as a template for what is known about a budget.
    progress : callable or None
        Called with (budgets done, budgets in all); the time used counts as budgets done, if that is more.
    """

    budgets: list[int]
    asked: Callable[[int], SolveOptions]
    known: Result
    clock: Clock
    cache: SolveCache
    progress: Callable[[int, int], None] | None

    def run(self, curve: Curve, share: float) -> None:
        """Solve budgets within a share of the time left.

        Each budget gets little time at first, and twice as much with another seed each time it is resumed.
        """
        clock, budgets, draws = self.clock, self.budgets, count()
        allowed = share * clock.allowance()
        each = allowed / max(len(budgets), 1)
        slices, spent, started = dict.fromkeys(budgets, max(FIRST * each, min(each, ENOUGH_SECONDS))), 0.0, clock.spent
        while True:
            left = [budget for budget in budgets if curve.gap(budget) > 0]
            passed = spent if clock.deterministic else clock.spent - started
            if not left or passed >= allowed or clock.passed():
                return
            if self.progress is not None:
                self.progress(max(len(budgets) - len(left), int(len(budgets) * passed / allowed)), len(budgets))
            budget = max(left, key=lambda budget: curve.gap(budget) / slices[budget])
            seconds = max(min(slices[budget], allowed - passed), LEAST_SECONDS)
            known = replace(self.known, plan=curve.best(budget), bound=curve.bound(budget), bound_by=None, proof=None)
            asked = self.asked(budget)
            drawn = replace(asked, seed=(asked.seed + next(draws)) % (MOST_SEED + 1))
            result = search(
                self.cache.problem, within(drawn, seconds, clock), known=known, cache=self.cache, explain=False
            )
            curve.take(result.plan)
            curve.prove(budget, result.bound)
            slices[budget], spent = 2 * slices[budget], spent + seconds


def within(options: SolveOptions, seconds: float, clock: Clock) -> SolveOptions:
    """Return options with a time limit; with work limits, `seconds` of work and all of the clock's time."""
    if clock.deterministic:
        return options.within(max(clock.left(), LEAST_SECONDS), seconds)
    return options.within(max(seconds, LEAST_SECONDS))
