"""The best pattern for every capacity at once: what one member may hold is a knapsack, and a pattern's worth its value.

Dynamic programming over loads, one row for each copy of a lag, in whole numbers, so that what it says is exact. It is
the pricing problem of the cutting stock problem (Gilmore and Gomory 1961). What differs: the number of partitions may
be bounded too, and the table holds all smaller capacities, so that one table bounds the makespan of all of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Pattern = tuple[tuple[int, int], ...]  # (place of the lag, how often), places ascending
NONE = -1


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
    """Patterns of the highest value, by capacity and number of partitions.

    Parameters
    ----------
    items : Items
    values : int64 array (K,)
        Value of each lag, >= 0.
    capacity : int
        The largest that will be asked for.
    most : int or None
        The most partitions of a pattern; None: any number.

    Attributes
    ----------
    best : int64 array (most + 1, capacity + 1) or (1, capacity + 1)
        The highest value of a pattern with at most so many partitions and at most such a load.
    """

    def __init__(self, items: Items, values: Whole, capacity: int, most: int | None) -> None:
        self._items, self._values, self._most = items, values, most
        self._rows = [k for k in items.rows(capacity, most).tolist() if values[k] > 0]
        counted = most is not None
        self.best = np.zeros((most + 1 if most is not None else 1, capacity + 1), dtype=np.int64)
        last = np.full(self.best.shape, NONE, dtype=np.int32)
        self._lasts = []  # of each row: the last row in the best pattern of those before
        self._before = []  # of each row: the best values of patterns that end with it, by the room left for the others
        for row, k in enumerate(self._rows):
            lag, value = int(items.lags[k]), int(values[k])
            self._lasts.append(last)
            below = self.best[:-1] if counted else self.best
            found = below[:, : capacity + 1 - lag] + value
            here = (self.best[1:] if counted else self.best)[:, lag:]
            better = found > here
            self._before.append(found)
            if better.any():
                last = last.copy()
                (last[1:] if counted else last)[:, lag:][better] = row
                self.best = self.best.copy()
                (self.best[1:] if counted else self.best)[:, lag:][better] = found[better]

    def patterns(self, capacity: int, count: int | None, least: int) -> list[tuple[int, Pattern]]:
        """Return a pattern for each lag that may be its largest, those worth more than `least`, the best first.

        Parameters
        ----------
        capacity : int
        count : int or None
            At most so many partitions.
        least : int
        """
        level = 0 if count is None else count - 1
        found: dict[int, tuple[int, int]] = {}
        for row, k in enumerate(self._rows):
            room = capacity - int(self._items.lags[k])
            if room >= 0 and (value := int(self._before[row][level, room])) > least:
                found[k] = max(found.get(k, (0, 0)), (value, row))
        best = sorted(found.values(), reverse=True)
        return [(value, self._pattern(row, level, room=capacity)) for value, row in best]

    def _pattern(self, row: int, level: int, room: int) -> Pattern:
        held: Counter[int] = Counter()
        while row != NONE:
            k = self._rows[row]
            held[k] += 1
            room -= int(self._items.lags[k])
            row = int(self._lasts[row][level if self._most is not None else 0, room])
            level -= 1
        return tuple(sorted(held.items()))
