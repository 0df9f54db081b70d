"""Column generation for identical members: a nearly always tight bound on the spread or makespan, and plans.

A pattern is what one member may hold. The linear program over all patterns (Gilmore and Gomory 1961) tests whether all
loads may lie in a window. Column generation solves it: the restricted master leaves as little as possible over or
short, and prefix_table.py finds the patterns that it lacks. If something remains, the prices prove in integers that no
such plan exists, whatever the prices are (Farley 1990). One table proves it for all windows at once. Windows are tested
from the bounds on, until the narrowest one left may hold a plan. The dual of P||Cmax as bin packing is due to Hochbaum
and Shmoys 1987. For cutting stock it is known that the linear program nearly always rounds up to the optimum
(Scheithauer and Terno 1995).

Diving (Wäscher and Gau 1996; Sadykov et al. 2019) looks for a plan in such a window, and then in wider ones. It fixes
some patterns of the linear program at a time and generates columns for the rest. Patterns at the scarce end of the
window come first, so that all slack is left for the end. The last member holds what the others leave.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from evenlag.search.subsets import exact_cover_is_a_plan
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
    grid : Grid
    bounds : LoadBounds
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
class Counts:
    """Numbers of partitions per member: `extra` members hold `fewest + 1`, the others `fewest`."""

    fewest: int
    extra: int

    @property
    def most(self) -> int:
        """Largest number that any member holds."""
        return self.fewest + (self.extra > 0)

    def over(self, pattern: Pattern) -> bool:
        """Return True if a pattern has more than `fewest` partitions."""
        return sum(times for _, times in pattern) > self.fewest


class Packing:
    """Patterns found so far, and the restricted master over them.

    Parameters
    ----------
    items : Items
    members : int
    counts : Counts or None
        None for any number of partitions.
    stop : Stop
        Called before each table of the pricing problem.
    params : ColumnParams
    """

    def __init__(
        self, items: Items, members: int, counts: Counts | None, stop: Stop, params: ColumnParams = ColumnParams()
    ) -> None:
        self.items, self.members, self.counts, self.stop, self.params = items, members, counts, stop, params
        self.most = None if counts is None else counts.most
        worth = (items.lags + 1) / (items.lags[-1] + 1)  # limits prices; without this, twice as many tables
        held = items.most_held(2 * items.total // members, self.most)  # about as many as one member may hold
        unit = max(SMALL // (held + 2), UNIT)  # finest unit that tables can count in 32 bits
        self._pool = ColumnPool[Pattern]([*worth.tolist(), 1.0], unit)  # the last row counts members
        self._pool.room = stop.room
        self._times = np.zeros((1024, len(items.lags)), dtype=np.int32)  # count of each lag in each pattern; grows
        if counts is None or not counts.fewest:
            self.add(())  # pattern of a member without partitions

    def add(self, pattern: Pattern) -> bool:
        """Add a column; return True if it is new."""
        load, number = self.items.load(pattern), len(self._pool)
        if not self._pool.put(pattern, [*pattern, (len(self.items.lags), 1)], (load, load)):
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

        def price(prices: Whole, _costs: float) -> Answer | None:
            values = prices[:-1]
            table = BlockTable(left.items, values, capacity, self.most)
            proven = self._proven(values, table, left)
            if proven.slack(window) < 0:
                if windows is not None:
                    windows.exclude(proven)
                return Answer.EXCLUDED
            lacking = self._generate(table, window, least=-int(prices[-1]))
            return None if lacking else Answer.UNDECIDED  # no column is missing, within float tolerance

        return self._pool.generate(self.stop, price)

    def _proven(self, values: Whole, table: BlockTable, left: Left) -> Prices:
        """Return the prices that values of lags prove, by their table."""
        levels = [(left.members, table.best[0])]
        if self.counts is not None:
            levels = [(left.members - left.extra, table.best[self.counts.fewest]), (left.extra, table.best[-1])]
        best = [(members, most) for members, most in levels if members]
        return Prices.of(values, best, int(values @ left.items.demand))

    def _generate(self, table: BlockTable, window: Window, least: int) -> bool:
        """Add the columns of a table that are worth more than `least`; return True if any is new."""
        if self.counts is None:
            found = table.patterns(window, None, least)
        else:
            sizes = {self.counts.fewest, self.counts.most} - {0}
            found = [pattern for size in sizes for pattern in table.patterns(window, size, least)]
        new = [self.add(pattern) for _, pattern in sorted(found, reverse=True)[: self.params.most_new]]
        return any(new)

    def _restrict(self, left: Left, window: Window) -> None:
        """Restrict the master to what is left, and to columns that are part of it with a load in the window."""
        self._pool.ask([*left.items.demand.tolist(), left.members])
        held: Bools = np.all(self._times[: len(self._pool)] <= left.items.demand, axis=1)
        self._pool.use(window, held)

    # ---- diving ------------------------------------------------------------------------------------------------------

    def dive(self, window: Window, rng: Random) -> list[Pattern] | None:
        """Dive once for a packing, after `check`. Return a pattern for each member, or None."""
        left = self._all()
        fixed: list[Pattern] = []
        tries = self.params.most_tries
        while left.members > 1:
            wanted, most = self._wanted(left, window, rng), max(int(self.params.fixed_at_once * left.members), 1)
            while True:
                batch, after = self._fix(left, wanted, most)
                if not batch or self.stop():
                    return None
                if after.members == 1:
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

    def _last(self, left: Left, window: Window) -> Pattern | None:
        """Return all that is left as the pattern of the last member, or None if it may not hold that."""
        pattern = tuple((k, times) for k, times in enumerate(left.items.demand.tolist()) if times)
        size, counts = int(left.items.demand.sum()), self.counts
        allowed = counts is None or counts.fewest + (left.extra > 0) == size
        return pattern if allowed and window.low <= left.items.total <= window.high else None

    def _all(self) -> Left:
        """Return all partitions and members, before anything is fixed."""
        return Left(self.items, self.members, 0 if self.counts is None else self.counts.extra)

    def _wanted(self, left: Left, window: Window, rng: Random) -> list[tuple[int, Pattern]]:
        """Return patterns to fix and their multiplicities: whole ones first, then by least waste, then by amount."""
        total = left.items.total
        upper = left.members * window.high - total <= total - left.members * window.low
        used = []
        for pattern, amount in self._pool.amounts():
            load, drawn = self.items.load(pattern), amount * rng.uniform(0.7, 1.3)
            waste = window.high - load if upper else load - window.low
            used.append((amount < 1 - NEAR, waste, -drawn, max(int(amount + NEAR), 1), pattern))
        return [(times, pattern) for _, _, _, times, pattern in sorted(used)]

    def _fix(self, left: Left, wanted: list[tuple[int, Pattern]], most: int) -> tuple[list[Pattern], Left]:
        """Return the first patterns that can be fixed together, at most `most`, and what is left after them."""
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
    """Partitions and members that a dive has not fixed.

    Attributes
    ----------
    items : Items
    members : int
    extra : int
        Members that may still hold one more partition.
    """

    items: Items
    members: int
    extra: int

    def holds(self, pattern: Pattern, counts: Counts | None) -> bool:
        """Return True if a member can still get a pattern."""
        over = counts is not None and counts.over(pattern)
        enough = all(self.items.demand[k] >= times for k, times in pattern)
        room = counts is None or over or self.members > self.extra
        return enough and self.members > 0 and self.extra >= over and room

    def without(self, pattern: Pattern, counts: Counts | None) -> Left:
        """Return what is left after a member gets a pattern."""
        demand: Whole = self.items.demand.copy()
        for k, times in pattern:
            demand[k] -= times
        over = counts is not None and counts.over(pattern)
        return Left(Items(self.items.lags, demand), self.members - 1, self.extra - over)


@dataclass(frozen=True)
class ColumnGeneration(Stage):
    """Column generation, as a stage.

    Attributes
    ----------
    params : ColumnParams
    """

    params: ColumnParams = ColumnParams()
    name: str = "column generation"
    relaxes: ClassVar[bool] = True

    def applies(self, task: Task, best: Incumbent) -> bool:
        """Return True if only present loads count, members are identical, and rounding of lags is less than the gap."""
        if (
            task.moves_matter
            or not best.found
            or task.problem.futures
            or best.settled
            or not exact_cover_is_a_plan(task.rule)
            or not _counts_are_plain(task.rule)
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
        packing = Packing(question.items, question.members, question.counts, stop, self.params)
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
    members : int
    counts : Counts or None
    cells : int
        Number of cells of a table.
    """

    def __init__(self, task: Task, best: Incumbent, params: ColumnParams) -> None:
        rule, problem = task.rule, task.problem
        self._problem = problem
        self._active = np.flatnonzero(problem.active)
        self._places = np.flatnonzero(problem.assignable)
        self.members = len(self._active)
        fewest, most = (int(bound[self._active[0]]) for bound in (rule.total_bounds.lo, rule.total_bounds.hi))
        extra = len(self._places) - self.members * fewest if most > fewest else 0
        self.counts = Counts(fewest, extra) if most < len(self._places) else None
        lags = np.sort(problem.lags[self._places].astype(np.int64))
        largest = int(best.value) + (int(task.bounds.min_load_ub) if task.spread_matters else 0)
        held = min(int(np.searchsorted(np.cumsum(lags), largest, side="right")), most)
        whole = unit = int(np.gcd.reduce(lags)) or 1
        allowed = max(min(params.most_cells, params.cells_a_second * task.clock.allowance()), 1.0)
        while True:
            self.grid = Grid(unit, held * (unit - whole), task.spread_matters)
            self.items = Items(*np.unique(lags // unit, return_counts=True))
            capacity = self.grid.largest(task.bounds, best.value)
            self.cells = self.items.cells(capacity, None if self.counts is None else self.counts.most)
            if self.cells <= allowed or unit > largest:
                break
            unit = whole * ceil(unit / whole * max(self.cells / (params.rounded_share * allowed), 1.01))
        self.rounded = unit > whole

    def bound(self, windows: Windows, best: Incumbent, bounds: LoadBounds) -> Bound:
        """Return the bound that the remaining windows prove."""
        least = self.grid.bound(windows, best.value)
        return Bound(least, least, certificate=by_prices(windows, self.grid, bounds, least))

    def plan(self, packing: list[Pattern]) -> Plan:
        """Return the plan of a packing."""
        order = np.argsort(self._problem.lags[self._places] // self.grid.unit, kind="stable")
        free = [part.tolist() for part in np.split(self._places[order], np.cumsum(self.items.demand)[:-1])]
        chosen = np.full(len(self._problem.lags), NOBODY, dtype=np.int32)
        for m, pattern in zip(self._active.tolist(), packing, strict=True):
            for k, times in pattern:
                for _ in range(times):
                    chosen[free[k].pop()] = m
        return Plan(self._problem, chosen)


def _counts_are_plain(rule: CountRule) -> bool:
    """Return True if members hold any number of partitions, or numbers that differ by at most one."""
    m = int(np.flatnonzero(rule.problem.active)[0])
    fewest, most = int(rule.total_bounds.lo[m]), int(rule.total_bounds.hi[m])
    return most - fewest <= 1 or (fewest == 0 and most >= int(rule.problem.assignable.sum()))
