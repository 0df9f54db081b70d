"""Lower bounds on the moves that a spread needs, and on the spread that a number of moves can achieve.

To bring its load down to h, a member must give a minimum number of partitions, at best its biggest, and take as many as
its count then requires, at best the smallest of all. To come up to l, it must take a minimum number, at best the
biggest of all, and give as many as its count then requires. Every departure is a move. Every arrival is either a move
or a partition without an owner. These minima for a window [l, h] hold regardless of the members involved. The least
sum over all windows of one width is found at a load at which one of these numbers changes.

Each member is relaxed separately to the best exchange that its counts allow, as if all others could serve it. This is a
combinatorial relaxation; the linear one cannot tell how few moves a load needs. The trade-off between spread and moves
is bounded by bisection, as in branch and bound over intervals of widths.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from evenlag.model.arrays import Ints
from evenlag.model.balance import CountRule
from evenlag.model.bounds import LoadBounds
from evenlag.model.plan import Number, by_member
from evenlag.model.problem import NOBODY

MOST_STEPS = 40  # departures or arrivals counted per member; more do not raise the bound


class MoveBound:
    """Lower bounds on moves for one rule; widths are load · factor, as in `Problem.load_factors`.

    Parameters
    ----------
    bounds : LoadBounds
        Bounds on the largest and the smallest load.
    fewest : int
        Moves that the counts alone require.
    spread : bool
        True if the smallest load counts as well (spread), False if only the largest does (makespan).
    least : int or Fraction
        Lower bound on the spread (or makespan) regardless of moves, in messages.
    """

    def __init__(
        self, rule: CountRule, bounds: LoadBounds, fewest: int, *, spread: bool = True, least: Number = 0
    ) -> None:
        problem = rule.problem
        self.rule, self.fewest, self.spread_matters = rule, fewest, spread
        self.unit = problem.load_unit
        self.min_load_ub = int(bounds.min_load_ub / self.unit // 1)
        self.max_load_lb = -int(-bounds.max_load_lb / self.unit // 1)
        self.least = max(-int(-least / self.unit // 1), self.max_load_lb - (self.min_load_ub if spread else 0), 0)
        owned = (problem.owner != NOBODY) & problem.assignable
        self.unowned = int((problem.assignable & ~owned).sum())
        lags = problem.lags[problem.assignable]
        self._small = np.concatenate([[0], np.cumsum(np.sort(lags)[: MOST_STEPS + 1])])
        self._big = np.concatenate([[0], np.cumsum(np.sort(lags)[::-1][: MOST_STEPS + 1])])
        rows: dict[str, list[Ints]] = {name: [] for name in ("down", "down_takes", "up", "up_gives")}
        owned_by = by_member(problem.owner, len(problem.members), owned)
        self._known: dict[int, int] = {}  # cache: fewest moves for each window width, shared by budgets and prices
        self.least_departures = self.least_arrivals = 0
        lo, hi = _count_range(rule)
        for m in np.flatnonzero(problem.active).tolist():
            held = np.sort(problem.lags[owned_by[m]])
            self._member(rows, held.astype(problem.load_factors.dtype), int(lo[m]), int(hi[m]), problem.load_factors[m])
        self._tables = {
            name: np.sort(np.concatenate(parts)) if parts else np.zeros(0, np.int64) for name, parts in rows.items()
        }

    def _member(self, rows: dict[str, list[Ints]], held: Ints, lo: int, hi: int, factor: Any) -> None:
        """Collect the loads at which this member needs one more departure or arrival.

        An entry of "down" is one more departure if the window ends below it, and one of "down_takes" the arrival that
        comes with it. Entries of "up" and "up_gives" count in the same way if the window begins above them.
        """
        count, load = len(held), int(held.sum())
        give, take = max(count - hi, 0), max(lo - count, 0)  # required at any load
        self.least_departures += give
        self.least_arrivals += take
        steps = min(MOST_STEPS, count)
        departures = np.arange(give, steps)
        arrivals = np.maximum(lo - count + departures, 0)
        fits = arrivals < len(self._small)
        departures, arrivals = departures[fits], arrivals[fits]
        biggest = np.concatenate([[0], np.cumsum(held[::-1])])
        reached = (load - biggest[departures] + self._small[arrivals]) * factor
        # One departure fewer allows at least this load, so a window that ends below it needs one more.
        reached = np.minimum.accumulate(reached) if len(reached) else reached
        rows["down"].append(reached)
        rows["down_takes"].append(reached[lo - count + departures >= 0])
        arrivals = np.arange(take, len(self._big) - 1)
        departures = np.maximum(count + arrivals - hi, 0)
        fits = departures <= count
        departures, arrivals = departures[fits], arrivals[fits]
        smallest = np.concatenate([[0], np.cumsum(held)])
        reached = (load + self._big[arrivals] - smallest[departures]) * factor
        reached = np.maximum.accumulate(reached) if len(reached) else reached
        rows["up"].append(reached)
        rows["up_gives"].append(reached[count + arrivals - hi >= 0])

    def _moves(self, low: Ints, high: Ints) -> Ints:
        """Return the least moves that windows [low, high] need."""
        table = self._tables

        def above(name: str) -> Ints:
            return len(table[name]) - np.searchsorted(table[name], high, side="right")

        departures = self.least_departures + above("down")
        arrivals = self.least_arrivals + above("down_takes")
        if self.spread_matters:
            departures = departures + np.searchsorted(table["up_gives"], low, side="left")
            arrivals = arrivals + np.searchsorted(table["up"], low, side="left")
        moves: Ints = np.maximum(np.maximum(departures, arrivals - self.unowned), self.fewest)
        return moves

    def moves(self, width: int) -> int:
        """Return a lower bound on the moves of any plan in a window of this width (in load · factor)."""
        known = self._known.get(width)
        if known is None:
            known = self._known[width] = self._fewest_within(width)
        return known

    def _fewest_within(self, width: int) -> int:
        if not self.spread_matters:
            return int(self._moves(np.zeros(1, dtype=np.int64), np.array([width]))[0])
        least, greatest = self.max_load_lb - width, self.min_load_ub
        lows = np.concatenate([self._breaks[0], self._breaks[1] - width])
        lows = np.unique(np.clip(lows, least, greatest))
        return int(self._moves(lows, lows + width).min())

    @cached_property
    def _breaks(self) -> tuple[Ints, Ints]:
        """Loads at which the numbers change: as beginnings of windows, and as ends of windows."""
        table = self._tables
        begin = np.unique(np.concatenate([table["up"], table["up_gives"], [self.min_load_ub]]))
        end = np.unique(np.concatenate([table["down"], table["down_takes"], [self.max_load_lb]]))
        return begin, end

    def base(self, budget: int | None, stop: Callable[[], bool] = lambda: False) -> Number:
        """Return a lower bound on the spread (or makespan) of plans within a budget of moves, in messages.

        `stop` is polled and ends the search for a better bound; the bound is valid at any time.
        """
        return self._width(budget, stop) * self.unit

    def _width(self, budget: int | None, stop: Callable[[], bool]) -> int:
        lower = self.least
        if budget is None or self.moves(lower) <= budget:
            return lower
        upper = max(lower, 1)
        while self.moves(upper) > budget:
            if upper >= self._enough or stop():
                return lower
            lower, upper = upper, min(2 * upper, self._enough)
        while upper - lower > 1:
            if stop():
                return lower
            middle = (lower + upper) // 2
            lower, upper = (lower, middle) if self.moves(middle) <= budget else (middle, upper)
        return upper

    @cached_property
    def _enough(self) -> int:
        """A width that is large enough for all loads."""
        problem = self.rule.problem
        return problem.total_lag * max((int(factor) for factor in problem.load_factors), default=1) + 1

    def objective(
        self, price: Number, budget: int | None, stop: Callable[[], bool] = lambda: False, evaluations: int = 120
    ) -> Number:
        """Return a lower bound on base + price · moves over all plans within the budget; `stop` as in `base`.

        A plan between two widths costs at least the smaller width plus the moves of the larger. The interval with the
        least such value is halved repeatedly.
        """
        first = self._width(budget, stop)
        if price == 0:
            return first * self.unit
        last = max(self._enough, first + 1)
        ends = {first: self.moves(first), last: self.moves(last)}

        def entry(lower: int, upper: int) -> tuple[Number, int, int]:
            return lower * self.unit + price * ends[upper], lower, upper

        intervals = [entry(first, last)]
        for _ in range(evaluations):
            bound, lower, upper = intervals[0]
            if stop():
                break
            if ends[lower] == ends[upper]:
                return bound
            heapq.heappop(intervals)
            if upper - lower == 1:
                exact = min(lower * self.unit + price * ends[lower], upper * self.unit + price * ends[upper])
                heapq.heappush(intervals, (exact, lower, lower))
                continue
            middle = (lower + upper) // 2
            ends[middle] = self.moves(middle)
            heapq.heappush(intervals, entry(lower, middle))
            heapq.heappush(intervals, entry(middle, upper))
        return intervals[0][0]


def _count_range(rule: CountRule) -> tuple[Ints, Ints]:
    """Return bounds on the number of partitions that each member may hold."""
    lo, hi = rule.total_bounds.lo.copy(), rule.total_bounds.hi.copy()
    if rule.topic_bounds is not None and not rule.topic_distance:
        lo = np.maximum(lo, rule.topic_bounds.lo.sum(axis=0))
        hi = np.minimum(hi, rule.topic_bounds.hi.sum(axis=0))
    return lo, hi
