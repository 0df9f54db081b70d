"""Plans from what the linear program over patterns would use (move_patterns.py).

It uses several patterns of most members, a part of each. Members take one of theirs at random, those that it uses most
first (randomized rounding, Raghavan and Thompson 1987), as long as nobody has what is in it. What is left goes home, or
to whoever has room. Such a plan makes about as many moves as it may, and most of them are worth it: so a relocation
towards the window begins with it, and often has little to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil
from random import Random

import numpy as np

from evenlag.heuristics.arrays import owned_counts
from evenlag.model.balance import CountRule
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY
from evenlag.search.exact.move_patterns import MovePatterns, Used
from evenlag.search.exact.move_windows import LARGEST
from evenlag.search.exact.windows import Window
from evenlag.search.improve.local_search import local_search
from evenlag.search.improve.relocate import relocate
from evenlag.search.improve.relocation import Relocation
from evenlag.search.incumbent import Candidate, Finding, Incumbent
from evenlag.search.task import Task

VAIN, VAIN_COARSE = 12, 5  # plans in a row that bring nothing: on the finest grid, and on those before it
LEAST_LUCK = 0.3  # a pattern counts for so much of what the linear program uses of it, at least
UNLIKELY = 0.1  # how many patterns count for so little instead
NOISE, UNDONE = 0.5, (0.0, 0.2, 0.4)  # of relocations; all else is as in relocation.py


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
        start = rounded_plan(task.rule, patterns.used(window), rng)
        plan = None if start is None else _towards(start, window, patterns.grid.unit, task, best.moves_worth, stop, rng)
        if plan is not None:
            yield Candidate(plan)
        vain = 0 if best.value < before else vain + 1


def rounded_plan(rule: CountRule, used: list[Used], rng: Random) -> Plan | None:
    """Return a plan of such patterns, or None where counts do not come out right."""
    problem, filling = rule.problem, _Filling(rule)
    lacking = np.maximum(rule.total_bounds.lo - owned_counts(problem), 0)  # those who must take most come first
    luck = [UNLIKELY if rng.random() < UNLIKELY else rng.uniform(LEAST_LUCK, 1.0) for _ in used]
    served = set[int]()
    for at in sorted(range(len(used)), key=lambda at: (-lacking[used[at].member], -luck[at] * used[at].amount)):
        m, places = used[at].member, used[at].places
        if m not in served and (filling.member_of[places] == NOBODY).all():
            served.add(m)
            for place in places:
                filling.give(place, m)
    for place in filling.left():
        home = int(problem.owner[place])
        if home != NOBODY and (home not in served or not problem.lags[place]) and filling.has_room(place, home):
            filling.give(place, home)
    active = np.flatnonzero(problem.active).tolist()
    for place in sorted(filling.left(), key=lambda place: -int(problem.lags[place])):
        room = [m for m in active if filling.has_room(place, m)]
        if not room:
            return None
        filling.give(place, min(room, key=lambda m: (not filling.lacks(place, m), filling.loads[m])))
    return Plan(problem, filling.member_of) if rule.violation(filling.counts) is None else None


class _Filling:
    """A plan in the making, with the counts that a rule allows."""

    def __init__(self, rule: CountRule) -> None:
        problem = rule.problem
        self._problem, self._totals, self._topics = problem, rule.total_bounds, rule.topic_bounds
        self.member_of = np.full(len(problem.lags), NOBODY, dtype=np.int32)
        self.loads = [0] * len(problem.members)
        self.counts = np.zeros((len(problem.topics), len(problem.members)), dtype=np.int64)

    def left(self) -> list[int]:
        """Return the places that nobody has yet."""
        places: list[int] = np.flatnonzero((self.member_of == NOBODY) & self._problem.assignable).tolist()
        return places

    def give(self, place: int, m: int) -> None:
        """Let a member have a partition."""
        self.member_of[place] = m
        self.loads[m] += int(self._problem.lags[place])
        self.counts[self._problem.topic_of[place], m] += 1

    def has_room(self, place: int, m: int) -> bool:
        """Whether a member may have a partition too."""
        topic = self._problem.topic_of[place]
        room = self.counts[:, m].sum() < self._totals.hi[m]
        if self._topics is not None:
            room &= self.counts[topic, m] < self._topics.hi[topic, m]
        return bool(room and self._problem.allowed[topic, m] and self._problem.pins[place] in (m, NOBODY))

    def lacks(self, place: int, m: int) -> bool:
        """Whether a member has fewer partitions than it must have, of all or of this one's topic."""
        topic = self._problem.topic_of[place]
        lacks = self.counts[:, m].sum() < self._totals.lo[m]
        return bool(lacks or (self._topics is not None and self.counts[topic, m] < self._topics.lo[topic, m]))


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
