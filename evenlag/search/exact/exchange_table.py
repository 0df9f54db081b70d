"""What one member may hold of one topic with counts: the best pattern for every load, by how many partitions it takes.

First the table of what it takes is made, which members alike have in common. Then it is decided of each of its own
partitions whether it keeps it, apart for each number taken: so it is known how many partitions a pattern gives and
takes, and how much rounding may be off (rounding.py).
"""

from __future__ import annotations

import numpy as np

from evenlag.model.arrays import Bools, Whole
from evenlag.search.exact.bits import Bits
from evenlag.search.exact.prefix_table import (
    IMPOSSIBLE,
    Listing,
    PrefixTable,
    Values,
    begin,
    largest_within,
    nothing_held,
    possible,
)
from evenlag.search.exact.rounding import Rounding
from evenlag.search.exact.windows import Window


class ExchangeTable:
    """Patterns of one member of the highest value, by load.

    Parameters
    ----------
    rounding, values, capacity, whole
        As in `TopicsTable`.
    begun : PrefixTable, optional
        Partitions of others that are added already.

    Attributes
    ----------
    best : int64 array (capacity + 1,)
        As in `OwnTable`.
    """

    def __init__(
        self, rounding: Rounding, values: Whole, capacity: int, *, whole: bool = False, begun: PrefixTable | None = None
    ) -> None:
        share, self._lags, self._values = rounding.share, rounding.lags, values
        topic, own = share.topics[0], set(share.own.tolist())
        self._taken = begun or begin(topic, self._lags, nothing_held([share], capacity, [values]))
        foreign = [place for place in self._taken.left if place not in own]
        self._taken.add(foreign, self._lags, values, whole=whole)
        self._rows = rounding.rows
        layer: Values = self._taken.layer[:, 0].take(self._rows.source, axis=1)
        self._before: list[Values] = []  # the layer before each of its own, if the table is kept whole
        self._kept: list[tuple[int, Bools]] = []
        for place in share.own.tolist():
            if whole:
                self._before.append(layer)
            layer, kept = self._keep(layer, int(self._lags[place]), int(values[place]))
            self._kept.append((place, kept))
        self._last: Values = np.ascontiguousarray(layer.T)
        best = np.full(capacity + 1, IMPOSSIBLE[layer.dtype], dtype=layer.dtype)
        for (least, most), rows in self._rows.best:
            np.maximum(best, largest_within(self._last[rows].max(axis=0), least, most), out=best)
        self.best = possible(best)

    def _keep(self, layer: Values, lag: int, value: int) -> tuple[Values, Bools]:
        """Return the layer once patterns keep, or give, one that is owned, and which keep it.

        To give it is the cell before; whatever leads out of a class of rows so is made impossible.
        """
        loads, rows = layer.shape
        cells, shift = layer.reshape(-1), min(lag, loads) * rows
        after: Values = np.empty_like(cells)
        after[:shift] = IMPOSSIBLE[layer.dtype]
        np.add(cells[: len(cells) - shift], value, out=after[shift:])
        kept = np.empty(len(cells), dtype=bool)
        np.greater_equal(after[:-1], cells[1:], out=kept[:-1])
        np.maximum(after[:-1], cells[1:], out=after[:-1])
        after = after.reshape(layer.shape)
        for end in self._rows.ends:
            after[:, end] = IMPOSSIBLE[layer.dtype]
        return after, kept.reshape(layer.shape)

    def patterns(self, window: Window, most: int) -> list[tuple[int, ...]]:
        """Return the best patterns in a window, one for each rounded load and how many partitions are exchanged."""
        cells = self._rows.cells(window, self._last.shape[1])
        values = self._last.reshape(-1)[cells]
        if len(cells) > most:
            chosen = np.argpartition(values, -most)[-most:]
            cells, values = cells[chosen], values[chosen]
        real = values > IMPOSSIBLE[values.dtype] // 2
        found = sorted(zip((-values[real]).tolist(), cells[real].tolist(), strict=True))
        return [self._pattern(*divmod(cell, self._last.shape[1])) for _, cell in found]

    def _pattern(self, row: int, load: int) -> tuple[int, ...]:
        """Return the best pattern of a row with this rounded load."""
        held = []
        for place, kept in reversed(self._kept):
            if kept[load, row]:
                held.append(place)
                load -= int(self._lags[place])
            else:
                row += 1
        return tuple(sorted(held + self._taken.pattern(int(self._rows.taken[row]), 0, load)[0]))

    def listed(self, least: int, window: Window, listing: Listing) -> Bits:
        """List all patterns in a window that are worth at least so much; the table has been kept whole."""
        cells = self._rows.cells(window, self._last.shape[1])
        row, load = np.divmod(cells[self._last.reshape(-1)[cells] >= least], self._last.shape[1])
        need = np.full(len(load), least, dtype=np.int64)
        bits: Bits = np.zeros((listing.words, len(load)), dtype=np.uint64)
        for (place, _), layer in zip(reversed(self._kept), reversed(self._before), strict=True):
            lag, value = int(self._lags[place]), int(self._values[place])
            kept = np.flatnonzero((load >= lag) & listing.may_hold(int(listing.numbers[place]), bits))
            kept = kept[layer[load[kept] - lag, row[kept]] >= need[kept] - value]
            given = np.flatnonzero(layer[load, row + 1] >= need)
            bits = np.concatenate([bits[:, given], listing.holding(place, bits[:, kept])], axis=1)
            row = np.concatenate([row[given] + 1, row[kept]])
            load = np.concatenate([load[given], load[kept] - lag])
            need = np.concatenate([need[given], need[kept] - value])
            listing.check(len(load))
        taken = self._rows.taken[row]
        return self._taken.listed((taken, np.zeros_like(taken), load), bits, need, self._lags, self._values, listing)[2]
