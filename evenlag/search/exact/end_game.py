"""The last partitions of a packing: all ways to share out few of them are looked at."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from evenlag.model.arrays import Bools, Whole
from evenlag.search.exact.knapsack import Items, Pattern
from evenlag.search.exact.windows import Window

if TYPE_CHECKING:
    from evenlag.search.exact.packing import Counts

MOST_LEFT = 18  # partitions: 2^18 subsets are listed, some hundredths of a second
MOST_NODES = 5_000  # sets of partitions left that are looked at


def share_out(items: Items, members: int, window: Window, counts: Counts | None, extra: int) -> list[Pattern] | None:
    """Return a pattern for each member, all partitions in them and all loads in the window; None if none is found.

    The member of the largest partition left is filled first, and fullest patterns come first, for what one member
    leaves free no other can use.
    """
    places = np.repeat(np.arange(len(items.lags)), items.demand)[::-1]
    if len(places) > MOST_LEFT:
        return None
    sums, sizes = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for lag in items.lags[places].tolist():  # bit i stands for place i
        sums, sizes = np.concatenate([sums, sums + lag]), np.concatenate([sizes, sizes + 1])
    slack, spare = members * window.high - int(sums[-1]), int(sums[-1]) - members * window.low
    if slack < 0 or spare < 0:
        return None
    allowed = (sums <= min(window.high, window.low + spare)) & (sums >= max(window.low, window.high - slack))
    if counts is not None:
        allowed &= (sizes >= counts.fewest) & (sizes <= counts.fewest + (extra > 0))
    subsets = np.flatnonzero(allowed)
    first = subsets & -subsets
    by_first = [subsets[first == 1 << i] for i in range(len(places))]
    by_first = [each[np.argsort(-sums[each], kind="stable")] for each in by_first]
    search = _Search(by_first, sums, allowed, window.high)
    found = search.cover((1 << len(places)) - 1, members, slack)
    if found is None:
        return None
    return [_pattern(places, subset) for subset in found]


class _Search:
    """Depth-first search for disjoint subsets; what has led nowhere is remembered."""

    def __init__(self, by_first: list[Whole], sums: Whole, allowed: Bools, capacity: int) -> None:
        self.by_first, self.sums, self.allowed, self.capacity = by_first, sums, allowed, capacity
        self.dead: set[tuple[int, int]] = set()  # what is left, and members

    def cover(self, left: int, members: int, slack: int) -> list[int] | None:
        """Return disjoint allowed subsets, one for each member, that hold all that is left."""
        if left == 0:
            return [0] * members if members == 0 or self.allowed[0] else None
        if members == 0 or (left, members) in self.dead or len(self.dead) > MOST_NODES:
            return None
        if members == 1:
            return [left] if self.allowed[left] else None
        options = self.by_first[(left & -left).bit_length() - 1]
        options = options[(options & ~left) == 0]
        wasted = self.capacity - self.sums[options]
        for subset, waste in zip(options.tolist(), wasted.tolist(), strict=True):
            if waste > slack:
                break
            rest = self.cover(left ^ subset, members - 1, slack - waste)
            if rest is not None:
                return [subset, *rest]
        self.dead.add((left, members))
        return None


def _pattern(places: Whole, subset: int) -> Pattern:
    held = Counter(int(place) for i, place in enumerate(places) if subset >> i & 1)
    return tuple(sorted(held.items()))
