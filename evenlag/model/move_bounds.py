"""Lower bounds on the moves that a spread needs, and on the spread that a number of moves can achieve.

To bring its load down to h, a member must give a minimum number of partitions, at best its biggest, and take as many as
its count then requires, at best the smallest of all. To come up to l, it must take a minimum number, at best the
biggest of all, and give as many as its count then requires. Every departure is a move. Every arrival is either a move
or a partition without an owner. These minima for a window [l, h] hold regardless of the members involved. The least
sum over all windows of one width is found at a load at which one of these numbers changes.

Each member is relaxed separately to the best exchange that its counts allow, as if all others could serve it. This is a
combinatorial relaxation; the linear one cannot tell how few moves a load needs. The trade-off between spread and moves
is bounded by bisection, as in branch and bound over intervals of widths.

Together, members of equal weight must hold the whole lag. Only a member that takes a partition can end with more load
than today, and at most with h. So if few members take, they cannot hold what a member that left had, or what others
give (`loads_by_number`). The same holds for members that give, and l.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from evenlag.model.arrays import Bools, Ints, Whole
from evenlag.model.balance import CountRule
from evenlag.model.bounds import LoadBounds
from evenlag.model.plan import Number, by_member
from evenlag.model.problem import NOBODY
from evenlag.model.rounded_moves import RoundedMoves, rounded_moves

MOST_STEPS = 40  # departures or arrivals counted per member; more do not raise the bound


@dataclass
class _Number:
    """A number that is needed always, and one more for each load that a window ends below or begins above."""

    always: int = 0
    below: list[Ints] = field(default_factory=list)
    above: list[Ints] = field(default_factory=list)

    def add(self, always: int, below: Ints, above: Ints) -> None:
        """Add what a member needs."""
        self.always += always
        self.below.append(below)
        self.above.append(above)

    @cached_property
    def ends(self) -> tuple[Ints, Ints]:
        """The loads that windows end below, and those that they begin above; both ascending."""
        below, above = (
            np.sort(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)
            for parts in (self.below, self.above)
        )
        return below, above

    def within(self, low: Ints, high: Ints) -> Ints:
        """Return the number for each window [low, high]."""
        below, above = self.ends
        number: Ints = len(below) - np.searchsorted(below, high, side="right")
        number += self.always + np.searchsorted(above, low, side="left")
        return number


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
        owned_by = by_member(problem.owner, len(problem.members), owned)
        self._known: dict[int, int] = {}  # cache: fewest moves for each window width, shared by budgets and prices
        self._departures, self._arrivals, self._givers, self._takers = (_Number() for _ in range(4))
        self._all_givers, self._all_takers = _Number(), _Number()  # that all members need together
        self._by_ends, self._by_begins = _Number(), _Number()  # moves by rounding
        self.ends, self.begins = list[RoundedMoves](), list[RoundedMoves]()
        lo, hi = _count_range(rule)
        for m in np.flatnonzero(problem.active).tolist():
            held = np.sort(problem.lags[owned_by[m]])
            self._member(held.astype(problem.load_factors.dtype), int(lo[m]), int(hi[m]), problem.load_factors[m])
        if problem.equal_weights:
            self._together([owned_by[m] for m in np.flatnonzero(problem.active)], owned)

    def _together(self, held: list[Whole], owned: Bools) -> None:
        """Add the numbers that all members need together.

        A member with a partition of at least the low end of a window holds enough, however large the partition is. So
        lags count up to the greatest low end there is.
        """
        problem = self.rule.problem
        enough, free = int(owned.sum()) + 1, problem.assignable & ~owned
        lost = owned & ~problem.active[problem.owner]
        lags = problem.lags.astype(problem.load_factors.dtype)

        def loads_of(lags: Ints) -> list[int]:
            return [int(lags[places].sum()) for places in held]

        loads, total = loads_of(lags), int(lags[problem.assignable].sum())
        self._all_takers.below.append(np.array(loads_by_number(loads, total), dtype=lags.dtype))
        self.ends = rounded_moves(np.array(loads, lags.dtype), lags[free], lags[lost], self.max_load_lb, enough)
        self._by_ends.below.append(_at_each(self.ends, lags.dtype) + 1)
        if self.spread_matters:
            lags = np.minimum(lags, self.min_load_ub)
            loads, total = loads_of(lags), int(lags[problem.assignable].sum())
            self._all_givers.above.append(-np.array(loads_by_number([-load for load in loads], -total), lags.dtype))
            self.begins = rounded_moves(
                np.array(loads, lags.dtype), lags[free], lags[lost], -self.min_load_ub, enough, low=True
            )
            self._by_begins.above.append(-_at_each(self.begins, lags.dtype) - 1)

    def _member(self, held: Ints, lo: int, hi: int, factor: Any) -> None:
        """Add the departures and arrivals that this member needs, and whether it needs any."""
        count, load = len(held), int(held.sum())
        give, take = max(count - hi, 0), max(lo - count, 0)  # required at any load
        steps = min(MOST_STEPS, count)
        departures = np.arange(give, steps)
        arrivals = np.maximum(lo - count + departures, 0)
        fits = arrivals < len(self._small)
        departures, arrivals = departures[fits], arrivals[fits]
        biggest = np.concatenate([[0], np.cumsum(held[::-1])])
        # One departure fewer allows at least this load, so a window that ends below it needs one more.
        down = (load - biggest[departures] + self._small[arrivals]) * factor
        down = np.minimum.accumulate(down) if len(down) else down
        down_takes = down[lo - count + departures >= 0]
        arrivals = np.arange(take, len(self._big) - 1)
        departures = np.maximum(count + arrivals - hi, 0)
        fits = departures <= count
        departures, arrivals = departures[fits], arrivals[fits]
        smallest = np.concatenate([[0], np.cumsum(held)])
        up = (load + self._big[arrivals] - smallest[departures]) * factor
        up = np.maximum.accumulate(up) if len(up) else up
        up_gives = up[count + arrivals - hi >= 0]
        self._departures.add(give, down, up_gives)
        self._arrivals.add(take, down_takes, up)
        self._givers.add(*((1, down[:0], up[:0]) if give else (0, down[:1], up_gives[:1])))
        self._takers.add(*((1, down[:0], up[:0]) if take else (0, down_takes[:1], up[:1])))

    def _moves(self, low: Ints, high: Ints) -> Ints:
        """Return the least moves that windows [low, high] need."""
        departures, arrivals, givers, takers, all_givers, all_takers, by_ends, by_begins = (
            number.within(low, high) for number in self._numbers
        )
        departures += np.maximum(all_givers - givers, 0)
        arrivals += np.maximum(all_takers - takers, 0)
        rounded = np.maximum(by_ends, by_begins)
        moves: Ints = np.maximum(np.maximum(departures, arrivals - self.unowned), np.maximum(rounded, self.fewest))
        return moves

    @property
    def _numbers(self) -> tuple[_Number, ...]:
        return (
            self._departures, self._arrivals, self._givers, self._takers, self._all_givers, self._all_takers,
            self._by_ends, self._by_begins,
        )  # fmt: skip

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
        ends = [number.ends for number in self._numbers]
        begin = np.unique(np.concatenate([*(above for _, above in ends), [self.min_load_ub]]))
        end = np.unique(np.concatenate([*(below for below, _ in ends), [self.max_load_lb]]))
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


def _at_each(steps: list[RoundedMoves], dtype: Any) -> Ints:
    """Return the end of each step, as often as it proves more moves than the one before."""
    more = np.diff([0, *(step.moves for step in steps)])
    return np.repeat(np.array([step.end for step in steps], dtype=dtype), more)


def loads_by_number(loads: list[int], total: int) -> list[int]:
    """Return, for 0, 1, … members that may end with more load than today, the least load that suffices for them.

    All members hold `total` together in the end. The others hold at most what they hold today, and none holds more than
    this load. If somebody has to take more, the first load is above every load.
    """
    loads = sorted(loads)
    held = [0, *accumulate(loads)]
    members = len(loads)

    def enough(takers: int, place: int) -> bool:
        """Return True if the members can hold the total with loads up to today's load of the member at a place."""
        below = max(place, takers)
        return held[below] - held[takers] + (takers + members - below) * loads[place] >= total

    found = []
    for takers in range(members):
        place = max(bisect_left(range(members), True, key=lambda at: enough(takers, at)), takers)
        rest, capped = total - held[place] + held[takers], takers + members - place
        found.append(-(-rest // capped) if capped else abs(total) + 1)
    return found
