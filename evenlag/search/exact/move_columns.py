"""The best plan where moves count, by patterns of low reduced costs: column generation finds the prices.

First the cheapest window that may hold a plan is found, a bound of the objective (cheapest_window.py), and plans are
made of what the linear program uses (rounded_plans.py). Then the objective asked for rises from the bound, as in
move_dp.py: for each number of moves the windows that are left are put together, prices are found for all of them, the
patterns listed that these leave (column_enumeration.py) and joined (join_dp.py). If that does not end with the best
plan, plans are rounded once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, floor
from random import Random

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.model.backends import fits
from evenlag.model.balance import CountRule
from evenlag.model.certificate import searched
from evenlag.model.objective import Objective
from evenlag.search.exact import move_dp, move_patterns
from evenlag.search.exact.cheapest_window import cheapest_window
from evenlag.search.exact.column_enumeration import PricedOptions
from evenlag.search.exact.deepening import deepened, findings
from evenlag.search.exact.join_dp import Found, JoinDP
from evenlag.search.exact.move_dp import MovePlans
from evenlag.search.exact.move_patterns import MoveGrids, MovePatterns
from evenlag.search.exact.plan_target import PlanTarget
from evenlag.search.exact.rounded_plans import rounded_plans
from evenlag.search.exact.windows import LARGEST, Answer, Window
from evenlag.search.incumbent import Bound, Candidate, Finding, Incumbent
from evenlag.search.patterns import EnumerationLimitError
from evenlag.search.task import Task

FEWEST_PARTITIONS = 36  # with fewer, move-dp has the best plan before the first bound is there
LEAST_SECONDS = 0.5  # with less there is no bound at the end, unless something is known from before
FULL_SECONDS = 2.0  # from so many seconds on as much may be listed as there may ever be, with less time less
PROOF = 0.7  # of the time that is left: then plans are looked for in other ways
FIRST = 0.05  # where the objective asked for begins, as a share of the way from the bound to the best one known


@dataclass(frozen=True)
class MoveColumns:
    """Column generation where moves count, as a stage."""

    name: str = "move columns"

    def applies(self, task: Task, best: Incumbent) -> bool:
        """Where moves count, loads are whole messages, and the group is not so small that all can be listed."""
        count = int(task.problem.assignable.sum())
        if count < FEWEST_PARTITIONS or (count + 1) * best.value >= LARGEST or not fits(task.problem):
            return False
        return task.moves_matter and not best.settled and move_patterns.applies(task.rule)

    def run(self, task: Task, best: Incumbent, share: float) -> Iterator[Finding]:
        """Prove how good a plan can be, and look for it where what members may hold can be listed."""
        seconds, goal = share * task.clock.allowance(), task.goal
        grids = task.cache.kept(MoveGrids, task.rule, task.spread_matters)
        if seconds < LEAST_SECONDS and not grids.begun:
            return
        stop = task.clock.stop(share)
        price = min(floor(goal.stickiness), ceil(best.value))
        gap, patterns, rng = best.value - best.bound, None, Random(task.seed)
        for patterns in grids.up_to(best.value, gap, stop):
            if best.value - best.bound > patterns.resolution:
                cheapest = cheapest_window(patterns, best.value, goal.max_moves, price)
                yield Bound(cheapest, certificate=searched(task.bounds))
                yield from rounded_plans(task, best, patterns, price, stop, rng)
            if best.settled:
                return
        if patterns is None or stop() or not members_decide(task.rule, goal):
            return
        size = min(seconds / FULL_SECONDS, 1.0)
        plans = MovePlans(task.rule, goal, task.bounds, stop, size, ceil(best.base_bound), reduced=False)
        search, rests_on = _Search(plans, patterns), best.authors
        proof = deepened(ceil(best.bound), int(best.value), search.look, task.clock.stop(PROOF * share), FIRST)
        if proof.plan is None and search.found is not None:
            yield Candidate(search.found[1])
        yield from findings(proof, task.clock, task.bounds, rests_on)
        yield from rounded_plans(task, best, patterns, price, stop, rng)


def members_decide(rule: CountRule, goal: Objective) -> bool:
    """Whether patterns that each member may hold are a plan, and objectives are whole."""
    return rule.ranks is None and not rule.topic_distance and isinstance(goal.stickiness, int)


class _Search:
    """Looks for the best plan up to an objective."""

    def __init__(self, plans: MovePlans, patterns: MovePatterns) -> None:
        self._plans, self._patterns, self._stop, self._size = plans, patterns, plans.stop, plans.size
        self.found: Found | None = None  # the best one so far
        self._alike = move_dp.loads_and_moves_alone(plans.rule, plans.goal)

    def look(self, asked: int) -> Found | None:
        """Return the best plan with an objective of at most `asked`, or None if there is none.

        Raises
        ------
        EnumerationLimitError
            There is too much to list, or `stop` ended it.
        """
        target, numbers = self._target(asked)
        found: Found | None = None
        for moves in numbers:
            if moves > target.most_moves:
                break
            width, lows = self._open(target, moves)
            here = self._within(lows, width, replace(target, most_moves=moves)) if len(lows) else None
            if here is not None:
                found, (target, _) = here, self._target(here[0] - 1)
        return found

    def _target(self, asked: int) -> tuple[PlanTarget, range]:
        """Return the target for an objective, and the numbers of moves that are to be looked at each for itself."""
        target = self._plans.target(asked)
        return target, range(0 if target.price else max(target.most_moves, 0), target.most_moves + 1)

    def _open(self, target: PlanTarget, moves: int) -> tuple[int, Whole]:
        """Return how wide windows are of plans with so many moves, and the low ends of those that may hold one."""
        moves += target.lost
        width = self._patterns.grid.width(target.objective + 1 - target.price * moves) - 1
        return width, self._patterns.windows.open_lows(width, moves)

    def _within(self, lows: Whole, width: int, target: PlanTarget) -> Found | None:
        """Return the best plan with its loads in one of the windows that begin at these low ends."""
        if self._patterns.solve(_around(lows, width), target.all_moves, fully=True) is Answer.STOPPED:
            raise EnumerationLimitError
        lows = lows[np.isin(lows, self._patterns.windows.open_lows(width, target.all_moves))]
        if not len(lows):
            return None
        members, window = self._plans.members, _around(lows, width)
        options = PricedOptions(members, self._patterns, target, window, self._stop, self._size, alike=self._alike)
        found = JoinDP(options, self._stop, self._size).best()
        if found is not None and (self.found is None or found[0] < self.found[0]):
            self.found = found
        return found


def _around(lows: Whole, width: int) -> Window:
    """Return the window that holds all those which begin at these low ends."""
    return Window(int(lows[0]), int(lows[-1]) + width)
