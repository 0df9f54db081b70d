"""Packing: can all partitions be shared out with no load above a capacity? Linear programming and diving.

A pattern is what one member may hold. The linear program over all patterns (Gilmore and Gomory 1961) is solved by
column generation: knapsack.py finds the patterns that it lacks. Its bound is nearly always the best makespan there is,
rounded up (the integer round-up property of cutting stock); it is proven in whole numbers, from whatever prices
(Farley 1990), and by one table for all capacities at once.

A packing is looked for by diving (Wäscher and Gau 1996; Sadykov et al. 2019): patterns of the linear program are fixed,
some at a time, and columns generated for the rest. Full ones come first, so that all slack is left for the end, where
the last partitions are shared out by looking at all ways.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from random import Random

import numpy as np
from ortools.linear_solver import pywraplp

from evenlag.search.exact.end_game import MOST_LEFT, share_out
from evenlag.search.exact.knapsack import Items, Knapsack, Pattern, Whole

WARM = "use_preprocessing: false"  # so that a linear program begins where the one before ended
UNIT = 10**9  # prices are whole multiples of 1 / UNIT
NEAR = 1e-7  # how closely floats of the linear program are looked at
MOST_NEW = 20  # columns that one table adds
MOST_TRIES = 6  # patterns that a dive may fix in vain, one after another
FIXED_AT_ONCE = 0.12  # of the members left, whose patterns a dive fixes before the linear program is solved again


class Answer(Enum):
    """What a linear program says."""

    FITS = auto()
    TOO_SMALL = auto()
    STOPPED = auto()


@dataclass(frozen=True)
class Counts:
    """How many partitions members may hold: `extra` of them at most `fewest + 1`, the others at most `fewest`.

    Where `fewest` times the members and `extra` are all partitions there are, each holds exactly that.
    """

    fewest: int
    extra: int

    @property
    def most(self) -> int:
        """The most that any member holds."""
        return self.fewest + (self.extra > 0)

    def over(self, pattern: Pattern) -> bool:
        """Whether a pattern has more than `fewest` partitions."""
        return sum(times for _, times in pattern) > self.fewest


class Packing:
    """Patterns found so far, and the linear program over them.

    Parameters
    ----------
    items : Items
    members : int
    counts : Counts or None
        None: any number of partitions.
    stop : callable
        Asked before each table.
    """

    def __init__(self, items: Items, members: int, counts: Counts | None, stop: Callable[[], bool]) -> None:
        self.items, self.members, self.counts, self.stop = items, members, counts, stop
        self.most = None if counts is None else counts.most
        self._lp = pywraplp.Solver.CreateSolver("GLOP")
        self._lp.SetSolverSpecificParametersAsString(WARM)
        self._lp.Objective().SetMinimization()
        endless = self._lp.infinity()
        self._cover = [self._lp.Constraint(float(demand), endless) for demand in items.demand.tolist()]
        self._extra = self._lp.Constraint(0.0, endless)  # members that hold one more
        self._known: set[Pattern] = set()
        self._patterns: list[Pattern] = []
        self._variables: list[pywraplp.Variable] = []
        self._times = np.zeros((1024, len(items.lags)), dtype=np.int32)  # of each lag in each pattern; grows
        self._usable = np.ones(1024, dtype=bool)  # whether a column may be used now
        for k in range(len(items.lags)):
            self.add(((k, 1),))

    def add(self, pattern: Pattern) -> bool:
        """Add a column; say whether it is new."""
        if pattern in self._known:
            return False
        self._known.add(pattern)
        variable = self._lp.NumVar(0.0, self._lp.infinity(), "")
        self._lp.Objective().SetCoefficient(variable, 1.0)
        for k, times in pattern:
            self._cover[k].SetCoefficient(variable, float(times))
        if self.counts is not None and self.counts.over(pattern):
            self._extra.SetCoefficient(variable, 1.0)
        self._variables.append(variable)
        self._patterns.append(pattern)
        if len(self._patterns) > len(self._times):
            self._times = np.concatenate([self._times, np.zeros_like(self._times)])
            self._usable = np.concatenate([self._usable, np.ones_like(self._usable)])
        for k, times in pattern:
            self._times[len(self._patterns) - 1, k] = times
        return True

    # ---- the linear program ------------------------------------------------------------------------------------------

    def raise_capacity(self, capacity: int, most: int) -> tuple[int, Answer]:
        """Return the least capacity from `capacity` on that is not proven too small, and what is known of it.

        `most` + 1 is returned as soon as all up to `most` are proven too small.
        """
        left = self._all()
        capacity = max(capacity, int(self.items.lags[-1]))
        while True:
            if capacity > most:
                return capacity, Answer.TOO_SMALL
            capacity, answer = self._solve(left, capacity, most)
            if answer is not Answer.TOO_SMALL:
                return capacity, answer

    def _solve(self, left: Left, capacity: int, most: int) -> tuple[int, Answer]:
        """Generate columns until members suffice; a capacity that is too small is raised as far as that is proven."""
        self._restrict(left, capacity)
        while True:
            if self._lp.Solve() != pywraplp.Solver.OPTIMAL:
                return capacity, Answer.STOPPED
            if self._lp.Objective().Value() <= left.members + NEAR:
                return capacity, Answer.FITS
            if self.stop():
                return capacity, Answer.STOPPED
            prices = np.maximum([row.dual_value() for row in self._cover], 0.0)
            values = np.floor(prices * UNIT).astype(np.int64)
            table = Knapsack(left.items, values, most, self.most)
            proven = self._least_capacity(table, left, int(values @ left.items.demand))
            if proven > capacity:
                return proven, Answer.TOO_SMALL
            if not self._generate(table, capacity):
                return capacity, Answer.FITS  # all columns are there, and no proof: floats are near enough

    def _least_capacity(self, table: Knapsack, left: Left, demand: int) -> int:
        """Return the least capacity that these prices allow: any sharing out holds at most so much of their value."""
        if self.counts is None:
            most = left.members * table.best[0]
        else:
            fewest = table.best[self.counts.fewest]
            most = (left.members - left.extra) * fewest + left.extra * table.best[-1]
        return int(np.searchsorted(most, demand, side="left"))

    def _generate(self, table: Knapsack, capacity: int) -> bool:
        """Add the columns that a table finds lacking; say whether there was one."""
        if self.counts is None:
            found = table.patterns(capacity, None, UNIT)
        else:
            found = table.patterns(capacity, self.counts.fewest, UNIT) if self.counts.fewest else []
            if self.most != self.counts.fewest:
                price = max(round(-self._extra.dual_value() * UNIT), 0)
                more = table.patterns(capacity, self.most, UNIT + price)
                found = sorted([*found, *((value - price, pattern) for value, pattern in more)], reverse=True)
        new = [self.add(pattern) for _, pattern in found[:MOST_NEW]]
        return any(new)

    def _restrict(self, left: Left, capacity: int) -> None:
        """Ask for what is left alone, by columns of it within the capacity."""
        demand = left.items.demand.tolist()
        for row, amount in zip(self._cover, demand, strict=True):
            row.SetLb(float(amount))
        self._extra.SetUb(float(left.extra))
        times = self._times[: len(self._patterns)]
        usable = (times @ self.items.lags <= capacity) & (times <= left.items.demand).all(axis=1)
        was = self._usable[: len(usable)]
        for place in np.flatnonzero(usable != was).tolist():
            self._variables[place].SetUb(self._lp.infinity() if usable[place] else 0.0)
        was[:] = usable

    # ---- diving ------------------------------------------------------------------------------------------------------

    def dive(self, capacity: int, rng: Random) -> list[Pattern] | None:
        """Look for a packing once: a pattern for each member, or None."""
        left = self._all()
        if left.few:
            return share_out(left.items, left.members, capacity, self.counts, left.extra)
        if self._solve(left, capacity, capacity)[1] is not Answer.FITS:
            return None
        fixed: list[Pattern] = []
        tries = MOST_TRIES
        while True:
            wanted, most = self._wanted(capacity, rng), max(int(FIXED_AT_ONCE * left.members), 1)
            while True:
                batch, after = self._fix(left, wanted, most)
                if not batch or self.stop():
                    return None
                if after.few:
                    last = share_out(after.items, after.members, capacity, self.counts, after.extra)
                    if last is not None:
                        return [*fixed, *batch, *last]
                elif self._solve(after, capacity, capacity)[1] is Answer.FITS:
                    break
                if most > 1:
                    most //= 2
                elif tries:
                    tries, wanted = tries - 1, wanted[1:]
                else:
                    return None
            fixed += batch
            left = after

    def _all(self) -> Left:
        """Return what there is to share out before anything is fixed."""
        return Left(self.items, self.members, 0 if self.counts is None else self.counts.extra)

    def _wanted(self, capacity: int, rng: Random) -> list[tuple[int, Pattern]]:
        """Return patterns to fix, and how often: whole ones first, then what wastes least, then what is used most."""
        used = []
        for place in np.flatnonzero(self._usable[: len(self._patterns)]).tolist():
            amount = self._variables[place].solution_value()
            if amount > NEAR:
                pattern = self._patterns[place]
                waste, drawn = capacity - self.items.load(pattern), amount * rng.uniform(0.7, 1.3)
                used.append((amount < 1 - NEAR, waste, -drawn, max(int(amount + NEAR), 1), pattern))
        return [(times, pattern) for _, _, _, times, pattern in sorted(used)]

    def _fix(self, left: Left, wanted: list[tuple[int, Pattern]], most: int) -> tuple[list[Pattern], Left]:
        """Return the first of these patterns that can all be fixed, `most` at most, and what is left then."""
        batch: list[Pattern] = []
        for times, pattern in wanted:
            for _ in range(times):
                if len(batch) == most or not left.holds(pattern, self.counts):
                    break
                left = left.without(pattern, self.counts)
                batch.append(pattern)
        return batch, left


@dataclass(frozen=True, eq=False)
class Left:
    """What a dive has still to share out.

    Attributes
    ----------
    items : Items
    members : int
    extra : int
        Members that may still hold one partition more.
    """

    items: Items
    members: int
    extra: int

    @property
    def few(self) -> bool:
        """Whether all ways to share it out can be looked at."""
        return int(self.items.demand.sum()) <= MOST_LEFT or self.members <= 1

    def holds(self, pattern: Pattern, counts: Counts | None) -> bool:
        """Whether a member can still be given such a pattern."""
        over = counts is not None and counts.over(pattern)
        enough = all(self.items.demand[k] >= times for k, times in pattern)
        return enough and self.members > 0 and self.extra >= over

    def without(self, pattern: Pattern, counts: Counts | None) -> Left:
        """Give it to a member."""
        demand: Whole = self.items.demand.copy()
        for k, times in pattern:
            demand[k] -= times
        over = counts is not None and counts.over(pattern)
        return Left(Items(self.items.lags, demand), self.members - 1, self.extra - over)
