"""Packing: can all partitions be shared out with every load in a window? Linear programming and diving.

A pattern is what one member may hold. The linear program over all patterns (Gilmore and Gomory 1961) is solved by
column generation: it leaves as little as possible over or short, and knapsack.py finds the patterns that it lacks. If
something remains, its prices prove in whole numbers that there is no such plan, whatever the prices are (Farley 1990),
and by one table for all windows at once. For the makespan that bound is nearly always the best, rounded up (the integer
round-up property of cutting stock).

A packing is looked for by diving (Wäscher and Gau 1996; Sadykov et al. 2019): patterns of the linear program are fixed,
some at a time, and columns generated for the rest. Those at the scarce end of the window come first, so that all slack
is left for the end; the last member holds what the others leave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.search.exact.column_program import NEAR, ColumnProgram
from evenlag.search.exact.knapsack import Items, Knapsack, Pattern
from evenlag.search.exact.windows import Answer, Prices, Window, Windows

MOST_NEW = 20  # columns that one table adds
MOST_TRIES = 6  # patterns that a dive may fix in vain, one after another
FIXED_AT_ONCE = 0.12  # of the members left, whose patterns a dive fixes before the linear program is solved again


@dataclass(frozen=True)
class Counts:
    """How many partitions members hold: `extra` of them `fewest + 1`, the others `fewest`."""

    fewest: int
    extra: int

    @property
    def most(self) -> int:
        """The most that any member holds."""
        return self.fewest + (self.extra > 0)

    def over(self, pattern: Pattern) -> bool:
        """Whether a pattern has more than `fewest` partitions."""
        return sum(times for _, times in pattern) > self.fewest


class Packing:
    """Patterns found so far, and the linear program over them.

    Parameters
    ----------
    items : Items
    members : int
    counts : Counts or None
        None: any number of partitions.
    stop : callable
        Asked before each table.
    """

    def __init__(self, items: Items, members: int, counts: Counts | None, stop: Callable[[], bool]) -> None:
        self.items, self.members, self.counts, self.stop = items, members, counts, stop
        self.most = None if counts is None else counts.most
        worth = (items.lags + 1) / (items.lags[-1] + 1)  # prices are at most that: without, twice as many tables
        self._program = ColumnProgram([*worth.tolist(), 1.0])  # the last row: members that hold some pattern
        self._known: set[Pattern] = set()
        self._patterns: list[Pattern] = []
        self._times = np.zeros((1024, len(items.lags)), dtype=np.int32)  # of each lag in each pattern; grows
        if counts is None or not counts.fewest:
            self.add(())  # what a member without any partitions holds

    def add(self, pattern: Pattern) -> bool:
        """Add a column; say whether it is new."""
        if pattern in self._known:
            return False
        self._known.add(pattern)
        self._program.add([*pattern, (len(self.items.lags), 1)])
        self._patterns.append(pattern)
        if len(self._patterns) > len(self._times):
            self._times = np.concatenate([self._times, np.zeros_like(self._times)])
        for k, times in pattern:
            self._times[len(self._patterns) - 1, k] = times
        return True

    # ---- the linear program ------------------------------------------------------------------------------------------

    def check(self, window: Window, windows: Windows) -> Answer:
        """Say whether a window may be one; where it is not, all are excluded that are not for the same reason."""
        return self._solve(self._all(), window, windows)

    def _solve(self, left: Left, window: Window, windows: Windows | None = None) -> Answer:
        """Generate columns until nothing is left over or short, or until it is proven that something must be."""
        self._restrict(left, window)
        capacity = window.high if windows is None else windows.largest

        def price(prices: Whole, _costs: float) -> Answer | None:
            values = prices[:-1]
            table = Knapsack(left.items, values, capacity, self.most)
            proven = self._proven(values, table, left)
            if proven.slack(window) < 0:
                if windows is not None:
                    windows.exclude(proven)
                return Answer.EXCLUDED
            lacking = self._generate(table, window, least=-int(prices[-1]))
            return None if lacking else Answer.UNDECIDED  # all columns are there, and no proof: floats are near enough

        return self._program.generate(self.stop, price)

    def _proven(self, values: Whole, table: Knapsack, left: Left) -> Prices:
        """Return what values of lags prove, by the table of them."""
        levels = [(left.members, table.best[0])]
        if self.counts is not None:
            levels = [(left.members - left.extra, table.best[self.counts.fewest]), (left.extra, table.best[-1])]
        best = [(members, most) for members, most in levels if members]
        return Prices.of(values, best, int(values @ left.items.demand))

    def _generate(self, table: Knapsack, window: Window, least: int) -> bool:
        """Add the columns that a table finds lacking, worth more than `least`; say whether there was one."""
        if self.counts is None:
            found = table.patterns(window, None, least)
        else:
            sizes = {self.counts.fewest, self.counts.most} - {0}
            found = [pattern for size in sizes for pattern in table.patterns(window, size, least)]
        new = [self.add(pattern) for _, pattern in sorted(found, reverse=True)[:MOST_NEW]]
        return any(new)

    def _restrict(self, left: Left, window: Window) -> None:
        """Ask for what is left alone, by columns of it within the window."""
        self._program.ask([*left.items.demand.tolist(), left.members])
        times = self._times[: len(self._patterns)]
        loads = times @ self.items.lags
        usable = (loads >= window.low) & (loads <= window.high) & (times <= left.items.demand).all(axis=1)
        self._program.use(usable)

    # ---- diving ------------------------------------------------------------------------------------------------------

    def dive(self, window: Window, rng: Random) -> list[Pattern] | None:
        """Look for a packing once, after `check` has been asked: a pattern for each member, or None."""
        left = self._all()
        fixed: list[Pattern] = []
        tries = MOST_TRIES
        while left.members > 1:
            wanted, most = self._wanted(left, window, rng), max(int(FIXED_AT_ONCE * left.members), 1)
            while True:
                batch, after = self._fix(left, wanted, most)
                if not batch or self.stop():
                    return None
                if after.members == 1:
                    if self._last(after, window) is not None:
                        break
                elif self._solve(after, window) is Answer.UNDECIDED:
                    break
                if most > 1:
                    most //= 2
                elif tries:
                    tries, wanted = tries - 1, wanted[1:]
                else:
                    return None
            fixed += batch
            left = after
        last = self._last(left, window)
        return None if last is None else [*fixed, last]

    def _last(self, left: Left, window: Window) -> Pattern | None:
        """Return what the last member holds, if it may: all that is left."""
        pattern = tuple((k, times) for k, times in enumerate(left.items.demand.tolist()) if times)
        size, counts = int(left.items.demand.sum()), self.counts
        allowed = counts is None or counts.fewest + (left.extra > 0) == size
        return pattern if allowed and window.low <= left.items.total <= window.high else None

    def _all(self) -> Left:
        """Return what there is to share out before anything is fixed."""
        return Left(self.items, self.members, 0 if self.counts is None else self.counts.extra)

    def _wanted(self, left: Left, window: Window, rng: Random) -> list[tuple[int, Pattern]]:
        """Return patterns to fix, and how often: whole ones first, then what wastes least, then what is used most."""
        total = left.items.total
        upper = left.members * window.high - total <= total - left.members * window.low
        used = []
        for place, amount in self._program.amounts():
            pattern = self._patterns[place]
            load, drawn = self.items.load(pattern), amount * rng.uniform(0.7, 1.3)
            waste = window.high - load if upper else load - window.low
            used.append((amount < 1 - NEAR, waste, -drawn, max(int(amount + NEAR), 1), pattern))
        return [(times, pattern) for _, _, _, times, pattern in sorted(used)]

    def _fix(self, left: Left, wanted: list[tuple[int, Pattern]], most: int) -> tuple[list[Pattern], Left]:
        """Return the first of these patterns that can all be fixed, `most` at most, and what is left then."""
        batch: list[Pattern] = []
        for times, pattern in wanted:
            for _ in range(times):
                if len(batch) == most or not left.holds(pattern, self.counts):
                    break
                left = left.without(pattern, self.counts)
                batch.append(pattern)
        return batch, left


@dataclass(frozen=True, eq=False)
class Left:
    """What a dive has still to share out.

    Attributes
    ----------
    items : Items
    members : int
    extra : int
        Members that may still hold one partition more.
    """

    items: Items
    members: int
    extra: int

    def holds(self, pattern: Pattern, counts: Counts | None) -> bool:
        """Whether a member can still be given such a pattern."""
        over = counts is not None and counts.over(pattern)
        enough = all(self.items.demand[k] >= times for k, times in pattern)
        room = counts is None or over or self.members > self.extra
        return enough and self.members > 0 and self.extra >= over and room

    def without(self, pattern: Pattern, counts: Counts | None) -> Left:
        """Give it to a member."""
        demand: Whole = self.items.demand.copy()
        for k, times in pattern:
            demand[k] -= times
        over = counts is not None and counts.over(pattern)
        return Left(Items(self.items.lags, demand), self.members - 1, self.extra - over)
