"""Plans from what the linear program over patterns would use (move_patterns.py).

It uses several patterns of most members, a part of each. Members take one of theirs at random, those that it uses most
first (randomized rounding, Raghavan and Thompson 1987), as long as nobody has what is in it; what is left goes home. A
flow changes as little of that as counts ask for, as it does of what is owned (greedy.py). Such a plan makes about as
many moves as it may, and most of them are worth it: so a relocation towards the window begins with it, and often has
little to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil
from random import Random

import numpy as np

from evenlag.heuristics.arrays import owned_counts
from evenlag.model.balance import Balance, CountRule
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Index, Problem
from evenlag.search.construct.greedy import fewest_moves_plan
from evenlag.search.exact.column_pool import Used
from evenlag.search.exact.move_patterns import MovePatterns
from evenlag.search.exact.windows import LARGEST, Window
from evenlag.search.improve.exchange_moves import relocate
from evenlag.search.improve.local_search import local_search
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
