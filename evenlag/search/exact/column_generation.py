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
from math import ceil, gcd
from random import Random

import numpy as np

from evenlag.model.balance import CountRule
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY
from evenlag.search.clock import in_steps_of
from evenlag.search.exact.knapsack import Items, Pattern
from evenlag.search.exact.packing import Answer, Counts, Packing
from evenlag.search.exact.patterns import exact_cover_is_a_plan
from evenlag.search.exact.windows import Windows
from evenlag.search.incumbent import Bound, Candidate, Finding, Incumbent
from evenlag.search.task import Task

MOST_CELLS = 20_000_000  # of one table of the dynamic programming: some tenths of a second, some 250 MB
CELLS_A_SECOND = 1_500_000  # of the time there is: more leaves too few of the hundred tables or so that it takes
CELLS_A_STEP = 100_000  # what one step of the clock takes


@dataclass(frozen=True)
class ColumnGeneration:
    """Column generation as a stage."""

    name: str = "column generation"

    def applies(self, task: Task, best: Incumbent) -> bool:
        """Where moves are free, members alike, and lags small enough for a table of loads."""
        if (
            task.moves_matter
            or best.settled
            or not exact_cover_is_a_plan(task.rule)
            or not _counts_are_plain(task.rule)
        ):
            return False
        most = min(MOST_CELLS, CELLS_A_SECOND * task.clock.allowance())
        question = _Question(task.rule)
        return question.cells(question.windows(task, best).largest) <= most

    def run(self, task: Task, best: Incumbent, share: float) -> Iterator[Finding]:
        """Exclude windows as far as the linear program does, then look for plans in those that are left."""
        question, rng = _Question(task.rule), Random(task.seed)
        unit, windows = question.unit, question.windows(task, best)
        stop = in_steps_of(1 + question.cells(windows.largest) // CELLS_A_STEP, task.clock.stop(share))
        packing = Packing(question.items, question.members, question.counts, stop)
        answer = packing.narrow(windows)
        yield _bound(windows, unit)
        wider = 0
        while answer is not Answer.STOPPED and not best.settled and not stop():
            window = windows.draw(wider, rng)
            if window is None:
                break
            answer = packing.check(window, windows)
            if answer is Answer.EXCLUDED:
                yield _bound(windows, unit)
            if answer is not Answer.FITS:
                continue
            found = packing.dive(window, rng)
            if found is not None:
                yield Candidate(question.plan(found))
                windows.width = int(best.value) // unit
            widest = windows.width - windows.least_width - 1
            wider = 0 if found is not None or wider >= widest else max(2 * wider, 1)


def _bound(windows: Windows, unit: int) -> Bound:
    least = windows.least_width * unit
    return Bound(least, least)


class _Question:
    """A group as items to be packed, in the greatest unit that all lags are multiples of.

    Attributes
    ----------
    unit : int
        Messages.
    items : Items
    members : int
    counts : Counts or None
    """

    def __init__(self, rule: CountRule) -> None:
        problem = self._problem = rule.problem
        self._active = np.flatnonzero(problem.active)
        self._places = np.flatnonzero(problem.assignable)
        lags = problem.lags[self._places].astype(np.int64)
        self.unit = gcd(*lags.tolist()) or 1
        different, self._kind, demand = np.unique(lags // self.unit, return_inverse=True, return_counts=True)
        self.items, self.members = Items(different, demand), len(self._active)
        fewest, most = (int(bound[self._active[0]]) for bound in (rule.total_bounds.lo, rule.total_bounds.hi))
        extra = len(lags) - self.members * fewest if most > fewest else 0
        self.counts = Counts(fewest, extra) if most < len(lags) else None

    def windows(self, task: Task, best: Incumbent) -> Windows:
        """Return the windows that better plans can have, as far as the bounds tell."""
        width, high = int(best.value) // self.unit, ceil(task.bounds.max_load_lb / self.unit)
        if not task.spread_matters:
            return Windows(0, 0, high, width)
        last = int(task.bounds.min_load_ub // self.unit)
        return Windows(max(high - width + 1, 0), last, high, width)

    def cells(self, capacity: int) -> int:
        """Return the size of a table of loads up to this one."""
        return self.items.cells(capacity, None if self.counts is None else self.counts.most)

    def plan(self, packing: list[Pattern]) -> Plan:
        """Hand the partitions out."""
        order = np.argsort(self._kind, kind="stable")
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
