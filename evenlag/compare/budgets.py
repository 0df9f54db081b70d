"""How much spread each further move buys: the curve of best spread against a budget of moves."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache as once
from itertools import count

from evenlag.compare.comparison_cards import frontier_card
from evenlag.model.backends import fits
from evenlag.model.balance import Balance, CountRule
from evenlag.model.bounds import LoadBounds
from evenlag.model.literals import BalanceWord
from evenlag.model.move_bounds import MoveBound
from evenlag.model.names import spelled
from evenlag.model.objective import FEWEST_MOVES
from evenlag.model.plan import Number, Plan, whole
from evenlag.model.problem import NOBODY, Problem, check_problem
from evenlag.model.result import Result
from evenlag.search.cache import SolveCache
from evenlag.search.clock import LEAST_SECONDS, Clock
from evenlag.search.construct.greedy import fewest_moves_plan
from evenlag.search.exact import move_patterns
from evenlag.search.exact.cheapest_window import cheapest_window
from evenlag.search.exact.move_grids import MoveGrids
from evenlag.search.improve.equalize import equalize
from evenlag.search.improve.exchange_moves import relocate
from evenlag.search.options import MOST_SEED, SolveOptions
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
FIRST = 0.25  # of the time for solving, for each budget to be solved for the first time
ENOUGH_SECONDS = 1.0  # for a first try: with less there is hardly a bound

SOLVED, PICKED = 1.25, 1.05  # how steps between budgets grow where each is solved, and where plans are there anyway


@dataclass(frozen=True)
class FrontierPoint:
    """The best plan found with at most `moves` moves.

    Attributes
    ----------
    moves : int
        Moves that the plan makes.
    spread, bound : number
        Messages; no plan with at most `moves` moves has a spread below `bound`.
    plan : Plan
    """

    moves: int
    spread: Number
    bound: Number
    plan: Plan

    @property
    def assignment(self) -> dict[str, list[tuple[str, int]]]:
        """`{member: [(topic, partition), …]}`."""
        return self.plan.assignment


@dataclass(frozen=True)
class Frontier:
    """Points of rising moves and falling spread, none dominated by another.

    Attributes
    ----------
    problem : Problem
    balance : str
    points : list of FrontierPoint
    knee : int
        Index of the point after which moves buy least: the one farthest below the line from first to last.
    """

    problem: Problem
    balance: str
    points: list[FrontierPoint]
    knee: int

    def __repr__(self) -> str:
        first, last = self.points[0], self.points[-1]
        ends = f"moves {first.moves} to {last.moves}, spread {first.spread} to {last.spread}"
        return f"<Frontier {self.problem.group!r}: points={len(self.points)}, {ends}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return frontier_card(self)


@spelled
def frontier(
    problem: Problem,
    *,
    balance: Balance | BalanceWord = Balance.BOTH,
    time_limit: float = 10.0,
    seed: int = 0,
    deterministic: bool = False,
    work: float | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Frontier:
    """Find the best plans for rising budgets of moves, from the fewest that the balance allows to as many as help.

    Relocations give plans all the way; where the MIP is small budgets are then solved one by one, the widest gap first.
    Every point's bound is the better of that and of what so many moves can bring at best.

    Parameters
    ----------
    problem : Problem
        Judged by the lags of now, whatever scenarios it has.
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
        balance=balance,
        stickiness=0,
        time_limit=time_limit,
        work=work,
        seed=seed,
        deterministic=deterministic,
        threads=threads,
    )
    clock, cache = Clock(time_limit, deterministic, work), SolveCache(problem)
    allowed = clock.allowance()
    least = replace(options, stickiness=FEWEST_MOVES)
    fewest = search(problem, _within(least, 0.15 * allowed, clock), cache=cache, explain=False)
    widest = search(problem, _within(options, 0.2 * allowed, clock), cache=cache, explain=False)
    rule = cache.rule(balance)
    bounds = cache.load_bounds(rule)
    plans = [fewest.plan, *_on_the_way(rule, bounds, clock, seed), widest.plan]
    provable, owned = fits(problem), bool((problem.owner != NOBODY).any())
    budgets = _budgets(fewest.moves, widest.moves, SOLVED if provable else PICKED)
    curve = _Curve(plans)
    curve.prove(fewest.moves, fewest.bound)
    curve.prove(widest.moves, widest.bound)
    solving, after = SHARES[deterministic]
    by_moves = once(lambda: MoveBound(rule, bounds, fewest.moves_bound))  # slow where members are many
    if provable:
        if owned:
            _bound_by_moves(curve, budgets, by_moves, clock.stop(BEFORE))
        _solve_each(curve, budgets, options, fewest, clock, solving, cache, progress)
    moves = [point.moves for point in curve.points([fewest.moves, *budgets, widest.moves])]
    if owned:
        _bound_by_moves(curve, moves, by_moves, clock.stop(after))
        if provable:
            _bound_by_patterns(curve, moves, rule, cache, clock.stop(after))
    points = curve.points(moves)
    return Frontier(problem, balance, points, _knee(points))


class _Curve:
    """What is known so far: plans for one budget serve all larger ones, bounds all smaller ones.

    Parameters
    ----------
    plans : list of Plan
    """

    def __init__(self, plans: list[Plan]) -> None:
        self._plans: list[Plan] = []  # of rising moves and falling spread
        self._bounds: dict[int, Number] = {}  # of the spread, by budget
        self.take(*plans)

    def best(self, budget: int) -> Plan:
        """Return the best plan with at most so many moves; there must be one."""
        return self._plans[bisect_right(self._plans, budget, key=lambda plan: plan.moves) - 1]

    def bound(self, budget: int) -> Number:
        """Return what is proven of the spread with at most so many moves."""
        proven = max((bound for moves, bound in self._bounds.items() if moves >= budget), default=0)
        return min(proven, self.best(budget).spread)

    def gap(self, budget: int) -> Number:
        """Return how much better a plan with at most so many moves might be, in messages."""
        return self.best(budget).spread - self.bound(budget)

    def take(self, *plans: Plan) -> None:
        """Take plans, as far as they better all with as few moves."""
        known, self._plans = [*self._plans, *plans], []
        for plan in sorted(known, key=lambda plan: (plan.moves, plan.spread)):
            if not self._plans or plan.spread < self._plans[-1].spread:
                self._plans.append(plan)

    def prove(self, budget: int, bound: Number) -> None:
        """Take a bound of the spread with at most so many moves."""
        self._bounds[budget] = max(self._bounds.get(budget, 0), bound)

    def points(self, budgets: Iterable[int]) -> list[FrontierPoint]:
        """Return the best plans for these budgets, each once and at the moves that it really makes."""
        plans = {plan.moves: plan for plan in map(self.best, sorted(budgets))}
        return [FrontierPoint(moves, plan.spread, self.bound(moves), plan) for moves, plan in plans.items()]


def _solve_each(
    curve: _Curve,
    budgets: list[int],
    options: SolveOptions,
    fewest: Result,
    clock: Clock,
    share: float,
    cache: SolveCache,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Solve budgets one by one: next always the one with the widest gap for the time that it is to get.

    Each gets little at first and twice as much every time it is gone on with, and other random draws.
    """
    seeds = count(options.seed)
    allowed = share * clock.allowance()
    each = allowed / max(len(budgets), 1)
    slices, spent, started = dict.fromkeys(budgets, max(FIRST * each, min(each, ENOUGH_SECONDS))), 0.0, clock.spent
    while True:
        left = [budget for budget in budgets if curve.gap(budget) > 0]
        passed = spent if clock.deterministic else clock.spent - started
        if not left or passed >= allowed or clock.passed():
            return
        if progress is not None:
            progress(max(len(budgets) - len(left), int(len(budgets) * passed / allowed)), len(budgets))
        budget = max(left, key=lambda budget: curve.gap(budget) / slices[budget])
        seconds = max(min(slices[budget], allowed - passed), LEAST_SECONDS)
        known = replace(fewest, plan=curve.best(budget), bound=curve.bound(budget), bound_by=None)
        drawn = replace(options, max_moves=budget, seed=next(seeds) % (MOST_SEED + 1))
        within = _within(drawn, seconds, clock)
        result = search(cache.problem, within, known=known, cache=cache, explain=False)
        curve.take(result.plan)
        curve.prove(budget, result.bound)
        slices[budget], spent = 2 * slices[budget], spent + seconds


def _within(options: SolveOptions, seconds: float, clock: Clock) -> SolveOptions:
    """Return options with a limit; with work limits these stand for the seconds, and the clock has all that is left."""
    if clock.deterministic:
        return options.within(max(clock.left(), LEAST_SECONDS), seconds)
    return options.within(max(seconds, LEAST_SECONDS))


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
    curve: _Curve, budgets: list[int], moves: Callable[[], MoveBound], stop: Callable[[], bool]
) -> None:  # fmt: skip
    """Raise bounds by what so many moves can bring at best, the outermost first."""
    for i in sorted(range(len(budgets)), key=lambda i: min(i, len(budgets) - 1 - i)):
        if stop():
            break
        curve.prove(budgets[i], whole(moves().base(budgets[i], stop)))


def _bound_by_patterns(
    curve: _Curve, budgets: list[int], rule: CountRule, cache: SolveCache, stop: Callable[[], bool]
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


def _knee(points: list[FrontierPoint]) -> int:
    first, last = points[0], points[-1]
    across, down = last.moves - first.moves, float(first.spread - last.spread)
    if not across or not down:
        return 0
    below = [
        float(first.spread - point.spread) / down - (point.moves - first.moves) / across for point in points
    ]  # fmt: skip
    return below.index(max(below))
