"""What one member may hold of several topics, or of one without counts: the best pattern for every load.

Topics come one after another, each with its own numbers of partitions.
"""

from __future__ import annotations

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.search.exact import knapsack
from evenlag.search.exact.bits import Bits
from evenlag.search.exact.member_share import Topic
from evenlag.search.exact.prefix_table import (
    IMPOSSIBLE,
    Listing,
    PrefixTable,
    Values,
    begin,
    largest_within,
    nothing_held,
    possible,
    within,
)
from evenlag.search.exact.rounding import Rounding
from evenlag.search.exact.windows import Window


class TopicsTable:
    """Patterns of one member of the highest value, by load.

    Parameters
    ----------
    rounding : Rounding
    values : int64 array (P,)
    capacity : int
        The largest load that will be asked for.
    whole : bool
        Keep what `listed` needs, which takes eight times the memory.
    begun : PrefixTable, optional
        Partitions that are added already, where the share has one topic.

    Attributes
    ----------
    best : int64 array (capacity + 1,)
        As in `OwnTable`.
    """

    def __init__(
        self, rounding: Rounding, values: Whole, capacity: int, *, whole: bool = False, begun: PrefixTable | None = None
    ) -> None:
        self._share, self._lags, self._values = rounding.share, rounding.lags, values
        self._topics: list[tuple[Topic, PrefixTable, Whole]] = []  # of each, and how many of its partitions are best
        before = nothing_held([self._share], capacity, [values]) if begun is None else begun.layer[..., 0]
        for topic in self._share.topics:
            so_far = begun or begin(topic, self._lags, before)
            so_far.add(so_far.left, self._lags, values, whole=whole)
            before, level = self._merge(topic, so_far.layer)
            self._topics.append((topic, so_far, level))
        self._last = before
        beyond = before[:, self._share.fewest :]
        self._beyond = self._share.fewest + beyond.argmax(axis=1)
        self._exact, self._more = possible(beyond.max(axis=1)), rounding.most
        self.best = largest_within(self._exact, 0, self._more)

    def _merge(self, topic: Topic, layer: Values) -> tuple[Values, Whole]:
        """Return the best patterns whatever they hold of a topic, and how many partitions that is."""
        fewest = topic.fewest if topic.counted else 0
        if not self._share.together:
            allowed: Values = layer[..., fewest : topic.levels]
            return allowed.max(axis=2), fewest + allowed.argmax(axis=2)
        best: Values = np.full(layer.shape[:2], IMPOSSIBLE[layer.dtype], dtype=layer.dtype)
        level: Whole = np.zeros(layer.shape[:2], dtype=np.int64)
        for beyond in range(min(topic.levels - fewest, best.shape[1])):
            found, here = layer[:, : best.shape[1] - beyond, fewest + beyond], best[:, beyond:]
            better = found > here
            level[:, beyond:][better] = fewest + beyond
            here[better] = found[better]
        return best, level

    def patterns(self, window: Window, most: int) -> list[tuple[int, ...]]:
        """Return the best patterns in a window, one for each rounded load."""
        here = within(window, 0, self._more, len(self._exact) - 1)
        part = self._exact[here]
        order = np.argpartition(-part, most)[:most] if len(part) > most else np.arange(len(part))
        order = order[np.argsort(-part[order], kind="stable")]
        return [self._pattern(here.start + i) for i in order.tolist() if part[i] > knapsack.IMPOSSIBLE]

    def _pattern(self, load: int) -> tuple[int, ...]:
        """Return the best pattern with this rounded load."""
        held, beyond = [], int(self._beyond[load])
        for topic, begun, levels in reversed(self._topics):
            level = int(levels[load, beyond])
            beyond -= level - topic.fewest if self._share.together else 0
            places, load = begun.pattern(level, beyond, load)
            held += places
        return tuple(sorted(held))

    def listed(self, least: int, window: Window, listing: Listing) -> Bits:
        """List all patterns in a window that are worth at least so much; the table has been kept whole."""
        here = within(window, 0, self._more, len(self._exact) - 1)
        load, beyond = np.nonzero(self._last[here] >= least)
        kept = beyond >= self._share.fewest
        beyond, load = beyond[kept], load[kept] + here.start
        need = np.full(len(load), least, dtype=np.int64)
        bits: Bits = np.zeros((listing.words, len(load)), dtype=np.uint64)
        for topic, begun, _ in reversed(self._topics):
            rows, level = self._levels(topic, begun.layer, beyond, load, need)
            beyond = beyond[rows] - (level - topic.fewest if self._share.together else 0)
            beyond, load, bits, need = begun.listed(
                (level, beyond, load[rows]), bits[:, rows], need[rows], self._lags, self._values, listing
            )
        return bits

    def _levels(self, topic: Topic, layer: Values, beyond: Whole, load: Whole, need: Whole) -> tuple[Whole, Whole]:
        """Return all ways to hold some of a topic: which rows, and how many partitions."""
        fewest = topic.fewest if topic.counted else 0
        found = []
        for level in range(fewest, topic.levels):
            less = level - topic.fewest if self._share.together else 0
            rows = np.flatnonzero(beyond >= less)
            rows = rows[layer[load[rows], beyond[rows] - less, level] >= need[rows]]
            found.append((rows, np.full(len(rows), level, dtype=np.int64)))
        rows, levels = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return rows, levels
