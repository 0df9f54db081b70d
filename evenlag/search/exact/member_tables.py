"""What one member may hold: the best pattern for every load, by its own values of partitions.

Of several topics, or of one without counts, one topic comes after another, each with its own numbers of partitions
(`TopicsTable`). Of one topic with counts the table of what it takes is made first, which members alike have in common
(`ExchangeTable`). Then it is decided of each of its own partitions whether it keeps it, apart for each number taken: so
it is known how many partitions a pattern gives and takes.

That says how much rounding lags down to a grid takes from a load (`Rounding`). A member keeps most of what it owns
today, and what that comes to is known. So the fewer partitions it gives and takes, the better its load is known:
rounding is felt for those alone.
"""

from __future__ import annotations

from functools import cached_property
from itertools import groupby

import numpy as np

from evenlag.model.arrays import Bools, Whole
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

SINGLY = 3  # numbers of partitions taken that are told apart; larger ones are looked at together

Beyond = tuple[int, int]  # the least and the most that a load is beyond the sum of rounded lags


class ExchangeRows:
    """The rows of one member's table.

    Numbers taken are in classes. Within a class a row is how many more are held than today, so far, all own ones still
    to be decided with them. So to give one leads to the row before. No pattern has the row that follows a class: what
    is given there would come from the next class.

    Parameters
    ----------
    topic : Topic
    owned : int
        How many partitions the member owns.
    taken : list of range
        The classes.
    beyond : list of list of Beyond
        Of each class, and of each number of partitions held in the end from the fewest on.

    Attributes
    ----------
    ends : list of int
        The rows that no pattern has.
    taken : int64 array (rows,)
        How many partitions are taken in rows where all own ones are held.
    source : int64 array (rows,)
        The level, in the table of what is taken, that a row begins as; the impossible one if none.
    best : list of (Beyond, list of int)
        The rows of patterns in the end, by how much less and more the load may be.
    """

    def __init__(self, topic: Topic, owned: int, taken: list[range], beyond: list[list[Beyond]]) -> None:
        least = topic.fewest - owned  # how many more are held than today
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
        """Return the cells of patterns that may be in a window, in a table with so many loads, row after row."""
        if self._asked != (window, loads):
            found = [
                row * loads + np.arange(loads)[within(window, least, most, loads - 1)]
                for (least, most), rows in self.best
                for row in rows
            ]
            self._asked, self._cells = (window, loads), np.sort(np.concatenate(found))
        return self._cells


class Rounding:
    """The lags of a member's partitions in whole numbers of a unit, rounded down, and what that may lose.

    Parameters
    ----------
    share : Share
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
        Whether it matters how many partitions are given and taken: they are counted, and of one topic.
    """

    def __init__(self, share: Share, lags: Whole, unit: int = 1) -> None:
        self.share, self._unit = share, unit
        self.lags, self._rest = np.divmod(lags, unit)
        self.by_exchange = len(share.topics) == 1 and share.topics[0].counted

    @cached_property
    def taken(self) -> list[range]:
        """The numbers of partitions taken, in classes that tables tell apart."""
        most = self.share.topics[0].most
        return [range(n, n + 1) for n in range(min(SINGLY, most + 1))] + [range(SINGLY, most + 1)] * (most >= SINGLY)

    @cached_property
    def _owned(self) -> Bools:
        """Which places are its own."""
        owned = np.zeros(len(self.lags), dtype=bool)
        owned[self.share.own] = True
        return owned

    @cached_property
    def _kept(self) -> tuple[Whole, Whole]:
        """The least and the most that is lost of so many of its own."""
        return _sums(self._rest[self.share.own])

    @cached_property
    def _gained(self) -> tuple[Whole, Whole]:
        """The least and the most that is lost of so many that it takes."""
        topic = self.share.topics[0]
        return _sums(self._rest[[*np.setdiff1d(topic.places, self.share.own), *topic.slots]])

    @cached_property
    def most(self) -> int:
        """The most units that a load is beyond the sum of rounded lags."""
        rest = np.sort(self._rest[np.concatenate([topic.places for topic in self.share.topics])])
        return int(rest[max(len(rest) - self.share.partitions, 0) :].sum()) // self._unit

    @cached_property
    def beyond(self) -> list[list[Beyond]]:
        """The least and the most units that a load is beyond the sum of rounded lags, by how many are taken and held.

        For each class of `taken`, and each number of partitions held in the end from the fewest to the most.
        """
        topic = self.share.topics[0]
        return [
            [self._beyond(np.array(taken), held) for held in range(topic.fewest, topic.most + 1)]
            for taken in self.taken
        ]

    @cached_property
    def rows(self) -> ExchangeRows:
        """The rows of a table of exchanges."""
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
        """Return the least and the greatest load that tables take a pattern for, in units."""
        places = list(pattern)
        load = int(self.lags[places].sum())
        if not self.by_exchange:
            return load, load + self.most
        takes = len(places) - int(self._owned[places].sum())
        least, most = self.beyond[min(takes, SINGLY)][len(places) - self.share.topics[0].fewest]
        return load + least, load + most


def _sums(values: Whole) -> tuple[Whole, Whole]:
    """Return the least and the largest sum of 0, 1, … of these."""
    ordered = np.sort(values)
    return tuple(np.concatenate([[0], np.cumsum(each)]).astype(np.int64) for each in (ordered, ordered[::-1]))  # type: ignore[return-value]


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
        The highest value of a pattern that may have such a load; far below 0 where there is none. A load counts in
        whole units, rounded down; as lags are rounded too, a pattern may have one of several.
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
        """List all patterns in a window that are worth at least so much; the table has been kept whole.

        Raises
        ------
        EnumerationLimitError
            More are found on the way than the listing allows.
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
        As in `TopicsTable`.
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
