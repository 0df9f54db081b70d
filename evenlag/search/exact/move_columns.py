"""The best plan where moves count, by patterns of low reduced costs: column generation finds the prices.

First the cheapest window that may hold a plan is found, a bound of the objective (move_patterns.py), and plans are
made of what the linear program uses. Then the objective asked for rises from the bound, as in move_dp.py: for each
number of moves the windows that are left are put together, prices are found for all of them, the patterns listed that
these leave (column_enumeration.py) and joined (join_dp.py). If that does not end with the best plan, plans are rounded
once more.

The linear program uses several patterns of most members, a part of each. Members take one of theirs at random, those
that it uses most first (randomized rounding, Raghavan and Thompson 1987), as long as nobody has what is in it; what is
left goes home. A flow changes as little of that as counts ask for, as it does of what is owned (greedy.py). Such a plan
makes about as many moves as it may, and most of them are worth it: so a relocation towards the window begins with it,
and often has little to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import ceil, floor
from random import Random

import numpy as np

from evenlag.heuristics.arrays import owned_counts
from evenlag.model.arrays import Whole
from evenlag.model.backends import fits
from evenlag.model.balance import Balance, CountRule
from evenlag.model.certificate import searched
from evenlag.model.objective import Objective
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Index, Problem
from evenlag.search.construct.greedy import fewest_moves_plan
from evenlag.search.exact import move_dp, move_patterns
from evenlag.search.exact.column_enumeration import PricedOptions
from evenlag.search.exact.column_pool import Used
from evenlag.search.exact.deepening import PlanTarget, deepened, findings
from evenlag.search.exact.join_dp import Found, JoinDP
from evenlag.search.exact.move_dp import MovePlans
from evenlag.search.exact.move_patterns import MoveGrids, MovePatterns, cheapest_window
from evenlag.search.exact.windows import LARGEST, Answer, Window
from evenlag.search.improve.exchange_moves import relocate
from evenlag.search.improve.local_search import local_search
from evenlag.search.improve.relocation import Relocation
from evenlag.search.incumbent import Bound, Candidate, Finding, Incumbent
from evenlag.search.patterns import EnumerationLimitError
from evenlag.search.task import Task

FEWEST_PARTITIONS = 36  # with fewer, move-dp has the best plan before the first bound is there
LEAST_SECONDS = 0.2  # with less there is no bound at the end, unless something is known from before
FULL_SECONDS = 2.0  # from so many seconds on as much may be listed as there may ever be, with less time less
PROOF = 0.7  # of the time that is left: then plans are looked for in other ways
FIRST = 0.05  # where the objective asked for begins, as a share of the way from the bound to the best one known

VAIN, VAIN_COARSE = 12, 5  # plans in a row that bring nothing: on the finest grid, and on those before it
LEAST_LUCK = 0.3  # a pattern counts for so much of what the linear program uses of it, at least
UNLIKELY = 0.1  # how many patterns count for so little instead
NOISE, UNDONE = 0.5, (0.0, 0.2, 0.4)  # of relocations; all else is as in relocation.py


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

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Prove how good a plan can be, and look for it where what members may hold can be listed."""
        seconds, goal = task.clock.allowance(), task.goal
        grids = task.cache.kept(MoveGrids, task.rule, task.spread_matters)
        if seconds < LEAST_SECONDS and not grids.begun and task.clock.ended():
            return
        stop = task.clock.stop()
        price = min(floor(goal.stickiness), ceil(best.value))
        gap, patterns, rng = best.value - best.bound, None, Random(task.drawn)
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
        proof = deepened(ceil(best.bound), int(best.value), search.look, task.clock.stop(PROOF), FIRST)
        if proof.stopped != "proof" and size < 1:
            task.clock.ended()
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


def rounded_plans(
    task: Task, best: Incumbent, patterns: MovePatterns, price: int, stop: Callable[[], bool], rng: Random
) -> Iterator[Finding]:
    """Offer plans with loads in windows that better ones may have, until some in a row bring nothing.

    The price of a move is in whole messages, as for `cheapest_window`.
    """
    vain = 0
    while vain < (VAIN if patterns.finest else VAIN_COARSE) and not best.settled and not stop():
        costs = patterns.windows.costs(task.goal.max_moves, price)
        least, before = int(costs.min(initial=LARGEST)), best.value
        if least >= before:
            return
        _, window, _ = patterns.windows.widest(costs, rng.randint(least, ceil(before) - 1), patterns.mean)
        start = rounded_plan(task.rule, patterns.columns.used(window), rng)
        plan = _towards(start, window, patterns.grid.unit, task, best.moves_worth, stop, rng)
        if plan is not None:
            yield Candidate(plan)
        vain = 0 if best.value < before else vain + 1


def rounded_plan(rule: CountRule, used: list[Used], rng: Random) -> Plan:
    """Return a plan of such patterns, one of each member, as far as counts allow."""
    problem = rule.problem
    lacking = np.maximum(rule.total_bounds.lo - owned_counts(problem), 0)  # those who must take most come first
    luck = [UNLIKELY if rng.random() < UNLIKELY else rng.uniform(LEAST_LUCK, 1.0) for _ in used]
    wish, served = np.full_like(problem.owner, NOBODY), np.zeros(len(problem.members), dtype=bool)
    for at in sorted(range(len(used)), key=lambda at: (-lacking[used[at].member], -luck[at] * used[at].amount)):
        m, places = used[at].member, used[at].places
        if not served[m] and (wish[places] == NOBODY).all():
            wish[places], served[m] = m, True
    home = (wish == NOBODY) & (problem.owner != NOBODY)
    home &= ~served[problem.owner] | (problem.lags == 0)
    wish[home] = problem.owner[home]
    if rule.balance == Balance.NONE:  # else counts say who takes what is left
        _give_to_lightest(problem, wish)
    return Plan(problem, fewest_moves_plan(rule.at(problem.at(problem.lags, wish))).member_of)


def _give_to_lightest(problem: Problem, wish: Index) -> None:
    """Let each partition that nobody has go to whoever has least, the biggest one first."""
    loads = Plan(problem, wish.copy()).loads
    left = np.flatnonzero((wish == NOBODY) & problem.assignable)
    for place in left[np.argsort(-problem.lags[left], kind="stable")].tolist():
        takers = np.flatnonzero(problem.allowed[problem.topic_of[place]])
        wish[place] = takers[loads[takers].argmin()]
        loads[wish[place]] += problem.lags[place]


def _towards(
    start: Plan, window: Window, unit: int, task: Task, most: int | None, stop: Callable[[], bool], rng: Random
) -> Plan | None:
    """Return the best plan, with at most so many moves, of a relocation towards a window and local search after it."""
    loads = window.low * unit, (window.high + 1) * unit
    plans = relocate(
        start, task.rule, loads, stop, rng.randrange(2**31),
        most_moves=most, greed=rng.choice(Relocation.greeds), noise=NOISE, undone=rng.choice(UNDONE),
        careful=rng.random() < Relocation.careful,
    )  # fmt: skip
    few = [plan for plan in plans if most is None or plan.moves <= most]
    if not few:
        return None
    polish = task.clock.stop(Relocation.polish_share)
    return local_search(min(few, key=task.goal.value), task.rule, task.goal, polish)
