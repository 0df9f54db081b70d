"""Linear program over classes of members: bounds on loads and pair costs together.

Members with equal pair costs form a class, such as those of a rack. The program decides how much of each partition a
class holds. The limits of every member hold for sums over its class: loads lie between the lowest and the highest load,
and counts within their bounds. Where moves cost, a partition may also stay with its owner. Loads and counts are then
per member: the partitions that stay, and what comes from elsewhere.

Costs are integers. If the program has a fractional cost, two programs replace it: one limits that cost to at most the
integer below, the other to at least the integer above.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from math import ceil, floor, gcd, lcm

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import NOBODY, Bools, Ints, Whole, numbered
from evenlag.model.bounds import reduction_floors, reductions
from evenlag.model.pair_table import PairTable
from evenlag.model.plan import Number, whole
from evenlag.search.clock import Stop
from evenlag.search.exact.choice_program import ChoiceProgram, Limits, Solution, Terms
from evenlag.search.task import Task

NEAR = 1e-6  # tolerance for floats


@dataclass(frozen=True)
class ProgramParams:
    """Parameters of the linear program."""

    reductions: int = 8  # ways to reduce the lags of oversized partitions
    oversized: int = 3  # oversized partitions with companion rows
    thresholds: int = 6  # thresholds for each
    floors: int = 40  # reductions tried for cuts
    cut_rounds: int = 2  # rounds of cuts after each branch
    cut_worth: float = 1e-4  # share of the mean load by which a class must miss the lowest load for a cut
    worth: float = 1e-4  # share of the mean load by which a lowest load must be too high to branch on it


@dataclass(frozen=True, eq=False)
class MemberClasses:
    """Active members by class: those with the same pair costs.

    Attributes
    ----------
    of : int64 array (M,)
        Class of each active member; `NOBODY` for the others.
    members : list of int64 arrays
        Members of each class, ascending.
    """

    of: Whole
    members: list[Whole]


def member_classes(task: Task) -> MemberClasses:
    """Group active members by subscriptions, weight, and the classes of all pair costs."""
    problem = task.problem
    tables = [pair.costs for pair in task.goal.pairs]
    of = np.full(len(problem.members), NOBODY, dtype=np.int64)
    of[problem.active] = numbered(
        (problem.allowed[:, m].tobytes(), problem.relative_weights[m], *(costs.class_of[m] for costs in tables))
        for m in np.flatnonzero(problem.active).tolist()
    )
    return MemberClasses(of, [np.flatnonzero(of == k) for k in range(int(of.max(initial=NOBODY)) + 1)])


@dataclass(frozen=True, eq=False)
class _Columns:
    """Columns of the program: each a partition on a class, or with its owner.

    Attributes
    ----------
    item, class_of, home : int64 arrays (N,)
        Index among the assignable partitions, class, and owner (`NOBODY` if it moves or moves do not matter).
    costs : list of arrays (N,)
        Costs of the columns by each cost of the task.
    """

    item: Whole
    class_of: Whole
    home: Whole
    costs: list[Ints]


@dataclass(frozen=True, eq=False)
class Relaxed:
    """A solution of the program.

    Attributes
    ----------
    bound : number
        Lower bound on the objective of better plans within the limits, in messages; at most that of the best plan.
    shares : float array (P, K)
        Share of each partition that a class has.
    spent : list of float
        Cost by each cost of the task; last the lowest load, scaled, if it counts.
    limits : list of (lo, hi)
        Limits of each entry of `spent`.
    barred : int64 array
        Columns that the program could not use.
    """

    bound: Number
    shares: NDArray[np.float64]
    spent: list[float]
    limits: list[Limits]
    barred: Whole


class ClassProgram:
    """The linear program of a task.

    Parameters
    ----------
    task : Task
        Task without scenarios.
    value : number or None
        Objective of the best plan in messages. Bounds are for better plans.
    least : number
        Proven lower bound on the spread (makespan) at any cost, in messages.
    stop : Stop
        Called before each branch.
    """

    def __init__(
        self, task: Task, classes: MemberClasses, value: Number | None, least: Number, stop: Stop,
        params: ProgramParams = ProgramParams(),
    ) -> None:  # fmt: skip
        self._stop, self._params = stop, params
        self._task, self._classes, self._value = task, classes, value
        problem, goal = task.problem, task.goal
        prices = [Fraction(pair.price) / problem.load_unit for pair in task.costs]
        self._unit = lcm(*(price.denominator for price in prices))  # program objective per unit of load
        whole_prices = [int(price * self._unit) for price in prices]
        self._mean = max(float(problem.mean_load / problem.load_unit), 1.0)
        self._items = np.flatnonzero(problem.assignable)
        self._owners_cost = any(pair.costs.has_homes for pair in task.costs)
        self._columns = self._all_columns()
        price: Ints = np.zeros(len(self._columns.item), dtype=object)
        for each, costs in zip(whole_prices, self._columns.costs, strict=True):
            price = price + each * costs.astype(object)
        scale = self._unit * self._mean if goal.kind is not None else float(max(price, default=1) or 1)
        self._program = ChoiceProgram(self._columns.item, price, scale)
        self._limits: list[Limits] = [(None, pair.budget) for pair in task.costs]
        self._limited = self._add_costs(whole_prices)  # row of each limit
        self._cuts: dict[int, list[int]] = {}  # rows that hold if the lowest load is at most the key
        self._lowest: int | None = None
        self._add_counts()
        self._add_loads(least)

    # ---- columns ----------------------------------------------------------------------------------------------

    def _all_columns(self) -> _Columns:
        problem, items = self._task.problem, self._items
        at, owner, pin = np.arange(len(items)), problem.owner[items], problem.pins[items]
        may = problem.allowed[problem.topic_of[items]] & problem.active
        may[pin != NOBODY] = False
        may[at[pin != NOBODY], pin[pin != NOBODY]] = True
        stays = at[(owner != NOBODY) & may[at, owner]] if self._owners_cost else at[:0]
        elsewhere = may.copy()
        elsewhere[stays, owner[stays]] = False
        tables = [pair.costs for pair in self._task.costs]
        at_home = [table.at(items[stays], owner[stays]) for table in tables]
        parts = [(stays, self._classes.of[owner[stays]], owner[stays], at_home)]
        for k, members in enumerate(self._classes.members):
            some = at[elsewhere[:, members].any(axis=1)]
            costs = [_least(table, items[some], members, elsewhere[some]) for table in tables]
            parts.append((some, np.full(len(some), k), np.full(len(some), NOBODY), costs))
        item, class_of, home = (np.concatenate([part[i] for part in parts]) for i in range(3))
        return _Columns(
            item, class_of, home, [np.concatenate(each) for each in zip(*(p[3] for p in parts), strict=True)]
        )

    # ---- rows -------------------------------------------------------------------------------------------------

    def _sums(self, values: Ints, scale: float) -> Iterator[tuple[Whole, Whole, Terms]]:
        """Yield members with the columns and variables that add up to their values: one by one, or by class.

        For single members, variables hold what comes from elsewhere. Their sum is what comes to the class.
        """
        class_of, home = self._columns.class_of, self._columns.home
        most = int(sum(values.tolist()))
        for k, members in enumerate(self._classes.members):
            if not self._owners_cost:
                yield members, np.flatnonzero(class_of == k), ()
                continue
            coming = [self._program.add_variable(0, most, 0, scale) for _ in members]
            for m, place in zip(members.tolist(), coming, strict=True):
                yield np.array([m]), np.flatnonzero(home == m), ((place, 1),)
            moved = np.flatnonzero((class_of == k) & (home == NOBODY))
            self._program.add_row(moved, values[moved], tuple((place, -1) for place in coming), (0, 0), scale)

    def _add_loads(self, least: Number) -> None:
        """Add rows that keep each load at most the highest one and the ceiling, and at least the lowest one."""
        task, program = self._task, self._program
        problem, goal, bounds, unit = task.problem, task.goal, task.bounds, task.problem.load_unit
        ceiling = None if goal.ceiling is None else floor(goal.ceiling / unit)
        lags = problem.lags[self._items][self._columns.item].astype(object)
        factors = [int(problem.load_factors[members[0]]) for members in self._classes.members]
        factor = self._factor = np.array(factors, dtype=object)[self._columns.class_of]
        if goal.kind is None:
            if ceiling is not None:
                for members, columns, more in self._sums(lags * factor, self._mean):
                    limits: Limits = None, ceiling * len(members)
                    program.add_row(columns, (lags * factor)[columns], more, limits, self._mean, elastic=True)
            return
        low, high = floor(bounds.min_load_ub / unit), ceil(bounds.max_load_lb / unit)
        better = problem.total_lag * max(factors) if self._value is None else ceil(self._value / unit)
        highest = program.add_variable(high, max(better + max(low, 0), high), self._unit, self._mean)
        if ceiling is not None:
            none = np.zeros(0, dtype=np.int64)
            program.add_row(none, none.astype(object), ((highest, 1),), (None, ceiling), self._mean, elastic=True)
        for members, columns, more in self._sums(lags * factor, self._mean):
            more = (*more, (highest, -len(members)))
            program.add_row(columns, (lags * factor)[columns], more, (None, 0), self._mean)
        if problem.equal_weights:
            self._add_companions(highest, high)
        if not task.spread_matters:
            return
        self._lowest = program.add_variable(min(high - better, low), low, -self._unit, self._mean)
        none = np.zeros(0, dtype=np.int64)
        both = ((highest, 1), (self._lowest, -1))
        program.add_row(none, none.astype(object), both, (ceil(least / unit), None), self._mean)
        self._limits.append((None, low))
        alone = (self._lowest, 1)
        self._limited.append(
            program.add_row(none, none.astype(object), (alone,), (None, low), self._mean, elastic=True)
        )
        self._add_cuts(low)

    def _add_cuts(self, low: int) -> None:
        """Add rows that keep each load at least the lowest one, with lags reduced for a lowest load up to `low`."""
        assert self._lowest is not None
        rows = self._cuts.setdefault(low, [])
        for values in self._reduced(low):
            for members, columns, more in self._sums(values, self._mean):
                more = (*more, (self._lowest, -len(members)))
                rows.append(self._program.add_row(columns, values[columns], more, (0, None), self._mean))

    def _reduced(self, low: int) -> Iterator[Ints]:
        """Yield scaled lags, reduced so that each member still has the lowest load if that is at most `low`."""
        problem, lags = self._task.problem, self._task.problem.lags[self._items]
        count = 1 if self._owners_cost else self._params.reductions  # single members take many more rows
        for limits in reductions(self._task.rule, low, count) or [(0, low)]:
            reduced = np.clip(lags, *limits) if problem.equal_weights else lags
            yield np.minimum(reduced[self._columns.item].astype(object) * self._factor, max(low, 0))

    def _add_companions(self, highest: int, high: int) -> None:
        """Add rows for companions: a holder of an oversized partition also holds other partitions of its class.

        Each companion has a lag of at least t, less its shortfall below t. The shortfalls of all partitions that the
        class holds add up to at least the companions' shortfalls.
        """
        rule, (item, class_of) = self._task.rule, (self._columns.item, self._columns.class_of)
        lags = self._task.problem.lags[self._items]
        ascending = np.sort(lags)
        biggest = [g for g in np.argsort(-lags, kind="stable")[: self._params.oversized].tolist() if 2 * lags[g] > high]
        for k, members in enumerate(self._classes.members):
            others = int(rule.total_bounds.lo[members].min()) - 1
            if others < 1:
                continue
            places = np.linspace(others, others * (len(self._classes.members) + 1), self._params.thresholds).astype(int)
            for t in np.unique(ascending[np.minimum(places, len(ascending) - 1)]).tolist():
                below = np.flatnonzero((class_of == k) & (lags[item] < t))
                for g in biggest:
                    here = np.flatnonzero((class_of == k) & (item == g))
                    amounts = np.append(lags[item[below]] - t, [int(lags[g]) + others * t] * len(here)).astype(object)
                    columns = np.append(below, here)
                    if len(here) and lags[g] >= t:
                        self._program.add_row(columns, amounts, ((highest, -1),), (None, 0), self._mean)

    def _add_counts(self) -> None:
        rule, topic_of = self._task.rule, self._task.problem.topic_of[self._items][self._columns.item]
        ones: Ints = np.ones(len(topic_of), dtype=object)
        most = np.minimum(rule.member_bounds.hi, len(self._items))
        for members, columns, more in self._sums(ones, 1.0):
            limits = int(rule.member_bounds.lo[members].sum()), int(most[members].sum())
            self._program.add_row(columns, ones[columns], more, limits, 1.0)
        if rule.topic_bounds is None:
            return
        off = rule.topic_distance
        for k, members in enumerate(self._classes.members):
            here = self._columns.class_of == k
            for t in np.unique(topic_of[here]).tolist():
                columns = np.flatnonzero(here & (topic_of == t))
                lo, hi = (int(side[t, members].sum()) for side in (rule.topic_bounds.lo, rule.topic_bounds.hi))
                self._program.add_row(columns, ones[columns], (), (lo - off, hi + off), 1.0)

    def _add_costs(self, prices: list[int]) -> list[int | None]:
        """Add a row per cost with a price or a budget, and return the rows. Plans within the budgets satisfy them."""
        rows: list[int | None] = []
        for price, limits, costs in zip(prices, self._limits, self._columns.costs, strict=True):
            columns = np.flatnonzero(costs)
            if not len(columns) or (not price and limits == (None, None)):
                rows.append(None)
                continue
            values = costs[columns].astype(object)
            rows.append(self._program.add_row(columns, values, (), limits, float(max(values)), elastic=True))
        return rows

    # ---- bounds and branches ------------------------------------------------------------------------------------

    def solve(self, most: int) -> Iterator[Relaxed]:
        """Yield solutions. Each solution's bound holds for all plans and is at least as high as the previous one.

        Parameters
        ----------
        most : int
            Largest number of branches.
        """
        first = self._solved(self._limits, np.zeros(0, dtype=np.int64))
        leaves = [] if first is None else [(first.bound, 0, first)]
        for number in range(most):
            if not leaves:
                return
            yield leaves[0][-1]
            parts = self._parts(leaves[0][-1])
            if not parts or leaves[0][0] == self._value or self._stop():
                return
            found = [self._solved(*part) for part in parts]
            heappop(leaves)
            for i, part in enumerate(found):
                if part is None:
                    return
                heappush(leaves, (part.bound, 2 * number + i + 1, part))

    def _solved(self, limits: list[Limits], barred: Whole) -> Relaxed | None:
        rows = {row: each for row, each in zip(self._limited, limits, strict=True) if row is not None}
        for low, cuts in self._cuts.items():
            most = limits[-1][1]
            rows |= dict.fromkeys(cuts, (0 if most is not None and most <= low else None, None))
        found = self._program.solve(rows, barred, self._stop.room())
        if found is None:
            return None
        for _ in range(self._params.cut_rounds):
            closer = self._program.solve(rows, barred, self._stop.room()) if self._cut(found) else None
            if closer is None:
                break
            found = closer
        bound = found.bound / self._unit * self._task.problem.load_unit
        if self._value is not None:
            bound = min(bound, Fraction(self._value))
        shares = np.zeros((len(self._task.problem.lags), len(self._classes.members)))
        np.add.at(shares, (self._items[self._columns.item], self._columns.class_of), found.amounts)
        spent = [float((costs * found.amounts).sum()) for costs in self._columns.costs]
        spent += [] if self._lowest is None else [found.numbers[self._lowest]]
        return Relaxed(whole(bound), shares, spent, limits, barred)

    def better(self, value: Number) -> None:
        """Set the objective of a better plan. From now on, bounds are for plans better than this."""
        self._value = value if self._value is None else min(value, self._value)

    def _cut(self, found: Solution) -> list[int]:
        """Add rows that a solution breaks, with lags reduced for its own lowest load L, and return them.

        With floor t, an oversized partition p on a class counts L - (n - 1)·t. Let L lie between `least` and `low`, and
        let x be the share of p. Then L·x is at most low·x and at most L - least·(1 - x), which is exact where x is 1.
        """
        if self._lowest is None or self._owners_cost or self._value is None:
            return []
        task, unit = self._task, self._task.problem.load_unit
        low, high = floor(task.bounds.min_load_ub / unit), ceil(task.bounds.max_load_lb / unit)
        least = high - ceil(self._value / unit)
        lags = task.problem.lags[self._items].astype(np.float64)
        floors = np.array(reduction_floors(task.rule, min(least, low), self._params.floors), dtype=np.float64)[:, None]
        if not len(floors):
            return []
        companions = (int(task.rule.total_bounds.lo[task.problem.active].min()) - 1) * floors
        flat = np.minimum(np.maximum(lags, floors), low - companions)
        lowest, added, item = found.numbers[self._lowest], list[int](), self._columns.item
        for k, members in enumerate(self._classes.members):
            columns = np.flatnonzero(self._columns.class_of == k)
            shares = np.zeros(len(lags))
            shares[item[columns]] = found.amounts[columns]
            tied = lowest - least + (least - companions) * shares
            sums = np.minimum(flat * shares, tied).sum(axis=1)
            way = int(sums.argmin())
            if len(members) * lowest - sums[way] <= self._params.cut_worth * self._mean * len(members):
                continue
            by_tie = (tied < flat * shares)[way][item[columns]]
            values = np.where(by_tie, least - int(companions[way, 0]), flat[way][item[columns]]).astype(np.int64)
            ties = int(by_tie.sum())
            variables = ((self._lowest, ties - len(members)),)
            limits = ties * least, None
            added.append(self._program.add_row(columns, values.astype(object), variables, limits, self._mean))
        return added

    def _parts(self, relaxed: Relaxed) -> list[tuple[list[Limits], Whole]]:
        """Return limits and barred columns of the branches, which cover all plans; none if no branch is needed."""
        limits, barred = relaxed.limits, relaxed.barred
        for place, costs in enumerate(self._columns.costs):
            if self._limited[place] is None:
                continue
            spent, (lo, hi) = relaxed.spent[place], limits[place]
            step = gcd(*np.unique(costs).tolist())
            at = floor(spent / step) * step
            fraction = min(spent - at, at + step - spent) > NEAR * step
            if fraction and (lo is None or at >= lo) and (hi is None or at < hi):
                sides = [(lo, at), (at + step, hi)] if hi is None or at + step <= hi else [(lo, at)]
                return [([*limits[:place], side, *limits[place + 1 :]], barred) for side in sides]
        lowest = self._lowest_to_branch_on(relaxed)
        if lowest is not None:
            self._add_cuts(lowest)
            lo, hi = limits[-1]
            return [([*limits[:-1], side], barred) for side in ((lo, lowest), (lowest + 1, hi))]
        shares = relaxed.shares[self._items]
        off = np.minimum(shares, 1 - shares).max(axis=1)
        weight = np.where(off > NEAR, self._task.problem.lags[self._items].astype(np.float64) + 1, 0)
        item = int(weight.argmax())
        if not weight[item]:
            return []
        here = self._columns.item == item
        ours = here & (self._columns.class_of == int(shares[item].argmax()))
        return [(limits, np.union1d(barred, np.flatnonzero(each))) for each in (here & ~ours, ours)]

    def _lowest_to_branch_on(self, relaxed: Relaxed) -> int | None:
        """Return a value somewhat above the lowest load to branch on, if reduced lags fall short of it; else None."""
        if self._lowest is None or self._owners_cost:
            return None
        lowest, shares = relaxed.spent[-1], relaxed.shares[self._items][self._columns.item, self._columns.class_of]
        able = lowest
        for values in self._reduced(ceil(lowest)):
            loads = np.bincount(self._columns.class_of, values.astype(np.float64) * shares)
            able = min(able, (loads / [len(members) for members in self._classes.members]).min())
        at, (lo, hi) = ceil((3 * lowest - able) / 2), relaxed.limits[-1]
        within = (lo is None or at >= lo) and hi is not None and at < hi and at not in self._cuts
        return at if within and lowest - able > self._params.worth * self._mean else None


def _least(costs: PairTable, partitions: Whole, members: Whole, may: Bools) -> Ints:
    """Return the least cost of each partition on the members of a class that may take it (N, M)."""
    home = costs.home[partitions]
    at_home = np.isin(home, members) & may[np.arange(len(home)), home]
    return np.where(at_home, costs.at_home[partitions], costs.table[partitions, costs.class_of[members[0]]])
