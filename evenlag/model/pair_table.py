"""Costs of pairs of a partition and a member, stored by class of the member instead of for every pair."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from evenlag.model.arrays import NOBODY, Bools, Index, Ints, Whole, numbered


@dataclass(frozen=True, eq=False)
class PairTable:
    """Costs of P partitions on M members: a member pays as the others of its class, and may pay less at home.

    Racks make few classes. Costs that follow from owners need one class, with the owner as home. Costs of the caller's
    own need as many classes as they have different columns.

    Attributes
    ----------
    table : int64 or object array (P, K)
        Cost of each partition on a member of each class, >= 0.
    class_of : int64 array (M,)
        Class of each member. Every class has a member.
    home : int32 array (P,)
        Member who pays `at_home` instead; `NOBODY`: none.
    at_home : int64 or object array (P,)
        Cost at home, no higher than that of the home's class; 0 without a home.
    """

    table: Ints
    class_of: Whole
    home: Index
    at_home: Ints

    def __post_init__(self) -> None:
        for array in (self.table, self.class_of, self.home, self.at_home):
            array.flags.writeable = False

    @classmethod
    def by_class(cls, table: Ints, class_of: Whole) -> PairTable:
        """Return a table without homes; columns of classes without a member are left out."""
        used, numbers = np.unique(class_of, return_inverse=True)
        table = table[:, used]
        nobody = np.full(len(table), NOBODY, dtype=np.int32)
        return cls(_summable(table), numbers.astype(np.int64), nobody, np.zeros(len(table), dtype=np.int64))

    @classmethod
    def of_pairs(cls, costs: Ints) -> PairTable:
        """Return a table of costs given for every pair (P, M): members with equal columns form a class."""
        class_of = numbered(tuple(column) if costs.dtype == object else column.tobytes() for column in costs.T)
        _, first = np.unique(class_of, return_index=True)
        return cls.by_class(costs[:, first], class_of)

    @classmethod
    def of_moves(cls, owner: Index, members: int, sizes: Ints | None = None) -> PairTable:
        """Return 1, or its size, for each partition and member other than its owner; 0 without an owner."""
        owned = owner != NOBODY
        table = owned.astype(np.int64) if sizes is None else np.where(owned, sizes, 0)
        nothing = np.zeros(len(owner), dtype=np.int64)
        classes = np.zeros(members, dtype=np.int64)
        return cls(_summable(table[:, None])[:, : min(members, 1)], classes, owner.astype(np.int32), nothing)

    # ---- values --------------------------------------------------------------------------------------------------

    def at(self, partitions: Any, members: Any) -> Ints:
        """Return the costs of pairs; the arguments are numbers or arrays that broadcast."""
        costs: Ints = np.where(
            self.home[partitions] == members, self.at_home[partitions], self.table[partitions, self.class_of[members]]
        )
        return costs

    def rows(self, partitions: Whole) -> Ints:
        """Return the costs of some partitions on every member (N, M)."""
        return self.at(partitions[:, None], np.arange(len(self.class_of)))

    @property
    def pairs(self) -> Ints:
        """Cost of every pair (P, M), for small groups."""
        return self.rows(np.arange(len(self.table)))

    def _with(self, partitions: Whole, members: Index) -> Ints:
        """Return the cost of each partition on its member; 0 for `NOBODY`."""
        costs = np.zeros(len(partitions), dtype=self.table.dtype)
        held = np.flatnonzero(members != NOBODY)
        costs[held] = self.at(partitions[held], members[held])
        return costs

    def total(self, member_of: Index) -> int:
        """Return an assignment's cost: the exact sum over all partitions that have a member."""
        return int(self._with(np.arange(len(member_of)), member_of).sum())

    @property
    def wide(self) -> bool:
        """True if sums may exceed 64 bits, so that costs are Python integers."""
        return bool(self.table.dtype == object)

    @property
    def has_homes(self) -> bool:
        """True if some partition has a home."""
        return bool((self.home != NOBODY).any())

    @property
    def largest(self) -> Ints:
        """Largest cost of each partition on any member (P,)."""
        table = self.table.copy()
        rows = np.flatnonzero(self.home != NOBODY)
        columns = self.class_of[self.home[rows]]
        alone = np.bincount(self.class_of)[columns] == 1
        table[rows[alone], columns[alone]] = self.at_home[rows[alone]]
        largest: Ints = table.max(axis=1, initial=0)
        return largest

    @property
    def most(self) -> int:
        """Largest cost of any pair."""
        return int(self.table.max(initial=0))

    @property
    def step(self) -> int:
        """Greatest common divisor of the costs; 0 if all are 0."""
        return gcd(*np.unique(self.table).tolist(), *np.unique(self.at_home).tolist())

    def any(self) -> bool:
        """Return True unless all costs are 0."""
        return bool(self.table.any())

    def same_as(self, other: PairTable) -> bool:
        """Return True if both have equal costs."""
        if len(self.table) != len(other.table) or len(self.class_of) != len(other.class_of):
            return False
        if np.array_equal(self.home, other.home) and np.array_equal(self.class_of, other.class_of):
            return np.array_equal(self.table, other.table) and np.array_equal(self.at_home, other.at_home)
        return np.array_equal(self.pairs, other.pairs)

    def key(self) -> bytes:
        """Return bytes that differ between unequal tables."""
        texts = [
            str(array.tolist()).encode() if array.dtype == object else array.tobytes()
            for array in (self.table, self.class_of, self.home, self.at_home)
        ]
        return b"|".join(texts)

    # ---- other tables --------------------------------------------------------------------------------------------

    def keep(self, chosen: Bools) -> PairTable:
        """Return the costs of some partitions, chosen by a mask (P,)."""
        return PairTable(self.table[chosen], self.class_of, self.home[chosen], self.at_home[chosen])

    def times(self, factor: int | Whole) -> PairTable:
        """Return the costs multiplied by a whole number >= 0, or by one for each partition (P,)."""
        mine = self._for_costs_up_to(self.most * int(np.max(factor, initial=0)))
        return PairTable(mine.table * np.reshape(factor, (-1, 1)), mine.class_of, mine.home, mine.at_home * factor)

    def plus(self, other: PairTable) -> PairTable:
        """Return the sums of two tables. Where both have a home, it must be the same member."""
        mine, theirs = (each._for_costs_up_to(self.most + other.most) for each in (self, other))
        both, class_of = np.unique(np.stack([mine.class_of, theirs.class_of]), axis=1, return_inverse=True)
        table = mine.table[:, both[0]] + theirs.table[:, both[1]]
        home = np.where(mine.home != NOBODY, mine.home, theirs.home)
        every = np.arange(len(home))
        at_home = mine._with(every, home) + theirs._with(every, home)
        return PairTable(table, class_of.reshape(-1).astype(np.int64), home, at_home)

    def _for_costs_up_to(self, most: int) -> PairTable:
        """Return the same costs, as Python integers if sums of costs up to `most` may exceed 64 bits."""
        if self.wide or most * len(self.table) < LARGEST:
            return self
        return PairTable(self.table.astype(object), self.class_of, self.home, self.at_home.astype(object))

    def of_members(self, places: list[int | None]) -> PairTable:
        """Return the costs for other members, given by their places among the present ones; None for a new member.

        A new member costs what every present one does, if they agree, and otherwise nothing. There must be no homes.
        """
        alike = self.table.shape[1] == 1
        table = self.table if alike else np.column_stack([self.table, np.zeros_like(self.table, shape=len(self.table))])
        new = 0 if alike else table.shape[1] - 1
        class_of = np.array([new if m is None else self.class_of[m] for m in places], dtype=np.int64)
        return PairTable.by_class(table, class_of)

    def summed(self, order: Whole, starts: Whole) -> PairTable:
        """Return the costs of units: sums over the partitions `order`, of which each unit begins at its start."""
        if not len(starts):
            return self.keep(np.zeros(len(self.table), dtype=bool))
        lengths = np.diff(starts, append=len(order))
        home = np.maximum.reduceat(self.home[order], starts)
        homes = np.repeat(home, lengths)
        if ((self.home[order] != NOBODY) & (self.home[order] != homes)).any():
            return PairTable.of_pairs(_summable(np.add.reduceat(self.rows(order), starts, axis=0)))
        at_home = self._with(order, homes)
        return PairTable(
            _summable(np.add.reduceat(self.table[order], starts, axis=0)), self.class_of, home,
            np.add.reduceat(at_home, starts),
        )  # fmt: skip


LARGEST = 2**62  # above this sum, costs are Python integers


def _summable(costs: Ints) -> Ints:
    """Return costs (P, K) >= 0 in a dtype for sums over any plan: object if int64 could overflow."""
    large = costs.size > 0 and len(costs) * int(costs.max()) >= LARGEST
    return costs.astype(object) if large else costs
