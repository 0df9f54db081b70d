"""How much spread each further move buys: the curve of best spread against a budget of moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from evenlag.model.balance import CountRule
from evenlag.model.bounds import LoadBounds
from evenlag.model.move_bounds import MoveBound
from evenlag.model.objective import FEWEST_MOVES
from evenlag.model.plan import Number, Plan, whole
from evenlag.model.problem import NOBODY, Problem
from evenlag.search.cache import SolveCache
from evenlag.search.clock import Clock
from evenlag.search.construct.greedy import fewest_moves_plan
from evenlag.search.exact import mip, move_patterns
from evenlag.search.exact.move_patterns import on_finer_grids
from evenlag.search.improve.equalize import equalize
from evenlag.search.improve.relocate import relocate
from evenlag.search.options import SolveOptions
from evenlag.search.solver import search

PATHS = (
    (1.0, 0.0),
    (0.6, 0.0),
    (1.0, 0.5),
    (0.3, 0.5),
)  # greed and noise of relocations

FOR_BOUNDS = 0.3  # of the time left when all else is found, for the bounds of points that are not proven best

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


def frontier(
    problem: Problem,
    *,
    balance: str = "both",
    time_limit: float = 10.0,
    seed: int = 0,
    deterministic: bool = False,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Frontier:
    """Find the best plans for rising budgets of moves, from the fewest that the balance allows to as many as help.

    Relocations give plans all the way; where the MIP is small each budget is then solved on its own. Every point's
    bound is the better of that and of what so many moves can bring at best.

    Parameters
    ----------
    problem : Problem
        Judged by the lags of now, whatever scenarios it has.
    balance : str
    time_limit : float
        Seconds for the whole curve.
    seed, deterministic, threads
        As in `solve`.
    progress : callable, optional
        Called with budgets solved and budgets in all.

    Returns
    -------
    Frontier
    """
    problem = problem.now
    options = SolveOptions(
        balance=balance, stickiness=0, time_limit=time_limit, seed=seed, deterministic=deterministic, threads=threads
    )
    clock, cache = Clock(time_limit, deterministic), SolveCache(problem)
    least = replace(options, stickiness=FEWEST_MOVES).within(0.15 * time_limit)
    fewest = search(problem, least, cache=cache)
    widest = search(problem, options.within(0.2 * time_limit), cache=cache)
    rule = cache.rule(balance)
    bounds = cache.load_bounds(rule)
    plans = [fewest.plan, *_on_the_way(rule, bounds, clock, seed), widest.plan]
    provable = mip.fits(problem)
    budgets = _budgets(fewest.moves, widest.moves, SOLVED if provable else PICKED)
    found = [FrontierPoint(fewest.moves, fewest.spread, fewest.bound, fewest.plan)]
    kept = FOR_BOUNDS * clock.left()
    for number, budget in enumerate(budgets):
        if progress is not None:
            progress(number, len(budgets))
        best = min((plan for plan in plans if plan.moves <= budget), key=lambda plan: (plan.spread, plan.moves))
        bound: Number = 0
        if provable:
            left = 0.8 * (clock.left() - kept) / (len(budgets) - number)
            share = 0.3 * time_limit / len(budgets) if deterministic else left
            within = replace(options, max_moves=budget).within(max(share, 0.001))
            result = search(problem, within, start=best, cache=cache)
            best, bound = result.plan, result.bound
        found.append(FrontierPoint(budget, best.spread, bound, best))
    found.append(FrontierPoint(widest.moves, widest.spread, widest.bound, widest.plan))
    points = _undominated(found)
    if (problem.owner != NOBODY).any():
        points = _bounded(points, MoveBound(rule, bounds, fewest.moves_bound), clock)
        if provable:
            points = _bounded_by_patterns(points, rule, bounds, clock)
    return Frontier(problem, balance, points, _knee(points))


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


def _bounded(points: list[FrontierPoint], moves: MoveBound, clock: Clock) -> list[FrontierPoint]:
    """Raise the points' bounds by what so many moves can bring at best, the outermost first."""
    bounds = {point.moves: point.bound for point in points}
    stop = clock.stop()
    order = sorted(range(len(points)), key=lambda i: min(i, len(points) - 1 - i))
    for i in order:
        if stop():
            break
        bounds[points[i].moves] = max(bounds[points[i].moves], whole(moves.base(points[i].moves, stop)))
    return _raised(points, bounds)


def _bounded_by_patterns(
    points: list[FrontierPoint], rule: CountRule, bounds: LoadBounds, clock: Clock
) -> list[FrontierPoint]:
    """Raise bounds by what each member may hold, of points whose gap is wider than what rounding loses."""
    value = max((point.spread for point in points if point.bound < point.spread), default=0)
    if not value or not move_patterns.applies(rule):
        return points
    stop, gap = clock.stop(), max(point.spread - point.bound for point in points)
    for patterns in on_finer_grids(rule, bounds, value, gap, spread=True, stop=stop):
        asked: set[int] = set()
        while not stop():
            open_ = [
                point
                for point in points
                if point.moves not in asked and point.spread - point.bound > patterns.resolution
            ]
            if not open_:
                break
            widest = max(open_, key=lambda point: point.spread - point.bound)
            asked.add(widest.moves)
            bound = patterns.bound(widest.spread, widest.moves)
            points = _raised(
                points, {point.moves: point.bound for point in points} | {widest.moves: max(bound, widest.bound)}
            )
    return points


def _raised(points: list[FrontierPoint], bounds: dict[int, Number]) -> list[FrontierPoint]:
    """Give points their bounds; what is proven for more moves holds for fewer."""
    best: Number = 0
    for point in reversed(points):
        best = bounds[point.moves] = max(best, bounds[point.moves])
    return [replace(point, bound=min(bounds[point.moves], point.spread)) for point in points]


def _budgets(fewest: int, widest: int, growth: float) -> list[int]:
    """Every budget while they are few, then in growing steps."""
    budgets, step = [], 1.0
    budget = fewest + 1
    while budget < widest:
        budgets.append(budget)
        step = step if len(budgets) < 8 else step * growth
        budget += int(step)
    return budgets


def _undominated(found: list[FrontierPoint]) -> list[FrontierPoint]:
    """Keep the points that better all with fewer moves, at the moves they really make.

    A bound for a larger budget holds for every smaller one, so each point takes the best bound from there on.
    """
    points: list[FrontierPoint] = []
    for point in sorted(found, key=lambda point: (point.plan.moves, point.spread)):
        if not points or point.spread < points[-1].spread:
            bound = max(other.bound for other in found if other.moves >= point.plan.moves)
            points.append(FrontierPoint(point.plan.moves, point.spread, min(bound, point.spread), point.plan))
    return points


def _knee(points: list[FrontierPoint]) -> int:
    first, last = points[0], points[-1]
    across, down = last.moves - first.moves, float(first.spread - last.spread)
    if not across or not down:
        return 0
    below = [
        float(first.spread - point.spread) / down - (point.moves - first.moves) / across for point in points
    ]  # fmt: skip
    return below.index(max(below))
