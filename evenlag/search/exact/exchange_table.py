"""What one member may hold of one topic with counts: the best pattern for every load, by how many partitions it takes.

First the table of what it takes is made, which members alike have in common. Then it is decided of each of its own
partitions whether it keeps it, apart for each number taken: so it is known how many partitions a pattern gives and
takes, and how much rounding may be off (rounding.py).
"""

from __future__ import annotations

import numpy as np

from evenlag.model.arrays import Bools, Whole
from evenlag.search.exact.bits import Bits
from evenlag.search.exact.own_layers import (
    IMPOSSIBLE,
    Begun,
    Listing,
    Values,
    begin,
    largest_within,
    nothing_held,
    possible,
    within,
)
from evenlag.search.exact.rounding import Rounding
from evenlag.search.exact.windows import Window


class ExchangeTable:
    """Patterns of one member of the highest value, by load.

    Parameters
    ----------
    rounding, values, capacity, whole
        As in `TopicsTable`.
    begun : Begun, optional
        Partitions of others that are added already.

    Attributes
    ----------
    best : int64 array (capacity + 1,)
        As in `OwnTable`.
    """

    def __init__(
        self, rounding: Rounding, values: Whole, capacity: int, *, whole: bool = False, begun: Begun | None = None
    ) -> None:
        share, self._lags, self._values = rounding.share, rounding.lags, values
        topic, own = share.topics[0], set(share.own.tolist())
        self._taken = begun or begin(topic, self._lags, nothing_held([share], capacity, [values]))
        foreign = [place for place in self._taken.left if place not in own]
        self._taken.add(foreign, self._lags, values, whole=whole)
        self._least_net = topic.fewest - len(share.own)  # how many more are held than today
        self._bottoms, ends = self._rows(rounding.taken)
        self._after: list[Values] = [self._all_kept(rounding.taken, ends[-1] + 1)]  # before and after each of its own
        self._kept: list[tuple[int, Bools]] = []
        for place in share.own.tolist():
            layer, kept = self._keep(self._after[-1], ends, int(self._lags[place]), int(values[place]))
            self._after = [*self._after, layer] if whole else [layer]
            self._kept.append((place, kept))
        self._entries = [  # rows of patterns, and how much less and more the load may be
            (bottom + net, *beyond)
            for bottom, end, beyonds in zip(self._bottoms, ends, rounding.beyond, strict=True)
            for net, beyond in enumerate(beyonds[: end - bottom])
        ]
        best = np.full(capacity + 1, IMPOSSIBLE[self._last.dtype], dtype=self._last.dtype)
        for row, least, most in self._entries:
            np.maximum(best, largest_within(self._last[row], least, most), out=best)
        self.best = possible(best)

    @property
    def _last(self) -> Values:
        return self._after[-1]

    def _rows(self, taken: list[range]) -> tuple[list[int], list[int]]:
        """Return the first row of each class of numbers taken, and the row that follows its last.

        Within a class a row is how many more are held than today, so far, all own ones still to be decided with them.
        No pattern has a row of those that follow: what is given there would come from the next class.
        """
        bottoms: list[int] = []
        ends: list[int] = []
        for some in taken:
            bottoms.append(ends[-1] + 1 if ends else 0)
            ends.append(bottoms[-1] + max(some[-1] - self._least_net + 1, 0))
        return bottoms, ends

    def _all_kept(self, taken: list[range], rows: int) -> Values:
        """Return the best patterns where all of its own is held, the layer as it is before that."""
        layer = self._taken.layer[:, 0]
        begun: Values = np.full((rows, layer.shape[1]), IMPOSSIBLE[layer.dtype], dtype=layer.dtype)
        for bottom, numbers in zip(self._bottoms, taken, strict=True):
            for number in numbers:
                if number >= self._least_net:
                    begun[bottom + number - self._least_net] = layer[number]
        return begun

    @staticmethod
    def _keep(layer: Values, ends: list[int], lag: int, value: int) -> tuple[Values, Bools]:
        """Return the layer once patterns keep, or give, one that is owned, and which keep it."""
        after = np.empty_like(layer)
        after[:, :lag] = IMPOSSIBLE[layer.dtype]
        np.add(layer[:, : max(layer.shape[1] - lag, 0)], value, out=after[:, lag:])
        kept = np.ones(layer.shape, dtype=bool)
        np.greater_equal(after[:-1], layer[1:], out=kept[:-1])
        np.maximum(after[:-1], layer[1:], out=after[:-1])
        after[ends] = IMPOSSIBLE[layer.dtype]
        return after, kept

    def patterns(self, window: Window, most: int) -> list[tuple[int, ...]]:
        """Return the best patterns in a window, one for each rounded load and how many partitions are exchanged."""
        found = []
        for row, less, more in self._entries:
            here = within(window, less, more, self._last.shape[1] - 1)
            values = self._last[row, here]
            if most == 1 and len(values):
                chosen = [int(values.argmax())]
            else:
                chosen = (
                    np.argpartition(values, -most)[-most:].tolist() if len(values) > most else list(range(len(values)))
                )
            found += [(-int(values[at]), row, here.start + at) for at in chosen]
        worst = -IMPOSSIBLE[self._last.dtype] // 2
        return [self._pattern(row, load) for value, row, load in sorted(found)[:most] if value < worst]

    def _pattern(self, row: int, load: int) -> tuple[int, ...]:
        """Return the best pattern of a row with this rounded load."""
        held = []
        for place, kept in reversed(self._kept):
            if kept[row, load]:
                held.append(place)
                load -= int(self._lags[place])
            else:
                row += 1
        return tuple(sorted(held + self._taken.pattern(int(self._taken_in(row)), 0, load, self._lags)[0]))

    def _taken_in(self, row: Whole | int) -> Whole:
        """Return how many are taken in rows where all of its own is held."""
        bottoms = np.array(self._bottoms)
        return row - bottoms[np.searchsorted(bottoms, row, side="right") - 1] + self._least_net

    def listed(self, least: int, window: Window, listing: Listing) -> Bits:
        """List all patterns in a window that are worth at least so much; the table has been kept whole."""
        rows, loads = [], []
        for entry, less, more in self._entries:
            here = within(window, less, more, self._last.shape[1] - 1)
            loads.append(here.start + np.flatnonzero(self._last[entry, here] >= least))
            rows.append(np.full(len(loads[-1]), entry))
        row, load = np.concatenate(rows), np.concatenate(loads)
        need = np.full(len(load), least, dtype=np.int64)
        bits: Bits = np.zeros((listing.words, len(load)), dtype=np.uint64)
        for (place, _), layer in zip(reversed(self._kept), reversed(self._after[:-1]), strict=True):
            lag, value = int(self._lags[place]), int(self._values[place])
            kept = np.flatnonzero((load >= lag) & listing.may_hold(int(listing.numbers[place]), bits))
            kept = kept[layer[row[kept], load[kept] - lag] >= need[kept] - value]
            given = np.flatnonzero(layer[row + 1, load] >= need)
            bits = np.concatenate([bits[:, given], listing.holding(place, bits[:, kept])], axis=1)
            row = np.concatenate([row[given] + 1, row[kept]])
            load = np.concatenate([load[given], load[kept] - lag])
            need = np.concatenate([need[given], need[kept] - value])
            listing.check(len(load))
        taken = self._taken_in(row)
        return self._taken.listed((taken, np.zeros_like(taken), load), bits, need, self._lags, self._values, listing)[2]
