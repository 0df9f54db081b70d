"""The best pattern for every load at once, one partition after another: what one member may hold is a knapsack.

Dynamic programming over loads, in whole numbers, so that what it says is exact. It is the pricing problem of cutting
stock (Gilmore and Gomory 1961). What differs: loads and numbers of partitions are met exactly and values may be below
0, so that one table serves all windows of loads.

Layers that are kept whole also list all patterns that are worth at least so much: from the last partition to the first,
nothing is followed that the partitions before it cannot bring to that worth, so the work grows with what is listed.

Of members alike partitions with one lag are one item, of which a pattern holds some, and one table does for all
(`BlockTable`). Where each has values of its own, tables go on from what members have in common (member_tables.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Bools, Whole
from evenlag.search.exact.member_share import Share, Topic
from evenlag.search.exact.windows import Window
from evenlag.search.subsets import WORD, Bits, EnumerationLimitError

Pattern = tuple[tuple[int, int], ...]  # (place of the lag, how often), places ascending
SMALL = 2**29  # what values of patterns are below where 32 bits do
NO_PATTERN = -(1 << 60)  # the value, or nearly, where no pattern has such a load
IMPOSSIBLE = {np.dtype(np.int32): -2 * SMALL, np.dtype(np.int64): NO_PATTERN}  # the same in tables, by their numbers

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
        Patterns: with more it is `EnumerationLimitError`.
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
        """Raise `EnumerationLimitError` where there are too many."""
        if found > self.most:
            raise EnumerationLimitError


class Added(NamedTuple):
    """Partitions that a table got together.

    Attributes
    ----------
    places : list of int
    shifts : list of int
        By how many cells each moves the patterns that it is added to.
    held : bool array (places, cells)
        Where the best pattern so far holds it.
    """

    places: list[int]
    shifts: list[int]
    held: Bools


@dataclass(eq=False)
class PrefixTable:
    """A table of one topic that some members have in common so far.

    Loads come first, so a partition moves all patterns that it is added to by the same number of cells, and they are
    two slices to NumPy. Past the last level there is one that stays impossible: one step from it is level 0 again.

    Attributes
    ----------
    counted : bool
        Whether levels are numbers of partitions held; else there is one level for all.
    layer : int32 or int64 array (capacity + 1, beyond, levels and the impossible one)
        The highest values of patterns of the partitions added.
    steps : list of Added
    before : list of array
        The cells as they were before each partition, if the table is kept whole.
    left : list of int
        Places of partitions that are not yet added.
    """

    counted: bool
    layer: Values
    steps: list[Added]
    before: list[Values]
    left: list[int]

    def copy(self) -> PrefixTable:
        """Return one that goes on for itself."""
        return PrefixTable(self.counted, self.layer.copy(), self.steps[:], self.before[:], self.left[:])

    def add(self, places: list[int], lags: Whole, values: Whole, *, whole: bool) -> None:
        """Let patterns hold these partitions too."""
        cells, past = self.layer.reshape(-1), self.layer[..., -1]
        _, beyond, levels = self.layer.shape
        shifts = (lags[places] * (beyond * levels) + self.counted).tolist()
        held = np.zeros((len(places), len(cells)), dtype=bool)
        for here, shift, value in zip(held, shifts, values[places].tolist(), strict=True):
            if whole:
                self.before.append(cells.copy())
            found, best = cells[: len(cells) - shift] + value, cells[shift:]
            np.greater(found, best, out=here[shift:])
            np.maximum(found, best, out=best)
            if self.counted:
                past[...] = IMPOSSIBLE[cells.dtype]
        self.steps.append(Added(places, shifts, held))
        gone = set(places)
        self.left = [place for place in self.left if place not in gone]

    def pattern(self, level: int, beyond: int, load: int) -> tuple[list[int], int]:
        """Return which places the best pattern holds, and the load of what it holds beside these."""
        cell, found = self._cell(level, beyond, load), list[int]()
        for step in reversed(self.steps):
            (last,) = step.held[:, cell].nonzero()
            while len(last):
                at = int(last[-1])
                found.append(step.places[at])
                cell -= step.shifts[at]
                (last,) = step.held[:at, cell].nonzero()
        return found, int(np.unravel_index(cell, self.layer.shape)[0])

    def listed(
        self, states: tuple[Whole, Whole, Whole], bits: Bits, need: Whole, lags: Whole, values: Whole, listing: Listing
    ) -> tuple[Whole, Whole, Bits, Whole]:
        """Go back from (level, beyond, load) of patterns that need so much; return beyond, load, bits and need."""
        level, beyond, load = states
        cell = self._cell(level, beyond, load)
        added = [one for step in self.steps for one in zip(step.places, step.shifts, strict=True)]
        for (place, shift), before in zip(reversed(added), reversed(self.before), strict=True):
            lag, value = int(lags[place]), int(values[place])
            taken = np.flatnonzero((load >= lag) & listing.may_hold(int(listing.numbers[place]), bits))
            taken = taken[before[cell[taken] - shift] >= need[taken] - value]  # from level 0: the impossible one
            kept = before[cell] >= need
            if not len(taken) and kept.all():
                continue
            bits = np.concatenate([bits[:, kept], listing.holding(place, bits[:, taken])], axis=1)
            cell = np.concatenate([cell[kept], cell[taken] - shift])
            load = np.concatenate([load[kept], load[taken] - lag])
            need = np.concatenate([need[kept], need[taken] - value])
            listing.check(len(load))
        return np.unravel_index(cell, self.layer.shape)[1], load, bits, need

    def _cell(self, level: Any, beyond: Any, load: Any) -> Any:
        """Return the cell of a pattern, or of each of many."""
        rows, levels = self.layer.shape[1:]
        return (load * rows + beyond) * levels + level


def nothing_held(shares: list[Share], capacity: int, values: list[Whole]) -> Values:
    """Return the highest values before there is any partition, in numbers that these values fit: of members alike."""
    share = shares[0]
    held = sum(topic.most + 1 for topic in share.topics) + max(len(each.own) for each in shares)  # at most, on the way
    small = all((held + 1) * int(np.abs(each).max(initial=0)) < SMALL for each in values)
    kind = np.dtype(np.int32 if small else np.int64)
    before: Values = np.full((capacity + 1, share.most + 1), IMPOSSIBLE[kind], dtype=kind)
    before[0, 0] = 0
    return before


def begin(topic: Topic, lags: Whole, before: Values) -> PrefixTable:
    """Return what there is before any partition of a topic; those that are too large are left out."""
    capacity, beyond = before.shape
    layer = np.full((capacity, beyond, topic.levels + topic.counted), IMPOSSIBLE[before.dtype], dtype=before.dtype)
    layer[..., 0] = before
    held = topic.places[lags[topic.places] < capacity]
    return PrefixTable(topic.counted, layer, [], [], [*held.tolist(), *topic.slots.tolist()])


def possible(best: Values) -> Whole:
    """Return values as 64 bits, far below 0 where there is no pattern."""
    return np.where(best > IMPOSSIBLE[best.dtype] // 2, best.astype(np.int64), NO_PATTERN)


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
