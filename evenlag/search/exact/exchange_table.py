"""What one member may hold of one topic with counts: the best pattern for every load, by how many partitions it takes.

First the table of what it takes is made, which members alike have in common. Then it is decided of each of its own
partitions whether it keeps it, apart for each number taken: so it is known how many partitions a pattern gives and
takes, and how much rounding may be off (rounding.py).
"""

from __future__ import annotations

import numpy as np

from evenlag.model.arrays import Bools, Whole
from evenlag.search.exact import knapsack
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
        self._taken = begun or begin(topic, self._lags, nothing_held(share, capacity, [values]))
        foreign = [place for place in self._taken.left if place not in own]
        self._taken.add(foreign, self._lags, values, whole=whole)
        self._parts: list[_Part] = []
        self._entries: list[tuple[_Part, int, int, int]] = []  # part, row, and how much less and more a load may be
        best = np.full(capacity + 1, IMPOSSIBLE[self._taken.layer.dtype], dtype=self._taken.layer.dtype)
        least_net, most_net = topic.fewest - len(share.own), topic.most - len(share.own)
        for taken in rounding.taken:
            if taken[-1] >= least_net:
                part = _Part(taken, least_net, self._taken.layer[:, 0])
                for place in share.own.tolist():
                    part.keep(place, int(self._lags[place]), int(values[place]), whole=whole)
                self._parts.append(part)
                for row in range(min(most_net, taken[-1]) - least_net + 1):
                    least, most = rounding.beyond(taken, least_net + row)
                    self._entries.append((part, row, least, most))
                    np.maximum(best, largest_within(part.layer[row], least, most), out=best)
        self.best = possible(best)

    def patterns(self, window: Window, most: int) -> list[tuple[int, ...]]:
        """Return the best patterns in a window, one for each rounded load and how many partitions are exchanged."""
        found = [part.layer[row, within(window, *beyond)] for part, row, *beyond in self._entries]
        sizes = np.cumsum([0, *(len(each) for each in found)])
        values = possible(np.concatenate([self._taken.layer[0, 0, :0], *found]))
        order = np.argpartition(-values, most)[:most] if len(values) > most else np.arange(len(values))
        order = order[np.argsort(-values[order], kind="stable")]
        patterns = []
        for i in order[values[order] > knapsack.IMPOSSIBLE].tolist():
            n = int(np.searchsorted(sizes, i, side="right")) - 1
            part, row, *beyond = self._entries[n]
            load = within(window, *beyond).start + i - int(sizes[n])
            held, taken, load = part.pattern(row, load, self._lags)
            patterns.append(tuple(sorted(held + self._taken.pattern(taken, 0, load, self._lags)[0])))
        return patterns

    def listed(self, least: int, window: Window, listing: Listing) -> Bits:
        """List all patterns in a window that are worth at least so much; the table has been kept whole."""
        found = []
        for part in self._parts:
            rows, loads = [], []
            for other, row, *beyond in self._entries:
                if other is part:
                    here = within(window, *beyond)
                    loads.append(here.start + np.flatnonzero(part.layer[row, here] >= least))
                    rows.append(np.full(len(loads[-1]), row, dtype=np.int64))
            if rows:
                found.append(
                    part.listed(np.concatenate(rows), np.concatenate(loads), least, self._lags, self._values, listing)
                )
        if not found:
            return np.zeros((listing.words, 0), dtype=np.uint64)
        taken, load, need = (np.concatenate(column) for column in list(zip(*found, strict=True))[:3])
        bits = np.concatenate([each[3] for each in found], axis=1)
        listing.check(len(load))
        return self._taken.listed((taken, np.zeros_like(taken), load), bits, need, self._lags, self._values, listing)[2]


class _Part:
    """Patterns that take one of some numbers of partitions, by how many more are held in the end than today.

    Parameters
    ----------
    taken : range
    least_net : int
        Fewer are not asked for.
    layer : int32 or int64 array (levels, capacity + 1)
        By how many are taken.
    """

    def __init__(self, taken: range, least_net: int, layer: Values) -> None:
        self._least_net = least_net
        self.layer: Values = np.full(
            (taken[-1] - least_net + 1, layer.shape[1]), IMPOSSIBLE[layer.dtype], dtype=layer.dtype
        )
        for number in taken:
            if least_net <= number < len(layer):
                self.layer[number - least_net] = layer[number]
        self._steps: list[tuple[int, Bools]] = []
        self._before: list[Values] = []

    def keep(self, place: int, lag: int, value: int, *, whole: bool) -> None:
        """Let patterns keep, or give, one that is owned."""
        layer, given = self.layer, self.layer[1:]
        if whole:
            self._before.append(layer)
        self.layer = np.full_like(layer, IMPOSSIBLE[layer.dtype])
        self.layer[:, lag:] = layer[:, : max(layer.shape[1] - lag, 0)] + value
        held = np.ones(layer.shape, dtype=bool)
        np.greater_equal(self.layer[:-1], given, out=held[:-1])
        np.maximum(self.layer[:-1], given, out=self.layer[:-1])
        self._steps.append((place, held))

    def pattern(self, row: int, load: int, lags: Whole) -> tuple[list[int], int, int]:
        """Return what the best pattern keeps, how many it takes, and the load of these."""
        places = []
        for place, held in reversed(self._steps):
            if held[row, load]:
                places.append(place)
                load -= int(lags[place])
            else:
                row += 1
        return places, self._least_net + row, load

    def listed(
        self, row: Whole, load: Whole, least: int, lags: Whole, values: Whole, listing: Listing
    ) -> tuple[Whole, Whole, Whole, Bits]:
        """Go back from patterns that are worth so much; return how many they take, the load, what they need, bits."""
        need = np.full(len(load), least, dtype=np.int64)
        bits: Bits = np.zeros((listing.words, len(load)), dtype=np.uint64)
        for (place, _), layer in zip(reversed(self._steps), reversed(self._before), strict=True):
            lag, value = int(lags[place]), int(values[place])
            kept = np.flatnonzero((load >= lag) & listing.may_hold(int(listing.numbers[place]), bits))
            kept = kept[layer[row[kept], load[kept] - lag] >= need[kept] - value]
            given = np.flatnonzero(row + 1 < len(layer))
            given = given[layer[row[given] + 1, load[given]] >= need[given]]
            bits = np.concatenate([bits[:, given], listing.holding(place, bits[:, kept])], axis=1)
            row = np.concatenate([row[given] + 1, row[kept]])
            load = np.concatenate([load[given], load[kept] - lag])
            need = np.concatenate([need[given], need[kept] - value])
            listing.check(len(load))
        return self._least_net + row, load, need, bits


def within(window: Window, least: int, most: int) -> slice:
    """Return which rounded loads are in a window if a load is so much more, at least and at most."""
    first = max(window.low - most, 0)
    return slice(first, max(window.high - least + 1, first))
