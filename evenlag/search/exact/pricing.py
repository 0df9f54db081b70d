"""What partitions are worth to each member, and what the members can hold by that: each has a table of its own.

Whatever values partitions are given, no member holds more than the best pattern in its table. So any values prove
something of all windows (windows.py); which ones prove most is left to subgradient.py and move_patterns.py.

Members under the same rules differ by what they own alone. Their tables are built together: half of the members have
what nobody of them owns in common, half of those have more in common, and so on. That takes the logarithm of their
number for each partition, not their number. The slots of idle partitions come after the partitions of others, in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from math import ceil, log2

import numpy as np

from evenlag.model.arrays import Bools, Whole
from evenlag.model.balance import CountRule
from evenlag.model.problem import NOBODY
from evenlag.search.exact.member_share import Idle, Share
from evenlag.search.exact.member_tables import ExchangeTable, TopicsTable
from evenlag.search.exact.prefix_table import PrefixTable, begin, nothing_held
from evenlag.search.exact.rounding import Rounding
from evenlag.search.exact.windows import UNIT, Prices

OwnTable = TopicsTable | ExchangeTable


def own_table(
    rounding: Rounding, values: Whole, capacity: int, *, whole: bool, begun: PrefixTable | None = None
) -> OwnTable:
    """Return a member's table."""
    kind = ExchangeTable if rounding.by_exchange else TopicsTable
    return kind(rounding, values, capacity, whole=whole, begun=begun)


def tables_of(
    roundings: list[Rounding], values: list[Whole], capacity: int, *, whole: bool = False
) -> Iterator[tuple[int, OwnTable]]:
    """Yield which member it is of, and its table; those with the same share of one topic are built together.

    Parameters
    ----------
    roundings : list of Rounding
        Of each member; of the same unit.
    values : list of int64 array (P,)
        Of each member.
    capacity : int
        The largest load that will be asked for.
    whole : bool
        Keep what `listed` needs, which takes eight times the memory.
    """
    shares = [rounding.share for rounding in roundings]
    for members in _alike(shares):
        topic, lags = shares[members[0]].topics[0], roundings[members[0]].lags
        if len(members) == 1:
            yield members[0], own_table(roundings[members[0]], values[members[0]], capacity, whole=whole)
            continue
        common = np.minimum.reduce([values[n] for n in members])
        own = {n: values[n] != common for n in members}
        for n, apart in own.items():
            apart[topic.slots] = apart[shares[n].own] = True
        before = nothing_held([shares[n] for n in members], capacity, [values[n] for n in members])
        parts = [(members, begin(topic, lags, before))]
        while parts:
            some, begun = parts.pop()
            apart = np.logical_or.reduce([own[n] for n in some])
            begun.add([place for place in begun.left if not apart[place]], lags, common, whole=whole)
            if len(some) == 1:
                yield some[0], own_table(roundings[some[0]], values[some[0]], capacity, whole=whole, begun=begun)
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


class Pricing:
    """Tables of all members by the values of partitions.

    Parameters
    ----------
    rule : CountRule
    shares : list of Share
        Of each member that may hold partitions.
    idle : Idle
    unit : int
        Of loads, in messages.
    largest : int
        The largest load that is asked about, in units.

    Attributes
    ----------
    roundings : list of Rounding
        Of each member, to that unit.
    places : int64 array
        Of partitions that can be assigned.
    idle : Idle
        Partitions of which only the number counts.
    moved : list of bool array (P,)
        Of each member, which partitions move if it holds them. Idle ones of nobody are said to move too.
    """

    def __init__(self, rule: CountRule, shares: list[Share], idle: Idle, unit: int, largest: int) -> None:
        problem = rule.problem
        self.idle, self.places = idle, np.flatnonzero(problem.assignable)
        self._lags, self._largest = problem.lags.astype(np.int64), largest
        self.roundings = [Rounding(share, self._lags, unit) for share in shares]
        self.moved: list[Bools] = []
        for m in np.flatnonzero(problem.active).tolist():
            moved = (problem.owner != NOBODY) & (problem.owner != m)
            moved[idle.places] = True
            moved[idle.own_slots(m)] = False
            self.moved.append(moved)

    def asked(self, values: Whole) -> tuple[Prices, list[OwnTable]]:
        """Return what values of partitions prove, and the table of each member by them."""
        worth = [self.worth(values, n) for n in range(len(self.roundings))]
        by_member = dict(tables_of(self.roundings, worth, self._largest))
        tables = [by_member[n] for n in range(len(worth))]
        total = int(values[self.places].sum()) - UNIT * self.idle.unowned
        return Prices.of(values, [(1, table.best) for table in tables], total), tables

    def worth(self, values: Whole, n: int) -> Whole:
        """Return what each partition is worth to one of the members: a move less where it comes from another."""
        less: Whole = values - UNIT * self.moved[n]
        return less

    def by_place(self, of_rows: Whole) -> Whole:
        """Return numbers that are given by row for each place; 0 without a row."""
        return np.append(of_rows, 0)[self.row]

    def rows_held(self, pattern: tuple[int, ...]) -> Whole:
        """Return how many of each row a pattern holds."""
        return np.bincount(self.row[list(pattern)], minlength=len(self.amounts))

    @cached_property
    def numbers(self) -> Whole:
        """The number of each place among `places`; -1 of others."""
        numbers = np.full(len(self._lags), -1, dtype=np.int64)
        numbers[self.places] = np.arange(len(self.places))
        return numbers

    @cached_property
    def row(self) -> Whole:
        """The row of each place, one for all idle ones: what a plan holds of it is known. -1 where nobody counts."""
        row = np.full(len(self._lags), -1, dtype=np.int64)
        single = np.setdiff1d(self.places, self.idle.places)
        row[single] = np.arange(len(single))
        if self.idle.counted:
            row[self.idle.places] = len(single)
        return row

    @cached_property
    def amounts(self) -> Whole:
        """How many partitions each row stands for."""
        return np.bincount(self.row[self.row >= 0])

    @cached_property
    def lags_of_rows(self) -> Whole:
        """The lag of one partition of each row, in messages."""
        lags = np.zeros(len(self.amounts), dtype=np.int64)
        single = self.row >= 0
        lags[self.row[single]] = self._lags[single]
        return lags
