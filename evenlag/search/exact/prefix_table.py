"""The pricing DP: the best pattern of one member for every load at once, added partition by partition.

The patterns of a member form a knapsack, which is the pricing problem of cutting stock (Gilmore and Gomory 1961). The
dynamic program over loads uses integers, so its results are exact. Here loads and numbers of partitions are met
exactly, and values may be negative. So one table serves all windows of loads.

A table that is kept whole can also enumerate all patterns of at least a given value. It goes back from the last
partition to the first and drops every pattern that the partitions before it cannot bring to that value. So the work
grows with the output.

Identical members share one table (`BlockTable`), in which partitions with the same lag form one item with a
multiplicity. Where members value partitions differently, their tables extend a common prefix (pricing.py).
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
from evenlag.search.improve.kernel import compiled
from evenlag.search.subsets import WORD, Bits, EnumerationLimitError

Pattern = tuple[tuple[int, int], ...]  # (index of the lag, multiplicity), indices ascending
SMALL = 2**29  # values of patterns below this fit 32 bits
NO_PATTERN = -(1 << 60)  # value, at most slightly more, where no pattern has the load
IMPOSSIBLE = {np.dtype(np.int32): -2 * SMALL, np.dtype(np.int64): NO_PATTERN}  # the same in tables, by dtype

Values = NDArray[np.signedinteger[Any]]  # int32 or int64
tables: Any = compiled("evenlag.search.exact._tables", version=1)  # tables.c; None: NumPy does the same

MayHold = Callable[[int, Bits], Bools]


@dataclass(frozen=True, eq=False)
class Listing:
    """Enumeration of all patterns of at least a given value, from the last partition to the first.

    Attributes
    ----------
    numbers : int64 array (P,)
        Bit of each place.
    may_hold : callable
        Takes a bit and the partitions of patterns at later places; returns a mask of the patterns that may hold it too.
    most : int
        Largest number of patterns. More raise `EnumerationLimitError`.
    """

    numbers: Whole
    may_hold: MayHold
    most: int

    @property
    def words(self) -> int:
        """Number of words of a bit set."""
        return int(self.numbers.max()) // WORD + 1

    def holding(self, place: int, bits: Bits) -> Bits:
        """Return these patterns with one more place."""
        number = int(self.numbers[place])
        held = bits.copy()
        held[number // WORD] |= np.uint64(1) << np.uint64(number % WORD)
        return held

    def check(self, found: int) -> None:
        """Raise `EnumerationLimitError` if there are too many patterns."""
        if found > self.most:
            raise EnumerationLimitError


class Added(NamedTuple):
    """Partitions that were added to a table together.

    Attributes
    ----------
    places : int64 array (places,)
    shifts : int64 array (places,)
        Number of cells by which each partition shifts the patterns that it joins.
    held : bool array (places, cells)
        True where the best pattern so far holds the partition.
    """

    places: Whole
    shifts: Whole
    held: Bools


@dataclass(eq=False)
class PrefixTable:
    """The part of a single-topic table that several members share so far.

    Loads are the first axis. So a partition shifts all patterns by the same number of cells, and NumPy adds it with two
    slices. An impossible level follows the last one, because one step beyond it is level 0 again.

    Attributes
    ----------
    counted : bool
        True if levels are numbers of partitions held; False for a single level.
    layer : int32 or int64 array (capacity + 1, beyond, levels and the impossible one)
        Highest values of patterns of the partitions added.
    before : list of array
        The cells before each partition was added, if the table is kept whole.
    left : int64 array
        Places of the partitions still to be added.
    """

    counted: bool
    layer: Values
    steps: list[Added]
    before: list[Values]
    left: Whole

    def copy(self) -> PrefixTable:
        """Return an independent copy."""
        return PrefixTable(self.counted, self.layer.copy(), self.steps[:], self.before[:], self.left)

    def add(self, chosen: Bools, lags: Whole, values: Whole, *, whole: bool) -> None:
        """Add the chosen partitions among the ones left, so that patterns may hold them."""
        places, self.left = self.left[chosen], self.left[~chosen]
        if not len(places):
            return
        cells, past = self.layer.reshape(-1), self.layer[..., -1]
        _, beyond, levels = self.layer.shape
        shifts, impossible = lags[places] * (beyond * levels) + self.counted, IMPOSSIBLE[cells.dtype]
        held = np.zeros((len(places), len(cells)), dtype=bool)
        if tables is not None and not whole:
            tables.add(cells, held, shifts, values[places], levels if self.counted else 0, impossible)
        else:
            for here, shift, value in zip(held, shifts.tolist(), values[places].tolist(), strict=True):
                if whole:
                    self.before.append(cells.copy())
                found, best = cells[: len(cells) - shift] + value, cells[shift:]
                np.greater(found, best, out=here[shift:])
                np.maximum(found, best, out=best)
                if self.counted:
                    past[...] = impossible
        self.steps.append(Added(places, shifts, held))

    def pattern(self, level: int, beyond: int, load: int) -> tuple[list[int], int]:
        """Return the places that the best pattern holds in this table, and the load of its other partitions."""
        cell, found = self._cell(level, beyond, load), list[int]()
        for step in reversed(self.steps):
            (last,) = step.held[:, cell].nonzero()
            while len(last):
                at = int(last[-1])
                found.append(int(step.places[at]))
                cell -= int(step.shifts[at])
                (last,) = step.held[:at, cell].nonzero()
        return found, int(np.unravel_index(cell, self.layer.shape)[0])

    def listed(
        self, states: tuple[Whole, Whole, Whole], bits: Bits, need: Whole, lags: Whole, values: Whole, listing: Listing
    ) -> tuple[Whole, Whole, Bits, Whole]:
        """Trace patterns back from (level, beyond, load) that need a value; return beyond, load, bits and need."""
        level, beyond, load = states
        cell = self._cell(level, beyond, load)
        added = [one for step in self.steps for one in zip(step.places.tolist(), step.shifts.tolist(), strict=True)]
        for (place, shift), before in zip(reversed(added), reversed(self.before), strict=True):
            lag, value = int(lags[place]), int(values[place])
            taken = np.flatnonzero((load >= lag) & listing.may_hold(int(listing.numbers[place]), bits))
            taken = taken[before[cell[taken] - shift] >= need[taken] - value]  # level 0 leads to the impossible one
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
        """Return the index of a cell, or of each of several."""
        rows, levels = self.layer.shape[1:]
        return (load * rows + beyond) * levels + level


def nothing_held(shares: list[Share], capacity: int, values: list[Whole]) -> Values:
    """Return the initial DP table of identical shares, in the narrowest dtype in which no value overflows."""
    share = shares[0]
    held = sum(topic.most + 1 for topic in share.topics) + max(len(each.own) for each in shares)  # upper bound
    small = all((held + 1) * int(np.abs(each).max(initial=0)) < SMALL for each in values)
    kind = np.dtype(np.int32 if small else np.int64)
    before: Values = np.full((capacity + 1, share.most + 1), IMPOSSIBLE[kind], dtype=kind)
    before[0, 0] = 0
    return before


def begin(topic: Topic, lags: Whole, before: Values) -> PrefixTable:
    """Return the table before any partition of a topic; partitions larger than every load are left out."""
    capacity, beyond = before.shape
    layer = np.full((capacity, beyond, topic.levels + topic.counted), IMPOSSIBLE[before.dtype], dtype=before.dtype)
    layer[..., 0] = before
    held = topic.places[lags[topic.places] < capacity]
    return PrefixTable(topic.counted, layer, [], [], np.append(held, topic.slots))


def possible(best: Values) -> Whole:
    """Return values as int64, with NO_PATTERN where no pattern exists."""
    return np.where(best > IMPOSSIBLE[best.dtype] // 2, best.astype(np.int64), NO_PATTERN)


def within(window: Window, least: int, most: int, capacity: int) -> slice:
    """Return the rounded loads, up to `capacity`, that may be in a window if loads are higher by `least` to `most`."""
    first, end = max(window.low - most, 0), min(window.high - least, capacity) + 1
    return slice(first, max(end, first))


def largest_within(values: Values, least: int, most: int) -> Values:
    """Return for each load the largest of the values at loads lower by `least` to `most`."""
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
    """Lags to be assigned, with multiplicities.

    Attributes
    ----------
    lags : int64 array (K,)
        Distinct lags, ascending.
    demand : int64 array (K,)
        Number of partitions with each lag.
    """

    lags: Whole
    demand: Whole

    @property
    def total(self) -> int:
        """Sum of all lags."""
        return int(self.lags @ self.demand)

    def load(self, pattern: Pattern) -> int:
        """Return the load of a pattern."""
        return sum(times * int(self.lags[k]) for k, times in pattern)

    def cells(self, capacity: int, most: int | None) -> int:
        """Return the number of cells of a table: rows times loads times counts."""
        return int(self._copies(capacity, most).sum()) * (capacity + 1) * (1 if most is None else most + 1)

    def _copies(self, capacity: int, most: int | None) -> Whole:
        fitting = capacity // np.maximum(self.lags, 1)
        fitting[self.lags == 0] = self.demand.sum()
        copies: Whole = np.minimum(self.demand, fitting)
        return copies if most is None else np.minimum(copies, most).astype(np.int64)

    def rows(self, capacity: int, most: int | None) -> Whole:
        """Return the lag index of each row. A lag has one row for each copy that one member could hold."""
        return np.repeat(np.arange(len(self.lags)), self._copies(capacity, most))

    def most_held(self, capacity: int, most: int | None) -> int:
        """Return the largest number of partitions that fit a load."""
        rows = self.rows(capacity, most)
        fitting = int(np.searchsorted(np.cumsum(self.lags[rows]), capacity, side="right"))
        return fitting if most is None else min(fitting, most)


class BlockTable:
    """Patterns of the highest value, by load and number of partitions, for identical members.

    Parameters
    ----------
    values : int64 array (K,)
        Value of each lag.
    capacity : int
        Largest load that will be queried.
    most : int or None
        Largest number of partitions of a pattern; None for any number, in a single level.
    """

    def __init__(self, items: Items, values: Whole, capacity: int, most: int | None) -> None:
        self._items, self._values, self._counted = items, values, most is not None
        rows = items.rows(capacity, most)
        self._rows: list[int] = rows.tolist()
        small = (items.most_held(capacity, most) + 1) * int(np.abs(values).max(initial=0)) < SMALL
        kind = np.dtype(np.int32 if small else np.int64)
        layer = np.full((capacity + 1, 1, 1 if most is None else most + 2), IMPOSSIBLE[kind], dtype=kind)
        layer[0, 0, 0] = 0
        self._table = PrefixTable(self._counted, layer, [], [], np.arange(len(rows)))
        self._table.add(np.ones(len(rows), dtype=bool), items.lags[rows], values[rows], whole=True)

    @cached_property
    def best(self) -> Whole:
        """Highest value of a pattern by number of partitions and load; far below 0 where none exists."""
        layer = self._table.layer[:, 0]
        return possible(layer[:, :-1] if self._counted else layer).T

    def patterns(self, window: Window, count: int | None, least: int) -> list[tuple[int, Pattern]]:
        """Return for each lag the best pattern in which it is the largest, if worth more than `least`; best first.

        Parameters
        ----------
        window : Window
            Limits of the load.
        count : int or None
            Number of partitions, at least 1; None for any number.
        """
        level, levels = 0 if count is None else count - 1, self._table.layer.shape[-1]
        least = max(least, IMPOSSIBLE[self._table.layer.dtype] // 2)
        found: dict[int, tuple[int, int, int]] = {}
        for row, (k, before) in enumerate(zip(self._rows, self._table.before, strict=True)):
            lag = int(self._items.lags[k])
            first = max(window.low - lag, 0) * levels + level  # load without the largest lag
            others = before[first : max(window.high - lag + 1, 0) * levels : levels]
            if len(others):
                place = int(others.argmax())
                value = int(others[place]) + int(self._values[k])
                if value > least:
                    found[k] = max(found.get(k, (NO_PATTERN, 0, 0)), (value, row, first + place * levels))
        best = sorted(found.values(), reverse=True)
        return [(value, self._pattern(row, cell)) for value, row, cell in best]

    def _pattern(self, row: int, cell: int) -> Pattern:
        """Return the pattern of a row, joined to the best pattern of the rows before it in a cell."""
        (added,) = self._table.steps
        held = Counter([self._rows[row]])
        (last,) = added.held[:row, cell].nonzero()
        while len(last):
            row = int(last[-1])
            held[self._rows[row]] += 1
            cell -= int(added.shifts[row])
            (last,) = added.held[:row, cell].nonzero()
        return tuple(sorted(held.items()))
