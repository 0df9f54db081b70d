"""Pricing tables of one member: the best pattern for every load, by the member's own values of partitions.

With several topics, or one without counts, the topics are added in turn, each with its own numbers of partitions
(`TopicsTable`). With one topic and counts (`ExchangeTable`), the table of taken partitions comes first, which similar
members share. Each own partition is then kept or given, separately for each number taken. So the table tells how many
partitions a pattern gives and takes.

These numbers limit the error of rounding lags down to a grid (`Rounding`). A member keeps most of what it owns today,
and the error of those partitions is known. So the error is small if the member gives and takes few partitions.
"""

from __future__ import annotations

from functools import cached_property
from itertools import groupby

import numpy as np

from evenlag.model.arrays import Bools, Whole
from evenlag.search.exact import prefix_table
from evenlag.search.exact.member_share import Share, Topic
from evenlag.search.exact.prefix_table import (
    IMPOSSIBLE,
    NO_PATTERN,
    Listing,
    PrefixTable,
    Values,
    begin,
    largest_within,
    nothing_held,
    possible,
    within,
)
from evenlag.search.exact.windows import Window
from evenlag.search.subsets import Bits

SINGLY = 3  # smaller numbers of taken partitions are distinguished; larger ones form one class

Beyond = tuple[int, int]  # the least and the greatest excess of a load over the sum of rounded lags


class ExchangeRows:
    """The state index of one member's table: its rows.

    The numbers of taken partitions form classes. Within a class, a row is the net change in the number held, with own
    partitions held until they are decided. So giving one leads to the row before. The row after each class is
    impossible, because it would be reached from the next class.

    Parameters
    ----------
    owned : int
        Number of partitions that the member owns.
    taken : list of range
        The classes of numbers taken.
    beyond : list of list of Beyond
        Excess of loads for each class and each final number of partitions, from the fewest on.

    Attributes
    ----------
    ends : list of int
        Rows that no pattern has.
    taken : int64 array (rows,)
        Number of partitions taken in each row while all own ones are held.
    source : int64 array (rows,)
        Level of the table of taken partitions from which a row starts; the impossible level if there is none.
    best : list of (Beyond, list of int)
        Final rows of patterns, by the least and the greatest excess of the load.
    """

    def __init__(self, topic: Topic, owned: int, taken: list[range], beyond: list[list[Beyond]]) -> None:
        least = topic.fewest - owned  # net change in the number held
        self.ends: list[int] = []
        numbers, source, found = list[int](), list[int](), list[tuple[Beyond, int]]()
        for some, here in zip(taken, beyond, strict=True):
            bottom = len(numbers)
            held = range(least, max(some[-1], least - 1) + 1)
            numbers += [*held, 0]
            source += [*(more if more in some else topic.levels for more in held), topic.levels]
            self.ends.append(bottom + len(held))
            found += [(off, bottom + net) for net, off in enumerate(here[: len(held)])]
        self.taken, self.source = np.array(numbers, dtype=np.int64), np.array(source, dtype=np.int64)
        self.best = [
            (off, [row for _, row in rows]) for off, rows in groupby(sorted(found), key=lambda entry: entry[0])
        ]
        self._asked: tuple[Window, int] | None = None
        self._cells: Whole = np.zeros(0, dtype=np.int64)

    def cells(self, window: Window, loads: int) -> Whole:
        """Return the cells of patterns that may be in a window, row by row, in a table with `loads` loads."""
        if self._asked != (window, loads):
            found = [
                row * loads + np.arange(loads)[within(window, least, most, loads - 1)]
                for (least, most), rows in self.best
                for row in rows
            ]
            self._asked, self._cells = (window, loads), np.sort(np.concatenate(found))
        return self._cells


class Rounding:
    """Lags of a member's partitions, rounded down to multiples of a unit, and the limits of the error.

    Parameters
    ----------
    lags : int64 array (P,)
        In messages.
    unit : int
        Messages.

    Attributes
    ----------
    share : Share
    lags : int64 array (P,)
        In units.
    by_exchange : bool
        True if numbers given and taken matter: a single topic with counts.
    """

    def __init__(self, share: Share, lags: Whole, unit: int = 1) -> None:
        self.share, self._unit = share, unit
        self.lags, self._rest = np.divmod(lags, unit)
        self.by_exchange = len(share.topics) == 1 and share.topics[0].counted

    @cached_property
    def taken(self) -> list[range]:
        """Classes of the number of partitions taken that tables distinguish."""
        most = self.share.topics[0].most
        return [range(n, n + 1) for n in range(min(SINGLY, most + 1))] + [range(SINGLY, most + 1)] * (most >= SINGLY)

    @cached_property
    def owned(self) -> Bools:
        """Mask of its own places."""
        owned = np.zeros(len(self.lags), dtype=bool)
        owned[self.share.own] = True
        return owned

    @cached_property
    def _kept(self) -> tuple[Whole, Whole]:
        """Least and greatest error of 0, 1, … of its own partitions, in messages."""
        return _sums(self._rest[self.share.own])

    @cached_property
    def _gained(self) -> tuple[Whole, Whole]:
        """Least and greatest error of 0, 1, … partitions that it takes, in messages."""
        topic = self.share.topics[0]
        return _sums(self._rest[[*np.setdiff1d(topic.places, self.share.own), *topic.slots]])

    @cached_property
    def most(self) -> int:
        """Largest excess of a load over the sum of rounded lags, in units."""
        rest = np.sort(self._rest[np.concatenate([topic.places for topic in self.share.topics])])
        return int(rest[max(len(rest) - self.share.partitions, 0) :].sum()) // self._unit

    @cached_property
    def beyond(self) -> list[list[Beyond]]:
        """Least and greatest excess of a load over the sum of rounded lags, by numbers taken and held, in units.

        The outer list follows the classes of `taken`, the inner ones the final numbers of partitions, ascending.
        """
        topic = self.share.topics[0]
        return [
            [self._beyond(np.array(taken), held) for held in range(topic.fewest, topic.most + 1)]
            for taken in self.taken
        ]

    @cached_property
    def rows(self) -> ExchangeRows:
        """Rows of a table of exchanges."""
        return ExchangeRows(self.share.topics[0], len(self.share.own), self.taken, self.beyond)

    def _beyond(self, takes: Whole, held: int) -> Beyond:
        (kept_least, kept_most), (least, most) = self._kept, self._gained
        keeps = held - takes
        possible = (takes < len(least)) & (keeps >= 0) & (keeps < len(kept_least))
        takes, keeps = takes[possible], keeps[possible]
        if not len(takes):
            return 0, 0
        return (
            int((kept_least[keeps] + least[takes]).min()) // self._unit,
            int((kept_most[keeps] + most[takes]).max()) // self._unit,
        )

    def loads(self, pattern: tuple[int, ...]) -> tuple[int, int]:
        """Return the least and the greatest load that tables allow a pattern, in units."""
        places = list(pattern)
        load = int(self.lags[places].sum())
        if not self.by_exchange:
            return load, load + self.most
        takes = len(places) - int(self.owned[places].sum())
        least, most = self.beyond[min(takes, SINGLY)][len(places) - self.share.topics[0].fewest]
        return load + least, load + most


def _sums(values: Whole) -> tuple[Whole, Whole]:
    """Return the least and the greatest sum of 0, 1, … of these values."""
    ordered = np.sort(values)
    return tuple(np.concatenate([[0], np.cumsum(each)]).astype(np.int64) for each in (ordered, ordered[::-1]))  # type: ignore[return-value]


class TopicsTable:
    """Patterns of the highest value of one member, by load, added topic by topic.

    Parameters
    ----------
    values : int64 array (P,)
    capacity : int
        Largest load that will be queried.
    whole : bool
        Keep the layers that `listed` needs, which takes eight times the memory.
    begun : PrefixTable, optional
        Table with the partitions added so far, if the share has one topic.

    Attributes
    ----------
    best : int64 array (capacity + 1,)
        Highest value of a pattern that may have the load; far below 0 where none exists. Loads are in whole units,
        rounded down. Since lags are rounded too, a pattern may have one of several loads.
    """

    def __init__(
        self, rounding: Rounding, values: Whole, capacity: int, *, whole: bool = False, begun: PrefixTable | None = None
    ) -> None:
        self._share, self._lags, self._values = rounding.share, rounding.lags, values
        self._topics: list[tuple[Topic, PrefixTable, Whole]] = []  # with the best number of partitions of each topic
        before = nothing_held([self._share], capacity, [values]) if begun is None else begun.layer[..., 0]
        for topic in self._share.topics:
            so_far = begun or begin(topic, self._lags, before)
            so_far.add(np.ones(len(so_far.left), dtype=bool), self._lags, values, whole=whole)
            before, level = self._merge(topic, so_far.layer)
            self._topics.append((topic, so_far, level))
        self._last = before
        beyond = before[:, self._share.fewest :]
        self._beyond = self._share.fewest + beyond.argmax(axis=1)
        self._exact, self._more = possible(beyond.max(axis=1)), rounding.most
        self.best = largest_within(self._exact, 0, self._more)

    def _merge(self, topic: Topic, layer: Values) -> tuple[Values, Whole]:
        """Return the highest values over the numbers of partitions of a topic, and the numbers that attain them."""
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
        """Return the best patterns in a window: at most `most`, and at most one for each rounded load."""
        here = within(window, 0, self._more, len(self._exact) - 1)
        part = self._exact[here]
        order = np.argpartition(-part, most)[:most] if len(part) > most else np.arange(len(part))
        order = order[np.argsort(-part[order], kind="stable")]
        return [self._pattern(here.start + i) for i in order.tolist() if part[i] > NO_PATTERN]

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
        """Enumerate all patterns in a window of value at least `least`. The table must be kept whole.

        Raises
        ------
        EnumerationLimitError
            More patterns are met on the way than the listing allows.
        """
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
        """Return all ways to hold partitions of a topic: the rows of states, and the number of partitions of each."""
        fewest = topic.fewest if topic.counted else 0
        found = []
        for level in range(fewest, topic.levels):
            less = level - topic.fewest if self._share.together else 0
            rows = np.flatnonzero(beyond >= less)
            rows = rows[layer[load[rows], beyond[rows] - less, level] >= need[rows]]
            found.append((rows, np.full(len(rows), level, dtype=np.int64)))
        rows, levels = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return rows, levels


class ExchangeTable:
    """Patterns of the highest value of one member, by load and number of exchanged partitions.

    Parameters
    ----------
    rounding, values, capacity, whole
        As in `TopicsTable`.
    begun : PrefixTable, optional
        Table with the partitions of others added so far.

    Attributes
    ----------
    best : int64 array (capacity + 1,)
        As in `TopicsTable`.
    """

    def __init__(
        self, rounding: Rounding, values: Whole, capacity: int, *, whole: bool = False, begun: PrefixTable | None = None
    ) -> None:
        share, self._lags, self._values = rounding.share, rounding.lags, values
        self._taken = begun or begin(share.topics[0], self._lags, nothing_held([share], capacity, [values]))
        self._taken.add(~rounding.owned[self._taken.left], self._lags, values, whole=whole)
        self._rows = rounding.rows
        layer: Values = self._taken.layer[:, 0].take(self._rows.source, axis=1)
        self._before: list[Values] = []  # the layer before each own partition, if the table is kept whole
        self._kept: list[tuple[int, Bools]] = []
        if prefix_table.tables is not None and not whole:
            layer = self._keep_all(layer, share.own, values)
        else:
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

    def _keep_all(self, layer: Values, own: Whole, values: Whole) -> Values:
        """Return the layer after all own partitions: the compiled form of `_keep` for one after another."""
        loads, rows = layer.shape
        after, kept = np.empty_like(layer), np.empty((len(own), loads, rows), dtype=bool)
        shifts = np.minimum(self._lags[own], loads) * rows
        ends = np.array(self._rows.ends, dtype=np.int64)
        prefix_table.tables.keep(layer, after, kept, shifts, values[own], ends, rows, IMPOSSIBLE[layer.dtype])
        self._kept = list(zip(own.tolist(), kept, strict=True))
        return after if len(own) % 2 else layer

    def _keep(self, layer: Values, lag: int, value: int) -> tuple[Values, Bools]:
        """Return the layer after one own partition is kept or given, and a mask of the patterns that keep it.

        Giving it leads to the row before. A pattern that would leave its class of rows becomes impossible.
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
        """Return the best patterns in a window: at most `most`, and at most one for each rounded load and row."""
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
        """Enumerate all patterns in a window of value at least `least`. The table must be kept whole."""
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
