"""Windows of loads: between which loads may all members of a better plan lie?

A plan with a spread of w has all its loads in some window that is w wide; one with a makespan of w has them in the
window from 0 to w. What prices of partitions prove is kept for each low end: as the least high end that is still
possible, or where moves count as the fewest moves that each width takes.
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

LEAST = -(1 << 62)  # of what all members hold together: it is a number still
UNIT = 10**6  # where moves count, prices are multiples of 1 / UNIT of a move, so that most tables need 32 bits only
IMPOSSIBLE = 2**31  # moves
LARGEST = 2**62  # objectives, in messages


class Answer(Enum):
    """What a linear program says of a window."""

    UNDECIDED = auto()  # nothing shows that it does not
    EXCLUDED = auto()
    STOPPED = auto()


@dataclass(frozen=True)
class Window:
    """Loads from `low` to `high`, both included."""

    low: int
    high: int


@dataclass(frozen=True, eq=False)
class Prices:
    """What partitions are worth to whoever holds them, and how much of that members can hold: in any plan all of it.

    Attributes
    ----------
    values : int64 array
        Of each partition; where moves count, in 1 / `UNIT` of a move.
    held : list of int64 array
        The most that members alike can hold together by load, less their moves; far below 0 where none has a load.
    total : int
        What members hold together in a plan without moves.
    """

    values: Whole
    held: list[Whole]
    total: int

    @classmethod
    def of(cls, values: Whole, best: list[tuple[int, Whole]], total: int) -> Prices:
        """Return prices by how many members are alike, and the most that one of them can hold by load."""
        least = LEAST // sum(n for n, _ in best)
        return cls(values, [n * np.maximum(most, least) for n, most in best], total)

    def slack(self, window: Window, moves: int = 0) -> int:
        """Return what members can hold more in a window than in a plan with so many moves; below 0: there is none."""
        held = sum(int(most[window.low : window.high + 1].max()) for most in self.held)
        return held - self.total + moves * UNIT

    def least_highs(self, first: int, last: int, largest: int) -> Whole:
        """Return the least high end without moves for each low end from `first` to `last`; `largest` + 1: none."""
        ranges = [_RangeMaximum(most[: largest + 1]) for most in self.held]
        lows = np.arange(first, last + 1, dtype=np.int64)
        below, above = lows - 1, np.full(len(lows), largest + 1, dtype=np.int64)  # not allowed, and allowed or none
        while (open_ := np.flatnonzero(above - below > 1)).size:
            middle = (below[open_] + above[open_]) // 2
            allowed = sum(each.between(lows[open_], middle) for each in ranges) >= self.total
            above[open_[allowed]], below[open_[~allowed]] = middle[allowed], middle[~allowed]
        return above


class _RangeMaximum:
    """The largest value between any two places: maxima over powers of two (a sparse table)."""

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
    """The windows that are not excluded, narrower than the best plan's.

    Parameters
    ----------
    low, last_low : int
        The low ends of interest.
    high : int
        The least high end of interest.
    width : int
        Windows are to be less wide than this: the objective of the best plan.

    Attributes
    ----------
    first_highs : int64 array
        Of each low end the least high end before any window was excluded.
    excluded : list of (int64 array, int, int64 array)
        What excluded windows: values of partitions, their sum, and of each low end the least high end that they allow.
    """

    def __init__(self, low: int, last_low: int, high: int, width: int) -> None:
        self.low = low
        self._lows: Whole = np.arange(low, last_low + 1, dtype=np.int64)
        self._highs: Whole = np.maximum(self._lows, high)  # of each low end the least high end
        self.width = width
        self.first_highs = self._highs.copy()
        self.excluded: list[tuple[Whole, int, Whole]] = []

    @property
    def largest(self) -> int:
        """The largest high end of interest."""
        return int(self._lows[-1]) + self.width - 1

    @property
    def least_width(self) -> int:
        """The width of the narrowest window left; `width` where there is none."""
        return min(int((self._highs - self._lows).min()), self.width)

    def lowest(self) -> Window | None:
        """Return the narrowest one with the least low end; excluding it raises the high ends of all."""
        high = int(self._highs[0])
        return Window(int(self._lows[0]), high) if high <= self.largest else None

    def highest(self) -> Window | None:
        """Return the widest one with the highest low end; excluding it leaves that low end out."""
        left = np.flatnonzero(self._highs - self._lows < self.width)
        return Window(int(self._lows[left[-1]]), self.largest) if len(left) else None

    def narrowest(self) -> Window | None:
        """Return the narrowest one, of several the one in the middle."""
        left = self._within(self.least_width)
        return left[len(left) // 2] if left else None

    def draw(self, wider: int, rng: Random) -> Window | None:
        """Return one that is so much wider than the narrowest, as far as there are any."""
        left = self._within(min(self.least_width + wider, self.width - 1))
        return rng.choice(left) if left else None

    def _within(self, width: int) -> list[Window]:
        if width >= self.width:
            return []
        lows = self._lows[self._highs - self._lows <= width].tolist()
        return [Window(low, low + width) for low in lows]

    def narrow(self, check: Callable[[Window], Answer]) -> Answer:
        """Have windows excluded until the narrowest that is left may be one, or none is left."""
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
        """Leave out all windows in which members cannot hold what partitions are worth."""
        highs = prices.least_highs(int(self._lows[0]), int(self._lows[-1]), self.largest)
        if (highs > self._highs).any():
            self.excluded.append((prices.values, prices.total, highs))
            np.maximum(self._highs, highs, out=self._highs)


@dataclass(frozen=True)
class Grid:
    """Loads in whole numbers of a unit: lags rounded down to multiples of it.

    A plan with loads in [a, b] has rounded loads of at least (a - loss) / unit, and of at most b / unit.

    Attributes
    ----------
    unit : int
        Messages.
    loss : int
        What rounding takes from a load at most, in messages.
    spread : bool
        Whether the spread counts; else the makespan alone, where rounding down loses nothing.
    """

    unit: int
    loss: int
    spread: bool

    def width(self, value: Number) -> int:
        """Return how wide windows of plans below an objective are not."""
        return (ceil(value) - 1 + self.loss * self.spread) // self.unit + 1

    def lows(self, bounds: LoadBounds, value: Number) -> tuple[int, int]:
        """Return the least and the largest low end of windows of such plans."""
        if not self.spread:
            return 0, 0
        first = ceil(Fraction(bounds.max_load_lb - value + 1 - self.loss, self.unit))
        last = max(ceil(Fraction(bounds.min_load_ub - self.loss, self.unit)), 0)
        return min(max(first, 0), last), last

    def windows(self, bounds: LoadBounds, value: Number) -> Windows:
        """Return the windows that plans below an objective can have, as far as the bounds tell."""
        return Windows(*self.lows(bounds, value), ceil(bounds.max_load_lb) // self.unit, self.width(value))

    def largest(self, bounds: LoadBounds, value: Number) -> int:
        """Return the largest high end of these windows."""
        return self.lows(bounds, value)[1] + self.width(value) - 1

    def bound(self, windows: Windows, value: Number) -> Number:
        """Return what is proven of the objective where these windows are left, of those below `value`."""
        if windows.least_width == windows.width:
            return value
        return max(windows.least_width * self.unit - self.loss * self.spread, 0)


class MoveWindows:
    """All windows that a plan below some objective may have, and the fewest moves that each is known to take.

    Prices prove something of all windows, of some more and of some less. The most that has been proven of each is kept,
    so any budget or price of moves is bounded by the cheapest window.

    Parameters
    ----------
    grid : Grid
    bounds : LoadBounds
    value : number
        The objective.

    Attributes
    ----------
    first, largest : int
        The least low end, and the greatest high end.
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
        """Keep what prices prove of all windows; no plan moves more than all partitions."""
        lows, widths = self._moves.shape
        held = np.zeros((lows, widths), dtype=np.int64)
        for most in prices.held:
            by_low = np.lib.stride_tricks.sliding_window_view(most[self.first :], widths)
            held += np.maximum.accumulate(by_low, axis=1)
        proven = -((held - prices.total) // UNIT)  # rounded up: moves are whole
        np.maximum(self._moves, np.where(proven > partitions, IMPOSSIBLE, proven), out=self._moves)

    def costs(self, most: int | None, price: int) -> Whole:
        """Return a bound of the objective in each window, by low end and width: with at most so many moves."""
        widths = np.arange(self._moves.shape[1]) * self._grid.unit - self._grid.loss * self._grid.spread
        moves = np.where(self._moves < IMPOSSIBLE, self._moves, 0)
        endless = self._moves > (IMPOSSIBLE - 1 if most is None else most)
        return np.where(endless, LARGEST, np.maximum(widths, self._least) + moves * price)

    def widest(self, costs: Whole, most: int, around: float) -> tuple[int, Window, int]:
        """Return of the windows that cost no more the one nearest to a load: its cost, itself, and its moves."""
        cheap = costs <= most
        rows = np.flatnonzero(cheap.any(axis=1))
        widths = costs.shape[1] - 1 - cheap[rows, ::-1].argmax(axis=1)
        chosen = int(np.abs(self.first + rows + widths / 2 - around).argmin())
        row, width = int(rows[chosen]), int(widths[chosen])
        low = self.first + row
        return int(costs[row, width]), Window(low, low + width), int(self._moves[row, width])

    def open_lows(self, width: int, moves: int) -> Whole:
        """Return the low ends of windows so wide that may take no more than so many moves."""
        width = min(width, self._moves.shape[1] - 1)
        return self.first + np.flatnonzero(self._moves[:, width] <= moves)
