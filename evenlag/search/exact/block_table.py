"""What one of several members alike may hold: the best pattern for every load and number of partitions.

Partitions with one lag are one item, of which a pattern holds some. The table is that of prefix_table.py.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.search.exact.prefix_table import IMPOSSIBLE, NO_PATTERN, SMALL, PrefixTable, possible
from evenlag.search.exact.windows import Window

Pattern = tuple[tuple[int, int], ...]  # (place of the lag, how often), places ascending


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

    def most_held(self, capacity: int, most: int | None) -> int:
        """Return the most partitions that fit into a load."""
        rows = self.rows(capacity, most)
        fitting = int(np.searchsorted(np.cumsum(self.lags[rows]), capacity, side="right"))
        return fitting if most is None else min(fitting, most)


class BlockTable:
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
    """

    def __init__(self, items: Items, values: Whole, capacity: int, most: int | None) -> None:
        self._items, self._values, self._counted = items, values, most is not None
        rows = items.rows(capacity, most)
        self._rows: list[int] = rows.tolist()
        small = (items.most_held(capacity, most) + 1) * int(np.abs(values).max(initial=0)) < SMALL
        kind = np.dtype(np.int32 if small else np.int64)
        layer = np.full((capacity + 1, 1, 1 if most is None else most + 2), IMPOSSIBLE[kind], dtype=kind)
        layer[0, 0, 0] = 0
        self._table = PrefixTable(self._counted, layer, [], [], [])
        self._table.add(list(range(len(rows))), items.lags[rows], values[rows], whole=True)

    @cached_property
    def best(self) -> Whole:
        """The highest value of a pattern by number of partitions and load; far below 0 where there is none."""
        layer = self._table.layer[:, 0]
        return possible(layer[:, :-1] if self._counted else layer).T

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
        level, levels = 0 if count is None else count - 1, self._table.layer.shape[-1]
        least = max(least, IMPOSSIBLE[self._table.layer.dtype] // 2)
        found: dict[int, tuple[int, int, int]] = {}
        for row, (k, before) in enumerate(zip(self._rows, self._table.before, strict=True)):
            lag = int(self._items.lags[k])
            first = max(window.low - lag, 0) * levels + level  # of what the pattern holds beside its largest lag
            others = before[first : max(window.high - lag + 1, 0) * levels : levels]
            if len(others):
                place = int(others.argmax())
                value = int(others[place]) + int(self._values[k])
                if value > least:
                    found[k] = max(found.get(k, (NO_PATTERN, 0, 0)), (value, row, first + place * levels))
        best = sorted(found.values(), reverse=True)
        return [(value, self._pattern(row, cell)) for value, row, cell in best]

    def _pattern(self, row: int, cell: int) -> Pattern:
        """Return the pattern of a row, and of the best one of the rows before it in a cell."""
        (added,) = self._table.steps
        held = Counter([self._rows[row]])
        (last,) = added.held[:row, cell].nonzero()
        while len(last):
            row = int(last[-1])
            held[self._rows[row]] += 1
            cell -= added.shifts[row]
            (last,) = added.held[:row, cell].nonzero()
        return tuple(sorted(held.items()))
