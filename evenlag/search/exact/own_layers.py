"""The best patterns of one topic for every load, one partition after another: what tables are made of.

A knapsack as in knapsack.py, of single partitions, each with a value of its own. Layers that are kept whole also list
all patterns that are worth at least so much: from the last partition to the first, nothing is followed that the
partitions before it cannot bring to that worth, so the work grows with what is listed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Bools, Whole
from evenlag.search.exact import knapsack
from evenlag.search.exact.bits import WORD, Bits
from evenlag.search.exact.member_share import Share, Topic
from evenlag.search.exact.too_many import TooManyError
from evenlag.search.exact.windows import Window

SMALL = 2**29  # what values of patterns are below where 32 bits do
IMPOSSIBLE = {np.dtype(np.int32): -2 * SMALL, np.dtype(np.int64): knapsack.IMPOSSIBLE}

Values = NDArray[np.signedinteger[Any]]  # int32 or int64
MayHold = Callable[[int, Bits], Bools]


@dataclass(frozen=True, eq=False)
class Listing:
    """All patterns that are worth at least so much, on the way from the last partition to the first.

    Attributes
    ----------
    numbers : int64 array (P,)
        The bit of each place.
    may_hold : callable
        Given a bit and what patterns hold of the places after it, says which of them may hold it too.
    most : int
        Patterns: with more it is `TooManyError`.
    """

    numbers: Whole
    may_hold: MayHold
    most: int

    @property
    def words(self) -> int:
        """How many words bits take."""
        return int(self.numbers.max()) // WORD + 1

    def holding(self, place: int, bits: Bits) -> Bits:
        """Return patterns that hold this place too."""
        number = int(self.numbers[place])
        held = bits.copy()
        held[number // WORD] |= np.uint64(1) << np.uint64(number % WORD)
        return held

    def check(self, found: int) -> None:
        """Raise `TooManyError` where there are too many."""
        if found > self.most:
            raise TooManyError


@dataclass(eq=False)
class Begun:
    """A table of one topic that some members have in common so far.

    Attributes
    ----------
    counted : bool
        Whether levels are numbers of partitions held; else there is one level for all.
    layer : int32 or int64 array (levels, beyond, capacity + 1)
        The highest values of patterns of the partitions added.
    steps : list of (int, bool array)
        Of each partition added: where the best pattern so far holds it.
    before : list of array
        The layer as it was before each step, if the table is kept whole.
    left : list of int
        Places of partitions that are not yet added.
    """

    counted: bool
    layer: Values
    steps: list[tuple[int, Bools]]
    before: list[Values]
    left: list[int]

    def copy(self) -> Begun:
        """Return one that goes on for itself."""
        return Begun(self.counted, self.layer.copy(), self.steps[:], self.before[:], self.left[:])

    def add(self, places: list[int], lags: Whole, values: Whole, *, whole: bool) -> None:
        """Let patterns hold these partitions too."""
        layer = self.layer
        without, with_one = (layer[:-1], layer[1:]) if self.counted else (layer, layer)
        for place in places:
            lag = int(lags[place])
            if whole:
                self.before.append(layer.copy())
            found = without[..., : layer.shape[-1] - lag] + int(values[place])
            here = with_one[..., lag:]
            held = np.zeros(layer.shape, dtype=bool)
            np.greater(found, here, out=(held[1:] if self.counted else held)[..., lag:])
            np.maximum(found, here, out=here)
            self.steps.append((place, held))
        added = set(places)
        self.left = [place for place in self.left if place not in added]

    def pattern(self, level: int, beyond: int, load: int, lags: Whole) -> tuple[list[int], int]:
        """Return which places the best pattern holds, and the load of what it holds beside these."""
        places = []
        for place, held in reversed(self.steps):
            if held[level, beyond, load]:
                places.append(place)
                load -= int(lags[place])
                level -= self.counted
        return places, load

    def listed(
        self, states: tuple[Whole, Whole, Whole], bits: Bits, need: Whole, lags: Whole, values: Whole, listing: Listing
    ) -> tuple[Whole, Whole, Bits, Whole]:
        """Go back from (level, beyond, load) of patterns that need so much; return beyond, load, bits and need."""
        load = states[2]
        shape = self.layer.shape
        row = int(self.counted) * shape[1] * shape[2]
        at = np.ravel_multi_index(states, shape)
        for (place, _), before in zip(reversed(self.steps), reversed(self.before), strict=True):
            layer, lag, value = before.ravel(), int(lags[place]), int(values[place])
            taken = np.flatnonzero(
                (load >= lag) & (at >= row + lag) & listing.may_hold(int(listing.numbers[place]), bits)
            )
            taken = taken[layer[at[taken] - row - lag] >= need[taken] - value]
            kept = layer[at] >= need
            if not len(taken) and kept.all():
                continue
            bits = np.concatenate([bits[:, kept], listing.holding(place, bits[:, taken])], axis=1)
            at = np.concatenate([at[kept], at[taken] - row - lag])
            load = np.concatenate([load[kept], load[taken] - lag])
            need = np.concatenate([need[kept], need[taken] - value])
            listing.check(len(load))
        return np.unravel_index(at, shape)[1], load, bits, need


def nothing_held(shares: list[Share], capacity: int, values: list[Whole]) -> Values:
    """Return the highest values before there is any partition, in numbers that these values fit: of members alike."""
    share = shares[0]
    held = sum(topic.most for topic in share.topics) + max(len(each.own) for each in shares)  # at most, on the way
    small = all((held + 1) * int(np.abs(each).max(initial=0)) < SMALL for each in values)
    kind = np.dtype(np.int32 if small else np.int64)
    before: Values = np.full((share.most + 1, capacity + 1), IMPOSSIBLE[kind], dtype=kind)
    before[0, 0] = 0
    return before


def begin(topic: Topic, lags: Whole, before: Values) -> Begun:
    """Return what there is before any partition of a topic; those that are too large are left out."""
    layer = np.full((topic.levels, *before.shape), IMPOSSIBLE[before.dtype], dtype=before.dtype)
    layer[0] = before
    held = topic.places[lags[topic.places] < before.shape[-1]]
    return Begun(topic.counted, layer, [], [], [*held.tolist(), *topic.slots.tolist()])


def possible(best: Values) -> Whole:
    """Return values as 64 bits, far below 0 where there is no pattern."""
    return np.where(best > IMPOSSIBLE[best.dtype] // 2, best.astype(np.int64), knapsack.IMPOSSIBLE)


def within(window: Window, least: int, most: int, capacity: int) -> slice:
    """Return which rounded loads, up to a capacity, are in a window if a load is so much more, at least and at most."""
    first, end = max(window.low - most, 0), min(window.high - least, capacity) + 1
    return slice(first, max(end, first))


def largest_within(values: Values, least: int, most: int) -> Values:
    """Return for each load the largest value of those that are so much less, at least and at most."""
    largest = np.full_like(values, IMPOSSIBLE[values.dtype])
    largest[least:] = values[: max(len(values) - least, 0)]
    reach = 0
    while reach < most - least:
        step = min(reach + 1, most - least - reach)
        largest[step:] = np.maximum(largest[step:], largest[:-step])
        reach += step
    return largest
