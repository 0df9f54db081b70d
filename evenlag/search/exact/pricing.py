"""What partitions are worth to each member, and what the members can hold by that: each has a table of its own.

Whatever values partitions are given, no member holds more than the best pattern in its table. So any values prove
something of all windows (move_windows.py); which ones prove most is left to price_steps.py and move_patterns.py.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from evenlag.model.arrays import Bools, Whole
from evenlag.model.balance import CountRule
from evenlag.model.problem import NOBODY
from evenlag.search.exact.idle import Idle
from evenlag.search.exact.member_share import Share
from evenlag.search.exact.move_windows import UNIT, Prices
from evenlag.search.exact.own_patterns import OwnTable, tables_of
from evenlag.search.exact.rounding import Rounding


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
        return Prices(values, [table.best for table in tables], total), tables

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
