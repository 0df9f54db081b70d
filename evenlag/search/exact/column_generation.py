"""Column generation for members that differ only in counts: a nearly always tight bound on loads, and plans.

A pattern is what one member may hold. The linear program over all patterns (Gilmore and Gomory 1961) tests whether all
loads may lie in a window. Column generation solves it: the restricted master leaves as little as possible over or
short, and prefix_table.py finds the patterns that it lacks. If something remains, the prices prove in integers that no
such plan exists, whatever the prices are (Farley 1990). One table proves it for all windows at once. Windows are tested
from the bounds on, until the narrowest one left may hold a plan. The dual of P||Cmax as bin packing is due to Hochbaum
and Shmoys 1987. For cutting stock it is known that the linear program nearly always rounds up to the optimum
(Scheithauer and Terno 1995).

Members with the same limits on their number of partitions are of one kind. A column is a pattern for a kind, and the
master has a row for the members of each kind.

Diving (Wäscher and Gau 1996; Sadykov et al. 2019) looks for a plan in such a window, and then in wider ones. It fixes
some patterns of the linear program at a time and generates columns for the rest. Patterns at the scarce end of the
window come first, so that all slack is left for the end. The last member holds what the others leave.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from random import Random
from typing import ClassVar

import numpy as np

from evenlag.model.arrays import Bools, Whole
from evenlag.model.balance import CountRule
from evenlag.model.bounds import LoadBounds
from evenlag.model.certificate import Certificate, Document, of_loads
from evenlag.model.plan import Number, Plan
from evenlag.model.problem import NOBODY
from evenlag.search.clock import Stop
from evenlag.search.exact.column_pool import NEAR, ColumnPool
from evenlag.search.exact.prefix_table import SMALL, BlockTable, Items, Pattern
from evenlag.search.exact.windows import UNIT, Answer, Grid, Prices, Window, Windows
from evenlag.search.incumbent import Bound, Candidate, Finding, Incumbent
from evenlag.search.stage import Stage
from evenlag.search.subsets import any_partition_fits
from evenlag.search.task import Task


@dataclass(frozen=True)
class ColumnParams:
    """Parameters of column generation."""

    most_cells: int = 20_000_000  # cells of one DP table: some hundredths of a second, some 100 MB
    cells_a_second: int = 4_000_000  # limit per second allowed; more would leave time for too few tables
    cells_a_step: int = 300_000  # cells per step of the clock
    rounded_share: float = 0.25  # share of these limits if lags are rounded: finer loads are of no use
    patience: int = 8  # dives in a row without a better plan, if lags are rounded

    most_new: int = 20  # columns from one table
    most_tries: int = 6  # patterns in a row that a dive may fail to fix
    fixed_at_once: float = 0.12  # share of the remaining members that a dive fixes before it solves the program again


def by_prices(windows: Windows, grid: Grid, bounds: LoadBounds, bound: Number) -> Certificate:
    """Return the certificate that prices exclude every window of a plan below a bound.

    Parameters
    ----------
    windows : Windows
        Windows, with the prices that excluded some.
    bound : number
        Bound on the spread (makespan), in messages.
    """
    excluded, first = windows.excluded[:], windows.first_highs

    def document() -> Document:
        lows = np.arange(windows.low, windows.low + len(first))
        highs = lows + grid.width(ceil(bound)) - 1  # widest window of each low end
        left, chosen = highs >= first, []
        table = np.array([least > highs for *_, least in excluded]).reshape(len(excluded), len(first))
        while left.any() and (table & left).any():
            best = int((table & left).sum(axis=1).argmax())
            chosen.append(best)
            left &= ~table[best]
        return {
            "kind": "windows", "unit": grid.unit, "each": of_loads([bounds]),
            "prices": [excluded[n][0].tolist() for n in chosen], "worth": [excluded[n][1] for n in chosen],
        }  # fmt: skip

    return Certificate(document)


@dataclass(frozen=True)
class Kind:
    """Members with the same limits on their number of partitions.

    Attributes
    ----------
    most : int or None
        None for any number; then there is one kind only.
    """

    members: int
    fewest: int = 0
    most: int | None = None

    def allows(self, number: int) -> bool:
        """Return True if a member may hold this number of partitions."""
        return self.fewest <= number and (self.most is None or number <= self.most)


Column = tuple[int, Pattern]  # index of the kind, and the pattern of one of its members


class Packing:
    """Patterns found so far, and the restricted master over them.

    Parameters
    ----------
    items : Items
    kinds : sequence of Kind
    stop : Stop
        Called before each table of the pricing problem.
    params : ColumnParams
    """

    def __init__(self, items: Items, kinds: Sequence[Kind], stop: Stop, params: ColumnParams = ColumnParams()) -> None:
        self.items, self.kinds, self.stop, self.params = items, kinds, stop, params
        self.most = most_of(kinds)
        worth = (items.lags + 1) / (items.lags[-1] + 1)  # limits prices; without this, twice as many tables
        members = sum(kind.members for kind in kinds)
        held = items.most_held(2 * items.total // members, self.most)  # about as many as one member may hold
        unit = max(SMALL // (held + 2), UNIT)  # finest unit that tables can count in 32 bits
        self._pool = ColumnPool[Column]([*worth.tolist(), *[1.0] * len(kinds)], unit)  # the last rows count members
        self._pool.room = stop.room
        self._times = np.zeros((1024, len(items.lags)), dtype=np.int32)  # count of each lag in each pattern; grows
        for place, kind in enumerate(kinds):
            if kind.allows(0):
                self.add((place, ()))

    def add(self, column: Column) -> bool:
        """Add a column; return True if it is new."""
        place, pattern = column
        load, number = self.items.load(pattern), len(self._pool)
        if not self._pool.put(column, [*pattern, (len(self.items.lags) + place, 1)], (load, load)):
            return False
        if number == len(self._times):
            self._times = np.concatenate([self._times, np.zeros_like(self._times)])
        for k, times in pattern:
            self._times[number, k] = times
        return True

    # ---- the linear program ------------------------------------------------------------------------------------------

    def check(self, window: Window, windows: Windows) -> Answer:
        """Test whether a window may hold a plan. If it cannot, exclude all windows that the same prices exclude."""
        return self._solve(self._all(), window, windows)

    def _solve(self, left: Left, window: Window, windows: Windows | None = None) -> Answer:
        """Generate columns until nothing is left over or short, or until prices exclude the window."""
        self._restrict(left, window)
        capacity = window.high if windows is None else windows.largest

        def price(prices: Whole, _cost: float) -> Answer | None:
            values, costs = np.split(prices, [len(self.items.lags)])
            table = BlockTable(left.items, values, capacity, self.most)
            proven = self._proven(values, table, left)
            if proven.slack(window) < 0:
                if windows is not None:
                    windows.exclude(proven)
                return Answer.EXCLUDED
            lacking = self._generate(table, window, left, (-costs).tolist())
            return None if lacking else Answer.UNDECIDED  # no column is missing, within float tolerance

        return self._pool.generate(self.stop, price)

    def _proven(self, values: Whole, table: BlockTable, left: Left) -> Prices:
        """Return the prices that values of lags prove, by their table."""
        best = [
            (members, table.best[kind.fewest : None if kind.most is None else kind.most + 1].max(axis=0))
            for kind, members in zip(self.kinds, left.members, strict=True)
            if members
        ]
        return Prices.of(values, best, int(values @ left.items.demand))

    def _generate(self, table: BlockTable, window: Window, left: Left, costs: list[int]) -> bool:
        """Add the columns of a table that are worth more than a member of their kind; return True if any is new."""
        sizes: Iterable[int | None] = [None] if self.most is None else range(1, self.most + 1)
        places = [(c, kind) for c, kind in enumerate(self.kinds) if left.members[c]]
        allowing = {size: [c for c, kind in places if size is None or kind.allows(size)] for size in sizes}
        offers = [(size, min(kinds, key=lambda c: costs[c])) for size, kinds in allowing.items() if kinds]
        found = [
            (value - costs[c], pattern, c)
            for size, c in offers
            for value, pattern in table.patterns(window, size, costs[c])
        ]
        new = [self.add((c, pattern)) for _, pattern, c in sorted(found, reverse=True)[: self.params.most_new]]
        return any(new)

    def _restrict(self, left: Left, window: Window) -> None:
        """Restrict the master to what is left, and to columns that are part of it with a load in the window."""
        self._pool.ask([*left.items.demand.tolist(), *left.members])
        held: Bools = np.all(self._times[: len(self._pool)] <= left.items.demand, axis=1)
        self._pool.use(window, held)

    # ---- diving ------------------------------------------------------------------------------------------------------

    def dive(self, window: Window, rng: Random) -> list[Column] | None:
        """Dive once for a packing, after `check`. Return a column for each member, or None."""
        left = self._all()
        fixed: list[Column] = []
        tries = self.params.most_tries
        while left.number > 1:
            wanted, most = self._wanted(left, window, rng), max(int(self.params.fixed_at_once * left.number), 1)
            while True:
                batch, after = self._fix(left, wanted, most)
                if not batch or self.stop():
                    return None
                if after.number == 1:
                    if self._last(after, window) is not None:
                        break
                elif self._solve(after, window) is Answer.UNDECIDED:
                    break
                if most > 1:
                    most //= 2
                elif tries:
                    tries, wanted = tries - 1, wanted[1:]
                else:
                    return None
            fixed += batch
            left = after
        last = self._last(left, window)
        return None if last is None else [*fixed, last]

    def _last(self, left: Left, window: Window) -> Column | None:
        """Return all that is left as the column of the last member, or None if it may not hold that."""
        place = left.members.index(1)
        pattern = tuple((k, times) for k, times in enumerate(left.items.demand.tolist()) if times)
        allowed = self.kinds[place].allows(int(left.items.demand.sum()))
        return (place, pattern) if allowed and window.low <= left.items.total <= window.high else None

    def _all(self) -> Left:
        """Return all partitions and members, before anything is fixed."""
        return Left(self.items, tuple(kind.members for kind in self.kinds))

    def _wanted(self, left: Left, window: Window, rng: Random) -> list[tuple[int, Column]]:
        """Return columns to fix and their multiplicities: whole ones first, then by least waste, then by amount."""
        total = left.items.total
        upper = left.number * window.high - total <= total - left.number * window.low
        used = []
        for column, amount in self._pool.amounts():
            load, drawn = self.items.load(column[1]), amount * rng.uniform(0.7, 1.3)
            waste = window.high - load if upper else load - window.low
            used.append((amount < 1 - NEAR, waste, -drawn, max(int(amount + NEAR), 1), column))
        return [(times, column) for _, _, _, times, column in sorted(used)]

    def _fix(self, left: Left, wanted: list[tuple[int, Column]], most: int) -> tuple[list[Column], Left]:
        """Return the first columns that can be fixed together, at most `most`, and what is left after them."""
        batch: list[Column] = []
        for times, column in wanted:
            for _ in range(times):
                if len(batch) == most or not left.holds(column):
                    break
                left = left.without(column)
                batch.append(column)
        return batch, left


@dataclass(frozen=True, eq=False)
class Left:
    """Partitions and members that a dive has not fixed.

    Attributes
    ----------
    members : tuple of int
        Number of members of each kind.
    """

    items: Items
    members: tuple[int, ...]

    @property
    def number(self) -> int:
        """Number of all members."""
        return sum(self.members)

    def holds(self, column: Column) -> bool:
        """Return True if a member can still get a column."""
        place, pattern = column
        return self.members[place] > 0 and all(self.items.demand[k] >= times for k, times in pattern)

    def without(self, column: Column) -> Left:
        """Return what is left after a member gets a column."""
        place, pattern = column
        demand: Whole = self.items.demand.copy()
        for k, times in pattern:
            demand[k] -= times
        members = tuple(number - (c == place) for c, number in enumerate(self.members))
        return Left(Items(self.items.lags, demand), members)


@dataclass(frozen=True)
class ColumnGeneration(Stage):
    """Column generation, as a stage."""

    params: ColumnParams = ColumnParams()
    name: str = "column generation"
    relaxes: ClassVar[bool] = True

    def applies(self, task: Task, best: Incumbent) -> bool:
        """Return True if only present loads count, members differ in counts only, and rounding is less than the gap."""
        if (
            task.moves_matter
            or not best.found
            or task.problem.futures
            or best.settled
            or not any_partition_fits(task.rule)
        ):
            return False
        question = _Question(task, best, self.params)
        fine = not question.rounded or question.grid.loss + question.grid.unit <= best.value - best.base_bound
        return fine or not task.clock.ended()

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Exclude windows as far as the linear program permits, then dive for plans in those left."""
        question, rng = _Question(task, best, self.params), Random(task.drawn)
        windows = question.grid.windows(task.bounds, best.value)
        stop = best.stop(task.clock).in_steps_of(1 + question.cells // self.params.cells_a_step)
        packing = Packing(question.items, question.kinds, stop, self.params)
        answer = windows.narrow(lambda window: packing.check(window, windows))
        yield question.bound(windows, best, task.bounds)
        wider = without_gain = 0
        while answer is not Answer.STOPPED and not best.settled and not stop() and without_gain < self.params.patience:
            window = windows.draw(wider, rng)
            if window is None:
                break
            answer = packing.check(window, windows)
            if answer is Answer.EXCLUDED:
                yield question.bound(windows, best, task.bounds)
            if answer is not Answer.UNDECIDED:
                continue
            found, before = packing.dive(window, rng), best.value
            if found is not None:
                yield Candidate(question.plan(found))
                windows.width = question.grid.width(best.value)
            better = best.value < before
            without_gain = without_gain + 1 if question.rounded and not better else 0
            widest = windows.width - windows.least_width - 1
            wider = 0 if better or wider >= widest else max(2 * wider, 1)


class _Question:
    """A group as a packing problem. The unit divides all lags, or is a multiple of that and lags are rounded down.

    Attributes
    ----------
    grid : Grid
    rounded : bool
        True if lags are rounded, since exact tables would be too large.
    items : Items
    kinds : list of Kind
    cells : int
        Number of cells of a table.
    """

    def __init__(self, task: Task, best: Incumbent, params: ColumnParams) -> None:
        problem = task.problem
        self._problem = problem
        self._places = np.flatnonzero(problem.assignable)
        lags = np.sort(problem.lags[self._places].astype(np.int64))
        held = best.most_held
        kinds = _kinds(task.rule, held)
        self.kinds, self._members = [kind for kind, _ in kinds], [members for _, members in kinds]
        most = most_of(self.kinds)
        held = held if most is None else min(held, most)
        whole = unit = int(np.gcd.reduce(lags)) or 1
        allowed = max(min(params.most_cells, params.cells_a_second * task.clock.allowance()), 1.0)
        while True:
            self.grid = Grid(unit, held * (unit - whole), task.spread_matters)
            self.items = Items(*np.unique(lags // unit, return_counts=True))
            capacity = self.grid.largest(task.bounds, best.value)
            self.cells = self.items.cells(capacity, most)
            if self.cells <= allowed or unit > best.largest_load:
                break
            unit = whole * ceil(unit / whole * max(self.cells / (params.rounded_share * allowed), 1.01))
        self.rounded = unit > whole

    def bound(self, windows: Windows, best: Incumbent, bounds: LoadBounds) -> Bound:
        """Return the bound that the remaining windows prove."""
        least = self.grid.bound(windows, best.value)
        return Bound(least, least, certificate=by_prices(windows, self.grid, bounds, least))

    def plan(self, packing: list[Column]) -> Plan:
        """Return the plan of a packing."""
        order = np.argsort(self._problem.lags[self._places] // self.grid.unit, kind="stable")
        free = [part.tolist() for part in np.split(self._places[order], np.cumsum(self.items.demand)[:-1])]
        chosen = np.full(len(self._problem.lags), NOBODY, dtype=np.int32)
        members = [iter(each) for each in self._members]
        for place, pattern in packing:
            m = next(members[place])
            for k, times in pattern:
                for _ in range(times):
                    chosen[free[k].pop()] = m
        return Plan(self._problem, chosen)


def most_of(kinds: Sequence[Kind]) -> int | None:
    """Return the largest number of partitions that any member may hold, or None for any number."""
    return None if kinds[0].most is None else max(kind.most or 0 for kind in kinds)


def _kinds(rule: CountRule, held: int) -> list[tuple[Kind, list[int]]]:
    """Return the kinds of members, each with its members; in plans of interest no member holds more than `held`."""
    active = np.flatnonzero(rule.problem.active)
    lo, hi = rule.total_bounds.lo[active], rule.total_bounds.hi[active]
    hi = np.maximum(np.minimum(hi, held), lo)
    if not lo.any() and (hi == held).all():
        return [(Kind(len(active)), active.tolist())]
    limits, kind_of = np.unique(np.column_stack([lo, hi]), axis=0, return_inverse=True)
    ranges = limits.tolist()
    members = [active[kind_of.ravel() == c].tolist() for c in range(len(limits))]
    if len(limits) == 1 and hi[0] == lo[0] + 1:  # then the number of members that hold one more is known
        (fewest, most), few = ranges[0], len(active) * int(hi[0]) - int(rule.problem.assignable.sum())
        ranges, members = [[fewest, fewest], [most, most]], [members[0][:few], members[0][few:]]
    return [(Kind(len(some), *limit), some) for limit, some in zip(ranges, members, strict=True) if some]
