"""What partitions are worth to each member, and what the members can hold by that: each has a table of its own.

Whatever values partitions are given, no member holds more than the best pattern in its table. So any values prove
something of all windows (windows.py). Which ones prove most is left to the linear program (move_patterns.py) and to
subgradient steps (Held, Wolfe and Crowder 1974): what several members would hold is worth less from then on, what none
would hold is worth more. Steps take only the tables, where a round of column generation solves a linear program, which
proves little as long as it has few columns. The best patterns found on the way become columns.

Members under the same rules differ by what they own alone. Their tables are built together: half of the members have
what nobody of them owns in common, half of those have more in common, and so on. That takes the logarithm of their
number for each partition, not their number. The slots of idle partitions come after the partitions of others, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Bools, Whole
from evenlag.model.balance import CountRule
from evenlag.model.problem import NOBODY
from evenlag.search.exact.member_share import Idle, Share
from evenlag.search.exact.member_tables import ExchangeTable, Rounding, TopicsTable
from evenlag.search.exact.prefix_table import PrefixTable, begin, nothing_held
from evenlag.search.exact.windows import UNIT, Prices, Window

FIRST_STEPS, FIRST_STEP, SHORTER = 60, 0.5, 0.96  # how many at first; the first in moves; each by the last
FIRST_NEW = 6  # columns of each table, at first
STEPS_AT_ONCE = 8  # later steps before it is asked whether they lead on
LEADS_ON = 0.25  # what so many must bring, as a share of what lacks to exclude a window
VAIN, LESS = 4, 0.6  # steps that prove no more, and how much shorter those after them are
KEPT_DIRECTION = 0.3  # how much of the last step's direction is in the next (Camerini, Fratta and Maffioli 1975)
LEAST_HOPED, MOST_CHANGE = 0.5, 1_000.0  # moves that a step goes for, at least; that it changes a price by, at most

Add = Callable[[int, tuple[int, ...]], object]  # a pattern of a member
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


class Progress:
    """Whether prices still prove more of a window, step by step.

    Parameters
    ----------
    proven : float
        Moves that it takes, at first.
    steps : int
        So many are waited for before it is looked at again.
    share : float
        What they must bring, as a share of what lacks.
    """

    def __init__(self, proven: float, steps: int, share: float) -> None:
        self._before, self._steps, self._share, self._taken = proven, steps, share, 0

    def ended(self, proven: float, wanted: float) -> bool:
        """Count a step, and say whether too little has come of the last ones for what is wanted."""
        self._taken += 1
        if self._taken % self._steps:
            return False
        little = proven - self._before < self._share * (wanted - proven)
        self._before = proven
        return little


class Subgradient:
    """Looks for prices that prove more of a window.

    Parameters
    ----------
    pricing : Pricing
    add : callable
        Takes each pattern that is to be a column, after the number of its member.
    stop : callable
        Asked before each step.
    """

    def __init__(self, pricing: Pricing, add: Add, stop: Callable[[], bool]) -> None:
        self._pricing, self._add, self._stop = pricing, add, stop

    def first(self, window: Window) -> Prices | None:
        """Return prices where none are known; None if `stop` says so at once."""
        pricing = self._pricing
        values = pricing.by_place(np.full(len(pricing.amounts), UNIT, dtype=np.int64))
        best: Prices | None = None
        step = FIRST_STEP * UNIT
        for _ in range(FIRST_STEPS):
            if self._stop():
                break
            found, tables = pricing.asked(values)
            if best is None or found.slack(window, 0) < best.slack(window, 0):
                best = found
            values = self._changed(values, step * self._lacking(tables, window, FIRST_NEW) / pricing.amounts)
            step *= SHORTER
        return best

    def raised(self, best: Prices, window: Window, known: int) -> Prices:
        """Return prices that prove more, from the best ones so far, as long as they may exclude a window.

        A step is as long as it takes to do so if all went on so (Polyak 1969), and shorter where that led nowhere.
        Windows next to one another have much the same prices, so a few steps are often enough.

        Parameters
        ----------
        best : Prices
        window : Window
        known : int
            Moves; if it takes more, it is excluded.
        """
        amounts = self._pricing.amounts
        values, length, vain = best.values, 1.0, 0
        proven = -best.slack(window, 0) / UNIT
        direction, excluded, progress = np.zeros(len(amounts)), False, Progress(proven, STEPS_AT_ONCE, LEADS_ON)
        while not excluded and not self._stop():
            excluded = proven > known  # then once more, for windows next to it
            found, tables = self._pricing.asked(values)
            here = -found.slack(window, 0) / UNIT
            vain = 0 if here > proven else vain + 1
            if here > proven:
                best, proven = found, here
            if vain == VAIN:
                length, vain = LESS * length, 0
            if progress.ended(proven, known + 1) and not excluded:
                break
            direction = self._lacking(tables, window, 1) + KEPT_DIRECTION * direction
            square = float((direction * direction / amounts).sum())
            if not square:
                break
            hoped = max(known + 1, proven + LEAST_HOPED) - here
            change = np.clip(length * hoped / square * direction / amounts, -MOST_CHANGE, MOST_CHANGE)
            values = self._changed(values, UNIT * change)
        return best

    def _lacking(self, tables: list[OwnTable], window: Window, most: int) -> Whole:
        """Return how many of each row the best patterns lack all together; so many of each table become columns."""
        lacking = self._pricing.amounts.copy()
        for n, table in enumerate(tables):
            patterns = table.patterns(window, most)
            if patterns:
                lacking -= self._pricing.rows_held(patterns[0])
            for pattern in patterns:
                self._add(n, pattern)
        return lacking

    def _changed(self, values: Whole, by: NDArray[np.float64]) -> Whole:
        """Return values after a change, which is given by row."""
        changed: Whole = values + self._pricing.by_place(np.rint(by).astype(np.int64))
        return changed
