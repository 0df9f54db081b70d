"""Relocation for several scenarios at once, whose loads the state keeps.

First, every start descends towards the mean load of each scenario. Then the best plan descends towards windows slightly
narrower than its own loads, after a few random exchanges or with some of its moves undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import ceil, floor
from random import Random
from typing import Any

import numpy as np

from evenlag.model.objective import Across, Objective, ObjectiveKind
from evenlag.model.plan import Plan
from evenlag.search.construct.fresh import fresh_plan, relabel
from evenlag.search.improve.exchanges import ALL, Exchanges
from evenlag.search.improve.local_search import local_search
from evenlag.search.improve.relocation import Relocation, Way, relocate
from evenlag.search.improve.state import SearchState
from evenlag.search.incumbent import Candidate, Finding, Incumbent
from evenlag.search.stage import Stage
from evenlag.search.task import Task


@dataclass(frozen=True)
class Scenarios(Stage):
    """Relocation for several scenarios at once.

    Attributes
    ----------
    again : bool
        Go on from the best plan with new random draws, for the time left.
    most_idle : int
        Draws without a better plan before the stage gives up.
    perturbed : float
        Share of starts with a few random exchanges, if moves cost nothing.
    narrower : tuple of int
        Reductions of the target windows compared with the loads, in thousandths; one is drawn for each.
    undone, greeds : tuple of float
        Values of `Way` if moves cost something; one is drawn.
    """

    again: bool = False
    most_idle: int = 300
    perturbed: float = 0.7
    narrower: tuple[int, ...] = (1, 3, 10, 30, 100, 300)
    undone: tuple[float, ...] = (0.0, *Relocation.undone)
    greeds: tuple[float, ...] = Relocation.greeds
    noise: float = Relocation.noise[1]
    name: str = "scenarios"

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Return True for problems with scenarios and at least two active members."""
        return bool(task.problem.futures) and int(task.problem.active.sum()) > 1

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Yield the descent from each start; with `again`, from the best plan, perturbed or with some moves undone."""
        stop, rng = task.clock.stop(), Random(task.drawn)
        if not self.again:
            means = [future.mean_load for future in task.problem.futures]
            for start in self._starts(task, best):
                if stop() or best.settled:
                    return
                yield Candidate(start)
                way = Way(float(task.moves_matter))
                yield Candidate(_improved(start, task, best, (means, means), stop, task.seed, way))
            return
        yield Candidate(local_search(best.plan, task.rule, task.goal, stop))
        idle = 0
        while idle < self.most_idle and not stop() and not best.settled:
            before, idle = best.value, idle + 1
            yield Candidate(self._drawn(task, best, rng, stop))
            if best.value < before:
                idle = 0

    def _drawn(self, task: Task, best: Incumbent, rng: Random, stop: Callable[[], bool]) -> Plan:
        """Return the descent from the best plan with randomly drawn parameters."""
        seed, start = rng.randrange(2**31), best.plan
        way = Way(float(task.moves_matter), self.noise, careful=rng.random() < 0.5)
        if task.moves_matter:
            way = replace(way, undone=rng.choice(self.undone), greed=rng.choice(self.greeds))
        elif rng.random() < self.perturbed:
            start = perturbed(start, task, seed, rng.choice((1, 1, 2, 3, 1 + int(task.problem.active.sum()) // 10)))
        window = _narrower(best.plan, task.goal, rng, self.narrower)
        return _improved(start, task, best, window, stop, seed, way)

    @staticmethod
    def _starts(task: Task, best: Incumbent) -> Iterator[Plan]:
        """Yield the plan with the fewest moves (if moves matter), a fresh one for the mean scenario, and the best."""
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


def _improved(
    start: Plan, task: Task, best: Incumbent, window: tuple[Any, Any], stop: Callable[[], bool], seed: int, way: Way
) -> Plan:
    """Return the plan after relocation and local search."""
    goal = task.goal
    plans = relocate(start, task.rule, window, stop, seed, way, most_moves=best.moves_worth, goal=goal)
    kept = [plan for plan in plans if goal.broken(plan) is None] or [best.plan]
    return local_search(min(kept, key=goal.value), task.rule, goal, stop)


def perturbed(plan: Plan, task: Task, seed: int, exchanges: int) -> Plan:
    """Return the plan after up to `exchanges` random exchanges of two members; each keeps the rule."""
    state = SearchState(plan, task.rule, (0, 0), seed, goal=task.goal)
    for _ in range(exchanges):
        me, other = state.rng.permutation(state.active)[:2].tolist()
        table = Exchanges(state, me, np.array([other]), ALL, 0)
        rows, columns = np.nonzero(table.fits)
        if len(rows):
            at = int(state.rng.integers(len(rows)))
            state.exchange(me, other, int(table.ours[rows[at]]), int(table.theirs[columns[at]]))
    return state.plan()


def _narrower(plan: Plan, goal: Objective, rng: Random, thousandths: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Return windows for each scenario slightly narrower than the range of the plan's loads, in messages.

    If the worst scenario counts, the windows of the others may be as wide as its window.
    """
    values = [goal.measured(each) for each in plan.in_scenarios]
    lows, highs = [], []
    for each, value in zip(plan.in_scenarios, values, strict=True):
        width = int((max(values) if goal.across == Across.WORST else value) * (1000 - rng.choice(thousandths)) // 1000)
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
