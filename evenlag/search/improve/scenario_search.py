"""Plans for several scenarios at once, by relocation and local search: their state knows the loads in every scenario.

Distances to the mean load of each scenario fall first, from every start. From the best plan it goes on towards windows
a little narrower than its loads lie in, after a few exchanges at random, or with some of its moves undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, floor
from random import Random
from typing import Any

import numpy as np

from evenlag.model.objective import Across, Objective, ObjectiveKind
from evenlag.model.plan import Plan
from evenlag.search.construct.fresh import fresh_plan, relabel
from evenlag.search.improve.exchange_moves import relocate
from evenlag.search.improve.exchanges import ALL, Exchanges
from evenlag.search.improve.local_search import local_search
from evenlag.search.improve.relocation import Relocation
from evenlag.search.improve.state import SearchState
from evenlag.search.incumbent import Candidate, Finding, Incumbent
from evenlag.search.task import Task

DISTURBED = 0.7  # in how many of the plans that are gone on from a few exchanges are made at random
NARROWER = (1, 3, 10, 30, 100, 300)  # by how much windows are narrower than loads lie, in thousandths
UNDONE, GREEDS, NOISE = (0.0, *Relocation.undone), Relocation.greeds, Relocation.noise[1]


@dataclass(frozen=True)
class Scenarios:
    """Plans for several scenarios at once.

    Attributes
    ----------
    again : bool
        Go on from the best plan, drawing anew, for the time that is left.
    most_idle : int
        Draws that may bring nothing before it is given up.
    """

    again: bool = False
    most_idle: int = 300
    name: str = "scenarios"

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """For problems with scenarios, where there are two members to exchange anything."""
        return bool(task.problem.futures) and int(task.problem.active.sum()) > 1

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Offer what becomes of each start; again: of the best plan, disturbed or with some of its moves undone."""
        stop, rng = task.clock.stop(), Random(task.drawn)
        if not self.again:
            means = [future.mean_load for future in task.problem.futures]
            for start in self._starts(task, best):
                if stop() or best.settled:
                    return
                yield Candidate(start)
                yield Candidate(_bettered(start, task, best, (means, means), stop, task.seed))
            return
        yield Candidate(local_search(best.plan, task.rule, task.goal, stop))
        idle = 0
        while idle < self.most_idle and not stop() and not best.settled:
            before, idle = best.value, idle + 1
            yield Candidate(self._drawn(task, best, rng, stop))
            if best.value < before:
                idle = 0

    @staticmethod
    def _drawn(task: Task, best: Incumbent, rng: Random, stop: Callable[[], bool]) -> Plan:
        """Return what becomes of the best plan by a draw."""
        seed, start = rng.randrange(2**31), best.plan
        how: dict[str, Any] = {"noise": NOISE, "careful": rng.random() < 0.5}
        if task.moves_matter:
            how |= {"undone": rng.choice(UNDONE), "greed": rng.choice(GREEDS)}
        elif rng.random() < DISTURBED:
            start = disturbed(start, task, seed, rng.choice((1, 1, 2, 3, 1 + int(task.problem.active.sum()) // 10)))
        return _bettered(start, task, best, _narrower(best.plan, task.goal, rng), stop, seed, **how)

    @staticmethod
    def _starts(task: Task, best: Incumbent) -> Iterator[Plan]:
        """What moves least, where moves matter; a fresh plan for the mean of the scenarios; the best plan so far."""
        problem = task.problem
        if task.moves_matter:
            yield task.fewest_moves_plan
        weights = np.array([float(weight) for weight in problem.scenario_weights])
        mean = (weights / weights.sum()) @ problem.scenario_lags.astype(np.float64)
        fresh = fresh_plan(task.rule.at(problem.at(mean.astype(np.int64), problem.owner)))
        fresh = relabel(fresh, task.rule)
        fresh = Plan(problem, fresh.member_of.copy())
        if task.goal.broken(fresh) is None and task.goal.stickiness * fresh.moves < best.value:
            yield fresh
        yield best.plan


def _bettered(
    start: Plan, task: Task, best: Incumbent, window: tuple[Any, Any], stop: Callable[[], bool], seed: int, **how: Any
) -> Plan:
    """Return what relocation and local search make of a plan."""
    goal = task.goal
    how.setdefault("greed", float(task.moves_matter))
    plans = relocate(start, task.rule, window, stop, seed, most_moves=best.moves_worth, goal=goal, **how)
    kept = [plan for plan in plans if goal.broken(plan) is None] or [best.plan]
    return local_search(min(kept, key=goal.value), task.rule, goal, stop)


def disturbed(plan: Plan, task: Task, seed: int, exchanges: int) -> Plan:
    """Return a plan with so many exchanges of pairs of members, drawn at random of those that the rule allows."""
    state = SearchState(plan, task.rule, (0, 0), seed, goal=task.goal)
    for _ in range(exchanges):
        me, other = state.rng.permutation(state.active)[:2].tolist()
        table = Exchanges(state, me, np.array([other]), ALL, 0)
        rows, columns = np.nonzero(table.fits)
        if len(rows):
            at = int(state.rng.integers(len(rows)))
            state.exchange(me, other, int(table.ours[rows[at]]), int(table.theirs[columns[at]]))
    return state.plan()


def _narrower(plan: Plan, goal: Objective, rng: Random) -> tuple[list[int], list[int]]:
    """Return windows for each scenario a little narrower than the plan's loads lie in, in messages.

    Where the worst scenario counts, those of the others may be as wide as its.
    """
    values = [goal.measured(each) for each in plan.in_scenarios]
    lows, highs = [], []
    for each, value in zip(plan.in_scenarios, values, strict=True):
        width = int((max(values) if goal.across == Across.WORST else value) * (1000 - rng.choice(NARROWER)) // 1000)
        low, high = floor(each.makespan - each.spread), ceil(each.makespan)
        if goal.kind != ObjectiveKind.SPREAD:
            low = 0
        elif width >= high - low:
            low -= (width - (high - low)) // 2
        else:
            low = rng.randint(low, high - width)
        lows.append(low)
        highs.append(low + width)
    return lows, highs
