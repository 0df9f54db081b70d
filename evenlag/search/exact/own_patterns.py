"""What one member may hold where members differ: the best pattern for every load, by its own values of partitions.

A knapsack as in knapsack.py, of single partitions and of all topics one after another, each with its own numbers. A
table that is kept whole also lists all patterns that are worth at least so much: from the last partition to the first,
nothing is followed that the partitions before it cannot bring to that worth, so the work grows with what is listed.

Members under the same rules differ by what they own alone. Their tables are built together: half of the members have
what nobody of them owns in common, half of those have more in common, and so on. That takes the logarithm of their
number for each partition, not their number. The slots of idle partitions (idle.py) come last, in order, so that a list
of patterns begins with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, log2
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


@dataclass(eq=False)
class Begun:
    """A table of one topic that some members have in common so far.

    Attributes
    ----------
    layer : int32 or int64 array (levels, 1, capacity + 1)
        The highest values of patterns of the partitions added.
    steps : list of (int, bool array)
        Of each partition added: where the best pattern so far holds it.
    before : list of array
        The layer as it was before each step, if the table is kept whole.
    left : list of int
        Places of partitions that are not yet added.
    """

    layer: Values
    steps: list[tuple[int, Bools]]
    before: list[Values]
    left: list[int]

    def copy(self) -> Begun:
        """Return one that goes on for itself."""
        return Begun(self.layer.copy(), self.steps[:], self.before[:], self.left[:])

    def add(self, places: list[int], topic: Topic, lags: Whole, values: Whole, *, whole: bool) -> None:
        """Let patterns hold these partitions too."""
        layer = self.layer
        without, with_one = (layer[:-1], layer[1:]) if topic.counted else (layer, layer)
        for place in places:
            lag = int(lags[place])
            if whole:
                self.before.append(layer.copy())
            found = without[..., : layer.shape[-1] - lag] + int(values[place])
            here = with_one[..., lag:]
            held = np.zeros(layer.shape, dtype=bool)
            np.greater(found, here, out=(held[1:] if topic.counted else held)[..., lag:])
            np.maximum(found, here, out=here)
            self.steps.append((place, held))
        added = set(places)
        self.left = [place for place in self.left if place not in added]


class OwnTable:
    """Patterns of one member of the highest value, by load.

    Parameters
    ----------
    share : Share
    lags, values : int64 array (P,)
        By place.
    capacity : int
        The largest load that will be asked for.
    whole : bool
        Keep what `all_worth` needs, which takes eight times the memory.
    begun : Begun, optional
        Partitions that are added already, where the share has one topic.

    Attributes
    ----------
    best : int64 array (capacity + 1,)
        The highest value of a pattern with such a load; far below 0 where there is none.
    """

    def __init__(
        self,
        share: Share,
        lags: Whole,
        values: Whole,
        capacity: int,
        *,
        whole: bool = False,
        begun: Begun | None = None,
    ) -> None:
        self._share, self._lags, self._values = share, lags, values
        self._layers: list[Values] = []  # what was best before each step, and after a topic
        self._steps: list[tuple[int, Bools]] = []  # as in `Begun`
        self._merged: list[tuple[Topic, int, Whole]] = []  # of each topic: its steps, and how many partitions are best
        before = _nothing_held(share, capacity, [values]) if begun is None else begun.layer[0]
        for topic in share.topics:
            so_far = begun or _begin(topic, lags, before)
            so_far.add(so_far.left, topic, lags, values, whole=whole)
            before, level = self._merge(topic, so_far.layer)
            self._layers += [*so_far.before, so_far.layer]
            self._steps += so_far.steps
            self._merged.append((topic, len(so_far.steps), level))
        self._last = before
        beyond = before[share.fewest :]
        self._beyond = share.fewest + beyond.argmax(axis=0)
        best = beyond.max(axis=0)
        possible = best > IMPOSSIBLE[best.dtype] // 2
        self.best = np.where(possible, best.astype(np.int64), knapsack.IMPOSSIBLE)

    def _merge(self, topic: Topic, layer: Values) -> tuple[Values, Whole]:
        """Return the best patterns whatever they hold of a topic, and how many partitions that is."""
        fewest = topic.fewest if topic.counted else 0
        best = np.full(layer.shape[1:], IMPOSSIBLE[layer.dtype], dtype=layer.dtype)
        level = np.zeros(layer.shape[1:], dtype=np.int64)
        for count in range(fewest, len(layer)):
            beyond = count - fewest if self._share.together else 0
            if beyond >= len(best):
                break
            found, here = layer[count, : len(best) - beyond], best[beyond:]
            better = found > here
            level[beyond:][better] = count
            here[better] = found[better]
        return best, level

    def patterns(self, window: Window, most: int) -> list[tuple[int, int]]:
        """Return value and load of the best patterns in a window, `most` at most and one for each load, best first."""
        part = self.best[window.low : window.high + 1]
        order = np.argpartition(-part, most)[:most] if len(part) > most else np.arange(len(part))
        order = order[np.argsort(-part[order], kind="stable")]
        return [(int(part[i]), window.low + i) for i in order.tolist() if part[i] > knapsack.IMPOSSIBLE]

    def pattern(self, load: int) -> tuple[int, ...]:
        """Return the best pattern with this load, as places."""
        held, step, beyond = [], len(self._steps), int(self._beyond[load])
        for topic, steps, levels in reversed(self._merged):
            level = int(levels[beyond, load])
            beyond -= level - topic.fewest if self._share.together else 0
            for place, taken in reversed(self._steps[step - steps : step]):
                if taken[level, beyond, load]:
                    held.append(place)
                    load -= int(self._lags[place])
                    level -= topic.counted
            step -= steps
        return tuple(sorted(held))

    def all_worth(self, least: int, window: Window, numbers: Whole, may_hold: MayHold, most: int) -> Bits:
        """List all patterns in a window that are worth at least so much, as bits; the table has been kept whole.

        Parameters
        ----------
        least : int
        window : Window
        numbers : int64 array (P,)
            The bit of each place.
        may_hold : callable
            Given a bit and what patterns hold of the places after it, says which of them may hold it too.
        most : int

        Raises
        ------
        TooManyError
            More than `most` are found on the way.
        """
        layers = list(self._layers)
        beyond, load = np.nonzero(self._last[:, window.low : window.high + 1] >= least)
        kept = beyond >= self._share.fewest
        beyond, load = beyond[kept], load[kept] + window.low
        need = np.full(len(load), least, dtype=np.int64)
        bits: Bits = np.zeros((int(numbers.max()) // WORD + 1, len(load)), dtype=np.uint64)
        step = len(self._steps)
        for topic, steps, _ in reversed(self._merged):
            layer = layers.pop()
            rows, level = self._levels(topic, layer, beyond, load, need)
            bits, load, need = bits[:, rows], load[rows], need[rows]
            beyond = beyond[rows] - (level - topic.fewest if self._share.together else 0)
            shape = layer.shape
            row = int(topic.counted) * shape[1] * shape[2]
            at = np.ravel_multi_index((level, beyond, load), shape)
            for place, _ in reversed(self._steps[step - steps : step]):
                layer, lag, value = layers.pop().ravel(), int(self._lags[place]), int(self._values[place])
                number = int(numbers[place])
                taken = np.flatnonzero((load >= lag) & (at >= row + lag) & may_hold(number, bits))
                taken = taken[layer[at[taken] - row - lag] >= need[taken] - value]
                kept = layer[at] >= need
                if not len(taken) and kept.all():
                    continue
                held = bits[:, taken]
                held[number // WORD] |= np.uint64(1) << np.uint64(number % WORD)
                bits = np.concatenate([bits[:, kept], held], axis=1)
                at = np.concatenate([at[kept], at[taken] - row - lag])
                load = np.concatenate([load[kept], load[taken] - lag])
                need = np.concatenate([need[kept], need[taken] - value])
                if len(load) > most:
                    raise TooManyError
            beyond, load = np.unravel_index(at, shape)[1:]
            step -= steps
        return bits

    def _levels(self, topic: Topic, layer: Values, beyond: Whole, load: Whole, need: Whole) -> tuple[Whole, Whole]:
        """Return all ways to hold some of a topic: which rows, and how many partitions."""
        fewest = topic.fewest if topic.counted else 0
        found = []
        for level in range(fewest, len(layer)):
            less = level - topic.fewest if self._share.together else 0
            rows = np.flatnonzero(beyond >= less)
            rows = rows[layer[level, beyond[rows] - less, load[rows]] >= need[rows]]
            found.append((rows, np.full(len(rows), level, dtype=np.int64)))
        rows, levels = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return rows, levels


def tables_of(
    shares: list[Share], lags: Whole, values: list[Whole], capacity: int, *, whole: bool = False
) -> Iterator[tuple[int, OwnTable]]:
    """Yield which member it is of, and its table; those with the same share of one topic are built together.

    Parameters
    ----------
    shares : list of Share
    lags : int64 array (P,)
    values : list of int64 array (P,)
        Of each member.
    capacity : int
    whole : bool
        As in `OwnTable`.
    """
    for members in _alike(shares):
        share, topic = shares[members[0]], shares[members[0]].topics[0]
        if len(members) == 1:
            yield members[0], OwnTable(share, lags, values[members[0]], capacity, whole=whole)
            continue
        common = np.minimum.reduce([values[n] for n in members])
        own = {n: values[n] != common for n in members}
        for apart in own.values():
            apart[topic.slots] = True
        parts = [(members, _begin(topic, lags, _nothing_held(share, capacity, [values[n] for n in members])))]
        while parts:
            some, begun = parts.pop()
            apart = np.logical_or.reduce([own[n] for n in some])
            begun.add([place for place in begun.left if not apart[place]], topic, lags, common, whole=whole)
            if len(some) == 1:
                yield some[0], OwnTable(share, lags, values[some[0]], capacity, whole=whole, begun=begun)
            else:
                middle = len(some) // 2
                parts += [(some[middle:], begun), (some[:middle], begun.copy())]


def rows_of(shares: list[Share]) -> int:
    """Return how many rows the tables of all members have that are built apart, whatever the loads."""
    alike = [(shares[some[0]], len(some)) for some in _alike(shares)]
    return sum(ceil(share.rows * (log2(members) + 1)) + members * share.slot_rows for share, members in alike)


def _alike(shares: list[Share]) -> list[list[int]]:
    """Return which members have the same share, those of several topics each for itself."""
    found: dict[object, list[int]] = {}
    for n, share in enumerate(shares):
        first = share.topics[0]
        same = (share.together, share.fewest, share.most, first.fewest, first.most, first.places.tobytes())
        found.setdefault(same if len(share.topics) == 1 else n, []).append(n)
    return list(found.values())


def _nothing_held(share: Share, capacity: int, values: list[Whole]) -> Values:
    """Return the highest values before there is any partition, in numbers that these values fit."""
    held = sum(topic.most for topic in share.topics)  # at most, on the way too
    small = all((held + 1) * int(np.abs(each).max(initial=0)) < SMALL for each in values)
    kind = np.dtype(np.int32 if small else np.int64)
    before: Values = np.full((share.most + 1, capacity + 1), IMPOSSIBLE[kind], dtype=kind)
    before[0, 0] = 0
    return before


def _begin(topic: Topic, lags: Whole, before: Values) -> Begun:
    """Return what there is before any partition of a topic; those that are too large are left out."""
    layer = np.full((topic.levels, *before.shape), IMPOSSIBLE[before.dtype], dtype=before.dtype)
    layer[0] = before
    held = topic.places[lags[topic.places] < before.shape[-1]]
    return Begun(layer, [], [], [*held.tolist(), *topic.slots.tolist()])
