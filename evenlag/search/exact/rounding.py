"""What rounding lags down to a grid takes from the load of one member, by how much it gives and takes.

A member keeps most of what it owns today, and what that comes to is known. So the fewer partitions it gives and takes,
the better its load is known: rounding is felt for those alone.
"""

from __future__ import annotations

from functools import cached_property
from itertools import groupby

import numpy as np

from evenlag.model.arrays import Bools, Whole
from evenlag.search.exact.member_share import Share, Topic
from evenlag.search.exact.prefix_table import within
from evenlag.search.exact.windows import Window

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


SINGLY = 3  # numbers of partitions taken that are told apart; larger ones are looked at together


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
