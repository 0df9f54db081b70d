"""Load windows: ranges that may contain all loads of an improving plan.

A plan with spread w has all loads in some window of width w. A plan with makespan w has them in the window from 0 to w.
Dual prices of partitions exclude windows. Without moves the least high end that is still possible is kept for each low
end. Where moves count, a lower bound on the moves is kept for each low end and width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from fractions import Fraction
from math import ceil, floor
from random import Random

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.model.bounds import LoadBounds
from evenlag.model.plan import Number

LEAST = -(1 << 62)  # limits the total value of all members, which then fits 64 bits
UNIT = 10**6  # where moves count, prices are multiples of 1 / UNIT of a move, so that most tables fit 32 bits
IMPOSSIBLE = 2**31  # moves of a window without a plan
LARGEST = 2**62  # messages: above every objective


class Answer(Enum):
    """Answer of a linear program about a window."""

    UNDECIDED = auto()  # the window may hold a plan
    EXCLUDED = auto()
    STOPPED = auto()


@dataclass(frozen=True)
class Window:
    """Loads from `low` to `high`, both included."""

    low: int
    high: int

    def holds(self, other: Window) -> bool:
        """Return True if another window lies within this one."""
        return self.low <= other.low and other.high <= self.high


@dataclass(frozen=True, eq=False)
class Prices:
    """Dual prices of partitions, and the largest value that members can hold. Every plan holds the whole value.

    Attributes
    ----------
    values : int64 array
        Price of each partition; where moves count, in 1 / `UNIT` of a move.
    held : list of int64 array
        Largest total value of identical members by load, less their moves; far below 0 where no pattern has the load.
    total : int
        Value that all members hold together in a plan without moves.
    """

    values: Whole
    held: list[Whole]
    total: int

    @classmethod
    def of(cls, values: Whole, best: list[tuple[int, Whole]], total: int) -> Prices:
        """Return prices from the values, the number and best values by load of identical members, and the total."""
        least = LEAST // sum(n for n, _ in best)
        return cls(values, [n * np.maximum(most, least) for n, most in best], total)

    def slack(self, window: Window, moves: int = 0) -> int:
        """Return the slack of a window: the value that members can hold in it beyond a plan with `moves` moves.

        No such plan exists in the window if the slack is negative.
        """
        held = sum(int(most[window.low : window.high + 1].max()) for most in self.held)
        return held - self.total + moves * UNIT

    def least_highs(self, first: int, last: int, largest: int) -> Whole:
        """Return the least high end with slack ≥ 0 for each low end from `first` to `last`; `largest` + 1 if none."""
        ranges = [_RangeMaximum(most[: largest + 1]) for most in self.held]
        lows = np.arange(first, last + 1, dtype=np.int64)
        below, above = lows - 1, np.full(len(lows), largest + 1, dtype=np.int64)  # excluded; allowed, or past the end
        while (open_ := np.flatnonzero(above - below > 1)).size:
            middle = (below[open_] + above[open_]) // 2
            allowed = sum(each.between(lows[open_], middle) for each in ranges) >= self.total
            above[open_[allowed]], below[open_[~allowed]] = middle[allowed], middle[~allowed]
        return above


class _RangeMaximum:
    """Range maximum by a sparse table: maxima over ranges whose lengths are powers of two."""

    def __init__(self, values: Whole) -> None:
        self._table = np.tile(values, (len(values).bit_length(), 1))
        for k in range(len(self._table) - 1):
            before, after = self._table[k], self._table[k + 1]
            after[: -(1 << k)] = np.maximum(before[: -(1 << k)], before[1 << k :])

    def between(self, first: Whole, last: Whole) -> Whole:
        """Return the largest value of each range, both ends included."""
        level = np.frexp((last - first + 1).astype(float))[1] - 1
        largest: Whole = np.maximum(self._table[level, first], self._table[level, last - (1 << level) + 1])
        return largest


class Windows:
    """Windows that are narrower than that of the best plan and not excluded.

    Parameters
    ----------
    low, last_low : int
        The least and the greatest low end of interest.
    high : int
        The least high end of interest.
    width : int
        Exclusive upper limit on the width of windows: the objective of the best plan.

    Attributes
    ----------
    first_highs : int64 array
        The least high end of each low end before any exclusion.
    excluded : list of (int64 array, int, int64 array)
        For each exclusion the values of partitions, their sum, and the least high end that they allow each low end.
    """

    def __init__(self, low: int, last_low: int, high: int, width: int) -> None:
        self.low = low
        self._lows: Whole = np.arange(low, last_low + 1, dtype=np.int64)
        self._highs: Whole = np.maximum(self._lows, high)  # the least high end of each low end
        self.width = width
        self.first_highs = self._highs.copy()
        self.excluded: list[tuple[Whole, int, Whole]] = []

    @property
    def largest(self) -> int:
        """Largest high end of interest."""
        return int(self._lows[-1]) + self.width - 1

    @property
    def least_width(self) -> int:
        """Width of the narrowest window left; `width` if there is none."""
        return min(int((self._highs - self._lows).min()), self.width)

    def lowest(self) -> Window | None:
        """Return the narrowest window at the lowest low end. Excluding it excludes all windows within it."""
        high = int(self._highs[0])
        return Window(int(self._lows[0]), high) if high <= self.largest else None

    def highest(self) -> Window | None:
        """Return the widest window at the highest low end left. Excluding it removes that low end."""
        left = np.flatnonzero(self._highs - self._lows < self.width)
        return Window(int(self._lows[left[-1]]), self.largest) if len(left) else None

    def narrowest(self) -> Window | None:
        """Return the narrowest window; in a tie, the middle one."""
        left = self._within(self.least_width)
        return left[len(left) // 2] if left else None

    def draw(self, wider: int, rng: Random) -> Window | None:
        """Return a random window, wider than the narrowest by `wider` if the limit permits; None if none is left."""
        left = self._within(min(self.least_width + wider, self.width - 1))
        return rng.choice(left) if left else None

    def _within(self, width: int) -> list[Window]:
        if width >= self.width:
            return []
        lows = self._lows[self._highs - self._lows <= width].tolist()
        return [Window(low, low + width) for low in lows]

    def narrow(self, check: Callable[[Window], Answer]) -> Answer:
        """Exclude windows until the narrowest one left may hold a plan, or none is left."""
        answer = Answer.EXCLUDED
        for ask in (self.lowest, self.highest, self.narrowest):
            while (window := ask()) is not None:
                answer = check(window)
                if answer is Answer.STOPPED:
                    return answer
                if answer is Answer.UNDECIDED:
                    break
        return answer

    def exclude(self, prices: Prices) -> None:
        """Exclude all windows in which members cannot hold the whole value of the partitions."""
        highs = prices.least_highs(int(self._lows[0]), int(self._lows[-1]), self.largest)
        if (highs > self._highs).any():
            self.excluded.append((prices.values, prices.total, highs))
            np.maximum(self._highs, highs, out=self._highs)


@dataclass(frozen=True)
class Grid:
    """Loads in multiples of a unit, with each lag rounded down.

    A plan with loads in [a, b] has rounded loads of at least (a - loss) / unit and at most b / unit.

    Attributes
    ----------
    unit : int
        Messages.
    loss : int
        The most that rounding takes from one load, in messages.
    spread : bool
        True for the spread; False for the makespan, where rounding down loses nothing.
    """

    unit: int
    loss: int
    spread: bool

    def width(self, value: Number) -> int:
        """Return the exclusive upper limit on the window width of any plan below an objective."""
        return (ceil(value) - 1 + self.loss * self.spread) // self.unit + 1

    def lows(self, bounds: LoadBounds, value: Number) -> tuple[int, int]:
        """Return the least and the greatest low end of the windows of plans below an objective."""
        if not self.spread:
            return 0, 0
        first = ceil(Fraction(bounds.max_load_lb - value + 1 - self.loss, self.unit))
        last = max(ceil(Fraction(bounds.min_load_ub - self.loss, self.unit)), 0)
        return min(max(first, 0), last), last

    def windows(self, bounds: LoadBounds, value: Number) -> Windows:
        """Return the windows that the bounds allow plans below an objective."""
        return Windows(*self.lows(bounds, value), ceil(bounds.max_load_lb) // self.unit, self.width(value))

    def largest(self, bounds: LoadBounds, value: Number) -> int:
        """Return the largest high end of the windows of plans below an objective."""
        return self.lows(bounds, value)[1] + self.width(value) - 1

    def bound(self, windows: Windows, value: Number) -> Number:
        """Return the lower bound on the objective that the remaining windows prove; `value` if none remains."""
        if windows.least_width == windows.width:
            return value
        return max(windows.least_width * self.unit - self.loss * self.spread, 0)


class MoveWindows:
    """All windows that a plan below an objective may have, and a lower bound on the moves of each.

    Prices prove a bound for every window, good for some and weak for others. The best bound of each window is kept. So
    the cheapest window bounds the objective for every budget and every price of moves.

    Parameters
    ----------
    grid : Grid
    bounds : LoadBounds
    value : number
        Exclusive upper limit on the objective.

    Attributes
    ----------
    first, largest : int
        The least low end and the largest high end.
    """

    def __init__(self, grid: Grid, bounds: LoadBounds, value: Number) -> None:
        self._grid = grid
        self.first, last = grid.lows(bounds, value)
        widths = grid.width(value)
        self.largest = last + widths - 1
        least = ceil(bounds.max_load_lb)
        highs = np.arange(self.first, last + 1)[:, None] + np.arange(widths)
        self._moves: Whole = np.where(highs < least // grid.unit, IMPOSSIBLE, 0)  # by low end and width
        self._least = max(least - floor(bounds.min_load_ub), 0) if grid.spread else least

    def learn(self, prices: Prices, partitions: int) -> None:
        """Keep the moves that prices prove for each window. A window with more moves than partitions is impossible."""
        lows, widths = self._moves.shape
        held = np.empty((lows, widths), dtype=np.int64)
        by_load = np.stack(prices.held)[:, self.first :]
        most = by_load[:, :lows].copy()  # by member and low end, in windows wider and wider
        for width in range(widths):
            np.maximum(most, by_load[:, width : width + lows], out=most)
            held[:, width] = most.sum(axis=0)
        proven = -((held - prices.total) // UNIT)  # rounded up, as moves are whole
        np.maximum(self._moves, np.where(proven > partitions, IMPOSSIBLE, proven), out=self._moves)

    def costs(self, most: int | None, price: int) -> Whole:
        """Return a lower bound on the objective of plans with at most `most` moves, by low end and width of window."""
        widths = np.arange(self._moves.shape[1]) * self._grid.unit - self._grid.loss * self._grid.spread
        moves = np.where(self._moves < IMPOSSIBLE, self._moves, 0)
        endless = self._moves > (IMPOSSIBLE - 1 if most is None else most)
        return np.where(endless, LARGEST, np.maximum(widths, self._least) + moves * price)

    def widest(self, costs: Whole, most: int, around: float) -> tuple[int, Window, int]:
        """Return the cost, the window and the moves of a window that costs at most `most`.

        Each low end contributes its widest such window; the one whose middle is nearest to the load `around` is chosen.
        """
        cheap = costs <= most
        rows = np.flatnonzero(cheap.any(axis=1))
        widths = costs.shape[1] - 1 - cheap[rows, ::-1].argmax(axis=1)
        chosen = int(np.abs(self.first + rows + widths / 2 - around).argmin())
        row, width = int(rows[chosen]), int(widths[chosen])
        low = self.first + row
        return int(costs[row, width]), Window(low, low + width), int(self._moves[row, width])

    def open_lows(self, width: int, moves: int) -> Whole:
        """Return the low ends of the windows of a width that may take at most `moves` moves."""
        width = min(width, self._moves.shape[1] - 1)
        return self.first + np.flatnonzero(self._moves[:, width] <= moves)
