"""How much spread each further move buys: the curve of best spread against a budget of moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from evenlag.model.clock import Clock
from evenlag.model.objective import FEWEST_MOVES
from evenlag.model.plan import Number, Plan
from evenlag.model.problem import Problem
from evenlag.solve import solve


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
    """Solve for rising budgets of moves, from the fewest that the balance allows to as many as help.

    Parameters
    ----------
    problem : Problem
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
    clock = Clock(time_limit)
    by_budget = partial(
        solve, problem, balance=balance, seed=seed, deterministic=deterministic, threads=threads
    )  # fmt: skip
    fewest = by_budget(stickiness=FEWEST_MOVES, time_limit=time_limit / 4)
    widest = by_budget(stickiness=0, time_limit=time_limit / 4)
    budgets = _budgets(fewest.moves, widest.moves)
    found = [FrontierPoint(fewest.moves, fewest.spread, fewest.bound, fewest.plan)]
    for number, budget in enumerate(budgets):
        if progress is not None:
            progress(number, len(budgets))
        share = time_limit / 2 / len(budgets) if deterministic else clock.left() / (len(budgets) - number)
        result = by_budget(stickiness=0, max_moves=budget, time_limit=max(share, 0.001), start=found[-1].plan)
        found.append(FrontierPoint(budget, result.spread, result.bound, result.plan))
    found.append(FrontierPoint(widest.moves, widest.spread, widest.bound, widest.plan))
    points = _undominated(found)
    return Frontier(problem, balance, points, _knee(points))


def _budgets(fewest: int, widest: int) -> list[int]:
    """Every budget while they are few, then in steps that grow by a quarter."""
    budgets, step = [], 1.0
    budget = fewest + 1
    while budget < widest:
        budgets.append(budget)
        step = step if len(budgets) < 8 else step * 1.25
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
