"""What is proven of windows of loads: how many moves each takes at least.

Prices of partitions prove something of all windows, of some more and of some less. The table keeps the most that has
been proven of each, so any budget or price of moves is bounded by the cheapest window in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.model.bounds import LoadBounds
from evenlag.model.plan import Number
from evenlag.search.exact.windows import LEAST, Grid, Window

UNIT = 10**6  # prices are whole multiples of 1 / UNIT of a move, so that most tables need 32 bits only
IMPOSSIBLE = 2**31  # moves
LARGEST = 2**62  # objectives, in messages


@dataclass(frozen=True, eq=False)
class Prices:
    """What partitions are worth to whoever holds them: 1 / UNIT of a move each.

    Attributes
    ----------
    values : int64 array (P,)
    best : list of int64 array
        Of each member, the most that it can hold by load, less its moves.
    total : int
        What members hold together in a plan without moves.
    """

    values: Whole
    best: list[Whole]
    total: int

    def slack(self, window: Window, moves: int) -> int:
        """Return what members can hold more in a window than in a plan with so many moves; below 0: there is none."""
        held = sum(max(int(best[window.low : window.high + 1].max()), LEAST // len(self.best)) for best in self.best)
        return held - self.total + moves * UNIT


class MoveWindows:
    """All windows that a plan below some objective may have, and the fewest moves that each is known to take.

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
        for best in prices.best:
            worth = np.maximum(best, LEAST // len(prices.best))
            by_low = np.lib.stride_tricks.sliding_window_view(worth[self.first :], widths)
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
