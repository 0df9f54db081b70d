"""The best plan where moves count, by patterns of low reduced costs: column generation finds the prices.

First the cheapest window that may hold a plan is found (move_patterns.py): a bound of the objective. Then dives look
for better plans: in some window of them the patterns of lowest reduced costs are joined, a few thousand at a time. In
the end the objective asked for rises from the bound, as in move_dp.py: for each number of moves the windows that are
left are put together, prices are found for all of them, the patterns listed that these leave (priced_options.py) and
joined (join_dp.py); where that is too much the windows are halved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil, floor
from random import Random

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.model.balance import CountRule
from evenlag.model.objective import Objective
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY
from evenlag.search.exact import mip, move_dp, move_patterns
from evenlag.search.exact.join_dp import Found, JoinDP
from evenlag.search.exact.member_options import MemberOptions
from evenlag.search.exact.move_patterns import MovePatterns, on_finer_grids
from evenlag.search.exact.plan_target import PlanTarget, plan_target
from evenlag.search.exact.priced_options import PricedOptions
from evenlag.search.exact.proof import TooManyError, findings
from evenlag.search.exact.windows import Answer, Window
from evenlag.search.incumbent import Bound, Candidate, Finding, Incumbent
from evenlag.search.task import Task

FEWEST_PARTITIONS = 36  # with fewer, move-dp has the best plan before the first bound is there
LEAST_SECONDS = 0.5  # with less there is no bound at the end
FULL_SECONDS = 2.0  # from so many seconds on as much may be listed as there may ever be, with less time less
DIVES = 0.4  # of the time for all, at most
BEAM = 3_000  # partial plans that dives go on with
MOST_VAIN = 4  # dives one after another that bring no better plan
FIRST = 0.02  # where the objective asked for begins, as a share of the way from the bound to the best one known


@dataclass(frozen=True)
class MoveColumns:
    """Column generation where moves count, as a stage."""

    name: str = "move columns"

    def applies(self, task: Task, best: Incumbent) -> bool:
        """Where moves count, loads are whole messages, and the group is not so small that all can be listed."""
        count = int(task.problem.assignable.sum())
        if count < FEWEST_PARTITIONS or (count + 1) * best.value >= move_patterns.LARGEST or not mip.fits(task.problem):
            return False
        return task.moves_matter and not best.settled and move_patterns.applies(task.rule)

    def run(self, task: Task, best: Incumbent, share: float) -> Iterator[Finding]:
        """Prove how good a plan can be, and look for it where what members may hold can be listed."""
        seconds, goal = share * task.clock.allowance(), task.goal
        if seconds < LEAST_SECONDS:
            return
        stop = task.clock.stop(share)
        price = min(floor(goal.stickiness), ceil(best.value))
        gap, patterns = best.value - best.bound, None
        for patterns in on_finer_grids(task.rule, task.bounds, best.value, gap, task.spread_matters, stop):
            if best.value - best.bound > patterns.resolution:
                yield Bound(patterns.bound(best.value, goal.max_moves, price))
            if best.settled:
                return
        if patterns is None or stop() or not members_decide(task.rule, goal):
            return
        size = min(seconds / FULL_SECONDS, 1.0)
        search = _Search(task, patterns, ceil(best.base_bound), stop, size)
        yield from self._dives(search, best, task.clock.stop(DIVES * share), Random(task.seed))
        if not best.settled:
            value = int(best.value)
            yield from findings(
                move_dp.deepened(task.problem, ceil(best.bound), value, search.look, stop, FIRST), task.clock
            )

    @staticmethod
    def _dives(search: _Search, best: Incumbent, stop: Callable[[], bool], rng: Random) -> Iterator[Finding]:
        """Look for better plans until some dives in a row bring none."""
        vain = 0
        while vain < MOST_VAIN and not best.settled and not stop():
            before = best.value
            plan = search.dive(int(best.value) - 1, rng)
            if plan is not None:
                yield Candidate(plan)
            vain = 0 if best.value < before else vain + 1


def members_decide(rule: CountRule, goal: Objective) -> bool:
    """Whether patterns that each member may hold are a plan, all owners are among them, and objectives are whole."""
    problem = rule.problem
    owners = problem.owner[problem.assignable & (problem.owner != NOBODY)]
    alone = rule.ranks is None and not rule.topic_distance and isinstance(goal.stickiness, int)
    return alone and bool(problem.active[owners].all())


class _Search:
    """Looks for the best plan up to an objective."""

    def __init__(self, task: Task, patterns: MovePatterns, least: int, stop: Callable[[], bool], size: float) -> None:
        self._task, self._patterns, self._least, self._stop, self._size = task, patterns, least, stop, size
        self._lags = task.problem.lags[task.problem.assignable].astype(np.int64)
        self._loads = floor(task.bounds.min_load_ub) if task.spread_matters else 0, ceil(task.bounds.max_load_lb)
        self._alike = move_dp.loads_and_moves_alone(task.rule, task.goal)
        active, price = np.flatnonzero(task.problem.active).tolist(), int(task.goal.stickiness)
        self._members = [MemberOptions(task.rule, m, self._lags, price, size) for m in active]

    def look(self, asked: int) -> Found | None:
        """Return the best plan with an objective of at most `asked`, or None if there is none.

        Raises
        ------
        TooManyError
            There is too much to list, or `stop` ended it.
        """
        target, numbers = self._target(asked)
        found: Found | None = None
        for moves in numbers:
            width, lows = self._open(target, moves)
            if len(lows):
                here = self._within(int(lows[0]), int(lows[-1]), width, replace(target, most_moves=moves))
                found = _better(found, here)
        return found

    def dive(self, asked: int, rng: Random) -> Plan | None:
        """Look for a plan with an objective of at most `asked` in one of the windows that may hold it."""
        target, numbers = self._target(asked)
        moves = [m for m in numbers if len(self._open(target, m)[1])]
        if not moves:
            return None
        chosen = rng.choice(moves)
        width, lows = self._open(target, chosen)
        low = int(rng.choice(lows.tolist()))
        window = Window(low, low + width)
        if self._patterns.solve(window) is Answer.STOPPED:
            return None
        target = replace(target, most_moves=chosen)
        options = self._options(target, window, whole=False)
        with suppress(TooManyError):
            found = JoinDP(options, self._stop, self._size, BEAM).best()
            return None if found is None else move_dp.plan_of(self._task.problem, found)
        return None

    def _target(self, asked: int) -> tuple[PlanTarget, range]:
        """Return the target for an objective, and the numbers of moves that are to be looked at each for itself."""
        task = self._task
        target = plan_target(task.rule, task.goal, self._loads, asked, self._least, self._lags)
        return target, range(0 if target.price else max(target.most_moves, 0), target.most_moves + 1)

    def _open(self, target: PlanTarget, moves: int) -> tuple[int, Whole]:
        """Return how wide windows are of plans with so many moves, and the low ends of those that may hold one."""
        width = self._patterns.grid.width(target.objective + 1 - target.price * moves) - 1
        return width, self._patterns.open_lows(width, moves)

    def _options(self, target: PlanTarget, window: Window, *, whole: bool) -> PricedOptions:
        return PricedOptions(
            self._members, self._patterns, target, window, self._stop, self._size, alike=self._alike, whole=whole
        )

    def _within(self, first: int, last: int, width: int, target: PlanTarget) -> Found | None:
        """Return the best plan with its loads in one of the windows that begin at these low ends."""
        window = Window(first, last + width)
        if self._patterns.solve(window) is Answer.STOPPED:
            raise TooManyError
        options = self._options(target, window, whole=True)
        try:
            return JoinDP(options, self._stop, self._size).best()
        except TooManyError:
            if first == last or self._stop():
                raise
        middle = (first + last) // 2
        return _better(self._within(first, middle, width, target), self._within(middle + 1, last, width, target))


def _better(one: Found | None, two: Found | None) -> Found | None:
    if one is None or two is None:
        return one or two
    return min(one, two, key=lambda found: found[0])
