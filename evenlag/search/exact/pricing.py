"""Prices of partitions, a pricing table for each member, and the bounds that they prove.

Whatever the prices are, no member holds more value than the best pattern in its table. So any prices prove a bound for
every window (windows.py). Good prices come from the linear program (move_patterns.py) and from subgradient steps (Held,
Wolfe and Crowder 1974). A step lowers the price of a partition that several members would hold, and raises that of one
that no member would hold. It takes only the tables. A round of column generation also solves a linear program, which
proves little while it has few columns. The best patterns of first steps, and of later steps that prove more, become
columns.

Members under the same rules differ only in what they own, and their tables are built together. Half of the members
share the partitions that no member of this half owns, a quarter shares more, and so on. So with n members each
partition is added about log n times, not n times. The slots of idle partitions come after the partitions of
others, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
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

Places = tuple[int, ...]  # places of partitions, as in `Pricing`
Add = Callable[[int, Places], object]  # receives a member and a pattern
OwnTable = TopicsTable | ExchangeTable


@dataclass(frozen=True)
class SubgradientParams:
    """Parameters of subgradient steps."""

    first_steps: int = 60  # number of first steps
    first_step: float = 0.5  # length of the first one, in moves
    decay: float = 0.96  # ratio of the lengths of first steps
    first_new: int = 6  # columns from each table in a first step
    steps_at_once: int = 8  # later steps between two checks of progress, at least
    rows_per_step: int = 10  # one step between two checks for this many rows, if that is more
    least_progress: float = 0.25  # progress that a check requires, as a share of the gap to excluding a window
    patience: float = 0.5  # share of the steps between two checks after which steps without progress become shorter
    shrink: float = 0.6  # by this factor
    momentum: float = 0.3  # weight of the last step's direction in the next (Camerini, Fratta and Maffioli 1975)
    least_gain: float = 0.5  # least gain that a step aims at, in moves
    most_change: float = 1_000.0  # largest change of a price, in moves


def own_table(
    rounding: Rounding, values: Whole, capacity: int, *, whole: bool, begun: PrefixTable | None = None
) -> OwnTable:
    """Return the pricing table of a member."""
    kind = ExchangeTable if rounding.by_exchange else TopicsTable
    return kind(rounding, values, capacity, whole=whole, begun=begun)


def tables_of(
    roundings: list[Rounding], values: list[Whole], capacity: int, *, whole: bool = False
) -> Iterator[tuple[int, OwnTable]]:
    """Yield each member's index and table. Those with equal limits on one topic are built together.

    Parameters
    ----------
    roundings : list of Rounding
        Roundings of the members, to the same unit.
    values : list of int64 array (P,)
        Values of partitions to each member.
    capacity : int
        Largest load that will be queried.
    whole : bool
        Keep the layers that `listed` needs, which takes eight times the memory.
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
            begun.add(~apart[begun.left], lags, common, whole=whole)
            if len(some) == 1:
                yield some[0], own_table(roundings[some[0]], values[some[0]], capacity, whole=whole, begun=begun)
            else:
                middle = len(some) // 2
                parts += [(some[middle:], begun), (some[:middle], begun.copy())]


def rows_of(shares: list[Share]) -> int:
    """Estimate the rows per load to be computed for the tables of all members, with common rows shared."""
    alike = [(shares[some[0]], len(some)) for some in _alike(shares)]
    return sum(ceil(share.rows * (log2(members) + 1)) + members * share.slot_rows for share, members in alike)


def _alike(shares: list[Share]) -> list[list[int]]:
    """Group members whose shares of one topic differ only in what they own; a share of several topics stays alone."""
    found: dict[object, list[int]] = {}
    for n, share in enumerate(shares):
        first = share.topics[0]
        same = (share.together, share.fewest, share.most, first.fewest, first.most, first.places.tobytes())
        found.setdefault(same if len(share.topics) == 1 else n, []).append(n)
    return list(found.values())


class Pricing:
    """Pricing tables of all members, for given values of partitions.

    Parameters
    ----------
    shares : list of Share
        Share of each member that may hold partitions.
    unit : int
        Unit of loads, in messages.
    largest : int
        Largest load that will be queried, in units.

    Attributes
    ----------
    roundings : list of Rounding
        Rounding of each member to that unit.
    places : int64 array
        The assignable partitions.
    idle : Idle
        Interchangeable partitions without lag.
    moved : list of bool array (P,)
        For each member, the partitions that move if it holds them. Unowned idle partitions count as moving too.
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
        """Return the prices that values prove, and the table of each member."""
        worth = [self.worth(values, n) for n in range(len(self.roundings))]
        by_member = dict(tables_of(self.roundings, worth, self._largest))
        tables = [by_member[n] for n in range(len(worth))]
        total = int(values[self.places].sum()) - UNIT * self.idle.unowned
        return Prices.of(values, [(1, table.best) for table in tables], total), tables

    def worth(self, values: Whole, n: int) -> Whole:
        """Return the value of each partition to one of the members, less one move where it comes from another."""
        return values - UNIT * self.moved[n]

    def by_place(self, of_rows: Whole) -> Whole:
        """Return per-row numbers by place; 0 for places without a row."""
        return np.append(of_rows, 0)[self.row]

    def rows_held(self, pattern: Places) -> Whole:
        """Return the number of partitions of each row in a pattern."""
        return np.bincount(self.row[list(pattern)], minlength=len(self.amounts))

    @cached_property
    def numbers(self) -> Whole:
        """Index of each place among `places`; -1 for others."""
        numbers = np.full(len(self._lags), -1, dtype=np.int64)
        numbers[self.places] = np.arange(len(self.places))
        return numbers

    @cached_property
    def row(self) -> Whole:
        """Row of each place; -1 without one. Idle partitions share one row if counted; otherwise they have no row."""
        row = np.full(len(self._lags), -1, dtype=np.int64)
        single = np.setdiff1d(self.places, self.idle.places)
        row[single] = np.arange(len(single))
        if self.idle.counted:
            row[self.idle.places] = len(single)
        return row

    @cached_property
    def amounts(self) -> Whole:
        """Number of partitions of each row."""
        return np.bincount(self.row[self.row >= 0])

    @cached_property
    def lags_of_rows(self) -> Whole:
        """Lag of one partition of each row, in messages."""
        lags = np.zeros(len(self.amounts), dtype=np.int64)
        single = self.row >= 0
        lags[self.row[single]] = self._lags[single]
        return lags


class Progress:
    """Progress of prices: the moves that they prove for a window, step by step.

    Parameters
    ----------
    proven : float
        Moves proven at first.
    steps : int
        Number of steps between two checks.
    share : float
        Progress that a check requires, as a share of the gap.
    """

    def __init__(self, proven: float, steps: int, share: float) -> None:
        self._before, self._steps, self._share, self._taken = proven, steps, share, 0

    def ended(self, proven: float, wanted: float) -> bool:
        """Count a step; return True at a check if the last steps closed too little of the gap to `wanted`."""
        self._taken += 1
        if self._taken % self._steps:
            return False
        little = proven - self._before < self._share * (wanted - proven)
        self._before = proven
        return little


class Subgradient:
    """Search by subgradient steps for prices that prove more moves for a window.

    Parameters
    ----------
    add : callable
        Receives the number of a member and each of its patterns that is to become a column.
    stop : callable
        Called before each step.
    """

    def __init__(
        self, pricing: Pricing, add: Add, stop: Callable[[], bool], params: SubgradientParams = SubgradientParams()
    ) -> None:
        self._pricing, self._add, self._stop, self._params = pricing, add, stop, params

    def first(self, window: Window) -> Prices | None:
        """Return initial prices; None if `stop` ends the search before the first step."""
        pricing, params = self._pricing, self._params
        values = pricing.by_place(np.full(len(pricing.amounts), UNIT, dtype=np.int64))
        best: Prices | None = None
        step = params.first_step * UNIT
        for _ in range(params.first_steps):
            if self._stop():
                break
            found, tables = pricing.asked(values)
            if best is None or found.slack(window, 0) < best.slack(window, 0):
                best = found
            patterns = [table.patterns(window, params.first_new) for table in tables]
            self._keep(patterns)
            lacking = self._lacking(patterns)
            values = self._changed(values, step * lacking / pricing.amounts)
            step *= params.decay
        return best

    def raised(self, best: Prices, window: Window, known: int) -> Prices:
        """Return prices that prove more than the best so far, as long as they may exclude a window.

        A step has the length that would reach the exclusion if the progress were linear (Polyak 1969). Steps become
        shorter after several without progress. Neighbouring windows have similar prices, so a few steps often suffice.

        Parameters
        ----------
        known : int
            Number of moves. A window that takes more is excluded.
        """
        amounts, params = self._pricing.amounts, self._params
        values, length, without_gain = best.values, 1.0, 0
        proven = -best.slack(window, 0) / UNIT
        steps = max(params.steps_at_once, len(amounts) // params.rows_per_step)
        progress = Progress(proven, steps, params.least_progress)
        direction, excluded = np.zeros(len(amounts)), False
        while not excluded and not self._stop():
            excluded = proven > known  # one more step then serves the neighbouring windows
            found, tables = self._pricing.asked(values)
            patterns = [table.patterns(window, 1) for table in tables]
            here = -found.slack(window, 0) / UNIT
            without_gain = 0 if here > proven else without_gain + 1
            if here > proven:
                best, proven = found, here
                self._keep(patterns)
            if without_gain >= params.patience * steps:
                length, without_gain = params.shrink * length, 0
            if progress.ended(proven, known + 1) and not excluded:
                break
            direction = self._lacking(patterns) + params.momentum * direction
            square = float((direction * direction / amounts).sum())
            if not square:
                break
            aim = max(known + 1, proven + params.least_gain) - here
            change = np.clip(length * aim / square * direction / amounts, -params.most_change, params.most_change)
            values = self._changed(values, UNIT * change)
        return best

    def _lacking(self, patterns: list[list[Places]]) -> Whole:
        """Return the number of each row that the best pattern of each table lacks: a subgradient."""
        lacking = self._pricing.amounts.copy()
        for several in patterns:
            for pattern in several[:1]:
                lacking -= self._pricing.rows_held(pattern)
        return lacking

    def _keep(self, patterns: list[list[Places]]) -> None:
        """Add the patterns of each table as columns."""
        for n, several in enumerate(patterns):
            for pattern in several:
                self._add(n, pattern)

    def _changed(self, values: Whole, by: NDArray[np.float64]) -> Whole:
        """Return values changed by amounts that are given by row."""
        return values + self._pricing.by_place(np.rint(by).astype(np.int64))
