"""The best pattern for every load at once: what one member may hold is a knapsack, and a pattern's worth its value.

Dynamic programming over loads, one row for each copy of a lag, in whole numbers, so that what it says is exact. It is
the pricing problem of the cutting stock problem (Gilmore and Gomory 1961). What differs: loads and numbers of
partitions are met exactly and values may be below 0, so that one table serves all windows of loads.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.search.exact.windows import Window

Pattern = tuple[tuple[int, int], ...]  # (place of the lag, how often), places ascending
NONE = -1
IMPOSSIBLE = -(1 << 60)  # the value, or nearly, where no pattern has such a load


@dataclass(frozen=True, eq=False)
class Items:
    """Lags to be shared out, equal ones together.

    Attributes
    ----------
    lags : int64 array (K,)
        Different lags, ascending.
    demand : int64 array (K,)
        How many partitions have each.
    """

    lags: Whole
    demand: Whole

    @property
    def total(self) -> int:
        """All lags together."""
        return int(self.lags @ self.demand)

    def load(self, pattern: Pattern) -> int:
        """Return the load of a pattern."""
        return sum(times * int(self.lags[k]) for k, times in pattern)

    def cells(self, capacity: int, most: int | None) -> int:
        """Return the size of a table: rows times loads times counts."""
        return int(self._copies(capacity, most).sum()) * (capacity + 1) * (1 if most is None else most + 1)

    def _copies(self, capacity: int, most: int | None) -> Whole:
        fitting = capacity // np.maximum(self.lags, 1)
        fitting[self.lags == 0] = self.demand.sum()
        copies: Whole = np.minimum(self.demand, fitting)
        return copies if most is None else np.minimum(copies, most).astype(np.int64)

    def rows(self, capacity: int, most: int | None) -> Whole:
        """Return the place of the lag of each row: as many rows as copies that one member could hold."""
        return np.repeat(np.arange(len(self.lags)), self._copies(capacity, most))


class Knapsack:
    """Patterns of the highest value, by load and number of partitions.

    Parameters
    ----------
    items : Items
    values : int64 array (K,)
        Value of each lag.
    capacity : int
        The largest load that will be asked for.
    most : int or None
        The most partitions of a pattern; None: any number, and one level for all.

    Attributes
    ----------
    best : int64 array (most + 1, capacity + 1) or (1, capacity + 1)
        The highest value of a pattern with so many partitions and such a load; far below 0 where there is none.
    """

    def __init__(self, items: Items, values: Whole, capacity: int, most: int | None) -> None:
        self._items, self._most = items, most
        self._rows = items.rows(capacity, most).tolist()
        counted = most is not None
        shape = (most + 1 if most is not None else 1, capacity + 1)
        self.best = np.full(shape, IMPOSSIBLE, dtype=np.int64)
        self.best[0, 0] = 0
        last = np.full(self.best.shape, NONE, dtype=np.int32)
        self._lasts = []  # of each row: the last row in the best pattern of those before
        self._before = []  # of each row: the best values of patterns that end with it, by the load of the others
        for row, k in enumerate(self._rows):
            lag = int(items.lags[k])
            self._lasts.append(last)
            below = self.best[:-1] if counted else self.best
            found = below[:, : capacity + 1 - lag] + values[k]
            here = (self.best[1:] if counted else self.best)[:, lag:]
            better = found > here
            self._before.append(found)
            if better.any():
                last = last.copy()
                (last[1:] if counted else last)[:, lag:][better] = row
                self.best = self.best.copy()
                (self.best[1:] if counted else self.best)[:, lag:][better] = found[better]

    def patterns(self, window: Window, count: int | None, least: int) -> list[tuple[int, Pattern]]:
        """Return a pattern for each lag that may be its largest, those worth more than `least`, the best first.

        Parameters
        ----------
        window : Window
            Of their loads.
        count : int or None
            So many partitions, at least one.
        least : int
        """
        level = 0 if count is None else count - 1
        found: dict[int, tuple[int, int, int]] = {}
        for row, k in enumerate(self._rows):
            lag = int(self._items.lags[k])
            first = max(window.low - lag, 0)
            before = self._before[row][level, first : max(window.high - lag + 1, 0)]
            if len(before):
                place = int(before.argmax())
                value = int(before[place])
                if value > max(least, IMPOSSIBLE // 2):
                    found[k] = max(found.get(k, (IMPOSSIBLE, 0, 0)), (value, row, first + place + lag))
        best = sorted(found.values(), reverse=True)
        return [(value, self._pattern(row, level, load)) for value, row, load in best]

    def _pattern(self, row: int, level: int, load: int) -> Pattern:
        held: Counter[int] = Counter()
        while row != NONE:
            k = self._rows[row]
            held[k] += 1
            load -= int(self._items.lags[k])
            row = int(self._lasts[row][level if self._most is not None else 0, load])
            level -= 1
        return tuple(sorted(held.items()))
