"""Columns of members that differ: patterns that they may hold, and the linear program over those found so far.

A pattern costs a move for each partition that somebody else holds now. The program asks for the fewest moves with which
every partition is held once and every member holds one pattern (Gilmore and Gomory 1961).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.search.exact.column_program import ColumnProgram
from evenlag.search.exact.pricing import OwnTable, Pricing
from evenlag.search.exact.windows import UNIT, Answer, Window

MOST_NEW = 6  # columns that one table adds

# The most that a partition can be worth in moves: this and so much more by its share of the largest lag; of members.
WORTH, WORTH_BY_LAG, WORTH_OF_MEMBER = 2.0, 6.0, 20.0

Pattern = tuple[int, ...]  # places of partitions, as in `Pricing`


class Used(NamedTuple):
    """A pattern that the linear program uses.

    Attributes
    ----------
    member : int
    places : list of int
        What the member holds, without idle partitions.
    amount : float
        How much of it, up to 1.
    """

    member: int
    places: list[int]
    amount: float


class ColumnPool:
    """The patterns found so far, each of one member, in the order in which they were found.

    Parameters
    ----------
    pricing : Pricing
        What partitions, members and patterns are.
    members : list of int
        Those that take part.
    unit : int
        Messages of one load.
    """

    def __init__(self, pricing: Pricing, members: list[int], unit: int) -> None:
        self._pricing, self._members = pricing, members
        self._known: dict[tuple[int, Pattern], None] = {}
        self._loads: list[tuple[int, int]] = []  # of each, the least and the greatest that it is taken for
        lags = pricing.lags_of_rows // unit
        worth = WORTH + WORTH_BY_LAG * (lags + 1) / (lags.max(initial=0) + 1)
        self._program = ColumnProgram([*worth.tolist(), *[WORTH_OF_MEMBER] * len(members)], UNIT)
        self._program.ask([*pricing.amounts.tolist(), *[1] * len(members)])

    def __len__(self) -> int:
        return len(self._known)

    def since(self, number: int) -> Iterator[tuple[int, Pattern]]:
        """Yield the members and patterns that were found after so many."""
        return islice(self._known, number, None)

    def add(self, n: int, pattern: Pattern) -> bool:
        """Add a pattern of a member; False if it was known."""
        if (n, pattern) in self._known:
            return False
        self._known[n, pattern] = None
        held = self._pricing.rows_held(pattern)
        self._program.add(
            [*((int(row), int(held[row])) for row in np.flatnonzero(held)), (len(held) + n, 1)],
            cost=int(self._pricing.moved[n][list(pattern)].sum()),
        )
        self._loads.append(self._pricing.roundings[n].loads(pattern))
        return True

    def add_from(self, tables: list[OwnTable], window: Window, values: Whole, of_members: Whole) -> bool:
        """Add what is worth more than it costs, of each member's table; say whether there was anything.

        Parameters
        ----------
        tables : list of OwnTable
        window : Window
        values : int64 array
            What each partition is worth, by its place.
        of_members : int64 array
            What each member is worth.
        """
        new = False
        for n, (table, paid) in enumerate(zip(tables, of_members.tolist(), strict=True)):
            worth = self._pricing.worth(values, n)
            for pattern in table.patterns(window, MOST_NEW):
                if worth[list(pattern)].sum() + paid > 0:
                    new |= self.add(n, pattern)
        return new

    # ---- the linear program ----------------------------------------------------------------------------------------

    def fit(self, window: Window, moves: int) -> bool:
        """Whether these columns show that a window may take no more than so many moves."""
        if not self._known:
            return False
        self._use(window)
        return self._program.costs_at_most(moves)

    def used(self, window: Window) -> list[Used]:
        """Return what the linear program uses with all loads in a window."""
        self._use(window)
        self._program.solve()
        columns, idle = list(self._known), set(self._pricing.idle.places.tolist())
        used = []
        for at, amount in self._program.amounts():
            n, pattern = columns[at]
            used.append(Used(self._members[n], [place for place in pattern if place not in idle], amount))
        return used

    def generate(
        self, window: Window, stop: Callable[[], bool], price: Callable[[Whole, float], Answer | None], enough: float
    ) -> Answer:
        """Solve the linear program of a window again and again, `price` adding columns (`ColumnProgram.generate`)."""
        self._use(window)
        return self._program.generate(stop, price, enough)

    def _use(self, window: Window) -> None:
        """Let the linear program use the columns with a load in a window, and no others."""
        least, most = np.array(self._loads, dtype=np.int64).reshape(-1, 2).T
        self._program.use((most >= window.low) & (least <= window.high))
