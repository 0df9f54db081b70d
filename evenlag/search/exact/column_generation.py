"""Column generation: the best spread or makespan of members alike, by a bound that nearly always meets it, and plans.

The windows asked for begin at the bounds. A linear program over patterns (packing.py) says whether all loads may lie in
a window; where not, its prices exclude many at once, until the narrowest that is left may be one. Then dives look for a
plan in such a window, and where they fail, in wider ones. The dual of P||Cmax as bin packing is that of Hochbaum and
Shmoys 1987; that its linear program rounds up to the best makespan nearly always is known of cutting stock (Scheithauer
and Terno 1995).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from random import Random
from typing import ClassVar

import numpy as np

from evenlag.model.balance import CountRule
from evenlag.model.bounds import LoadBounds
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY
from evenlag.search.clock import in_steps_of
from evenlag.search.exact.knapsack import Items, Pattern
from evenlag.search.exact.packing import Counts, Packing
from evenlag.search.exact.window_prices import by_prices
from evenlag.search.exact.windows import Answer, Grid, Windows
from evenlag.search.incumbent import Bound, Candidate, Finding, Incumbent
from evenlag.search.patterns import exact_cover_is_a_plan
from evenlag.search.task import Task

MOST_CELLS = 20_000_000  # of one table of the dynamic programming: some tenths of a second, some 250 MB
CELLS_A_SECOND = 1_500_000  # of the time there is: more leaves too few of the hundred tables or so that it takes
CELLS_A_STEP = 100_000  # what one step of the clock takes
ROUNDED = 0.25  # of these, where lags have to be rounded: loads are finer than is of use long before time is short
MOST_VAIN = 8  # dives one after another that bring no better plan, where lags are rounded


@dataclass(frozen=True)
class ColumnGeneration:
    """Column generation as a stage."""

    name: str = "column generation"
    relaxes: ClassVar[bool] = True

    def applies(self, task: Task, best: Incumbent) -> bool:
        """Where moves are free, members alike, loads those of now, and lags small enough, or the gap for rounding."""
        if (
            task.moves_matter
            or not best.found
            or task.problem.futures
            or best.settled
            or not exact_cover_is_a_plan(task.rule)
            or not _counts_are_plain(task.rule)
        ):
            return False
        question = _Question(task, best)
        return not question.rounded or question.grid.loss + question.grid.unit <= best.value - best.base_bound

    def run(self, task: Task, best: Incumbent, share: float) -> Iterator[Finding]:
        """Exclude windows as far as the linear program does, then look for plans in those that are left."""
        question, rng = _Question(task, best), Random(task.seed)
        windows = question.grid.windows(task.bounds, best.value)
        stop = in_steps_of(1 + question.cells // CELLS_A_STEP, task.clock.stop(share))
        packing = Packing(question.items, question.members, question.counts, stop)
        answer = windows.narrow(lambda window: packing.check(window, windows))
        yield question.bound(windows, best, task.bounds)
        wider = vain = 0
        while answer is not Answer.STOPPED and not best.settled and not stop() and vain < MOST_VAIN:
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
            vain = vain + 1 if question.rounded and not better else 0
            widest = windows.width - windows.least_width - 1
            wider = 0 if better or wider >= widest else max(2 * wider, 1)


class _Question:
    """A group as items to be packed: lags in the greatest unit that all are multiples of, or rounded down to a coarser.

    Attributes
    ----------
    grid : Grid
    rounded : bool
        Whether lags are no multiples of the unit: tables would be too large.
    items : Items
    members : int
    counts : Counts or None
    cells : int
        The size of a table.
    """

    def __init__(self, task: Task, best: Incumbent) -> None:
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
        allowed = max(min(MOST_CELLS, CELLS_A_SECOND * task.clock.allowance()), 1.0)
        while True:
            self.grid = Grid(unit, held * (unit - whole), task.spread_matters)
            self.items = Items(*np.unique(lags // unit, return_counts=True))
            capacity = self.grid.largest(task.bounds, best.value)
            self.cells = self.items.cells(capacity, None if self.counts is None else self.counts.most)
            if self.cells <= allowed or unit > largest:
                break
            unit = whole * ceil(unit / whole * max(self.cells / (ROUNDED * allowed), 1.01))
        self.rounded = unit > whole

    def bound(self, windows: Windows, best: Incumbent, bounds: LoadBounds) -> Bound:
        """Return what is proven where these windows are left."""
        least = self.grid.bound(windows, best.value)
        return Bound(least, least, certificate=by_prices(windows, self.grid, bounds, least))

    def plan(self, packing: list[Pattern]) -> Plan:
        """Hand the partitions out."""
        order = np.argsort(self._problem.lags[self._places] // self.grid.unit, kind="stable")
        free = [part.tolist() for part in np.split(self._places[order], np.cumsum(self.items.demand)[:-1])]
        chosen = np.full(len(self._problem.lags), NOBODY, dtype=np.int32)
        for m, pattern in zip(self._active.tolist(), packing, strict=True):
            for k, times in pattern:
                for _ in range(times):
                    chosen[free[k].pop()] = m
        return Plan(self._problem, chosen)


def _counts_are_plain(rule: CountRule) -> bool:
    """Whether members hold any number of partitions, or one of two numbers that differ by at most one."""
    m = int(np.flatnonzero(rule.problem.active)[0])
    fewest, most = int(rule.total_bounds.lo[m]), int(rule.total_bounds.hi[m])
    return most - fewest <= 1 or (fewest == 0 and most >= int(rule.problem.assignable.sum()))
