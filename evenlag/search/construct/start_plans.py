"""Stages that give the search its first plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from evenlag.errors import EvenlagError
from evenlag.heuristics import HEURISTICS
from evenlag.model.objective import EVERY_TERM, Across, Objective, ObjectiveKind
from evenlag.model.problem import Problem
from evenlag.search.construct.fresh import fresh_plan, greedy, relabel
from evenlag.search.incumbent import Candidate, Exhausted, Finding, Incumbent, begin
from evenlag.search.stage import Stage, Step, run_round
from evenlag.search.task import Target, Task


@dataclass(frozen=True)
class Construct(Stage):
    """Fresh plan that ignores today's assignment, then renamed for few moves."""

    name: str = "construct"
    handles: ClassVar[frozenset[str]] = EVERY_TERM  # a plan that breaks a budget or the ceiling is rejected later

    def applies(self, _task: Task, _best: Incumbent) -> bool:
        """Return True: every group is supported."""
        return True

    def run(self, task: Task, _best: Incumbent) -> Iterator[Finding]:
        """Yield one plan."""
        yield Candidate(relabel(fresh_plan(task.rule), task.rule))


@dataclass(frozen=True)
class Baselines(Stage):
    """Published heuristics, unchanged.

    Attributes
    ----------
    only : sequence of str
        Names of the heuristics to try.
    largest : mapping of heuristic to partitions
        Most partitions for a heuristic. On larger problems it is slower than stages that find better plans.
    """

    only: Sequence[str] = tuple(HEURISTICS)
    largest: Mapping[str, int] = field(default_factory=lambda: {"swap-balance": 2_000, "variance-based": 2_000})
    name: str = "baselines"
    handles: ClassVar[frozenset[str]] = EVERY_TERM

    def applies(self, _task: Task, _best: Incumbent) -> bool:
        """Return True: every group is supported."""
        return True

    def run(self, task: Task, _best: Incumbent) -> Iterator[Finding]:
        """Yield the plan of each heuristic that is defined for the problem, even if no time is left.

        They take a few milliseconds, and no result may be worse than the best of their plans.
        """
        for name in self.only:
            if len(task.problem.lags) > self.largest.get(name, np.inf):
                continue
            try:
                plan = task.cache.plan(name)
            except EvenlagError:  # not defined for this problem
                continue
            yield Candidate(plan, name, fallback=True)


@dataclass(frozen=True)
class Greedy(Stage):
    """Plans that keep every count rule, for tasks where no baseline does."""

    name: str = "greedy"
    handles: ClassVar[frozenset[str]] = EVERY_TERM

    def applies(self, _task: Task, best: Incumbent) -> bool:
        """Return True if no baseline keeps the rule."""
        return not best.found

    def run(self, task: Task, _best: Incumbent) -> Iterator[Finding]:
        """Yield the plan with the fewest moves, and without a budget of moves a fresh one."""
        if task.has_owners:
            yield Candidate(task.fewest_moves_plan)
        if task.goal.max_moves is None or not task.has_owners:
            yield Candidate(greedy(task.rule))


# ---- a first plan under a ceiling ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ceiling(Stage):
    """Portfolio for the makespan alone, until a plan keeps the ceiling or none can.

    Attributes
    ----------
    steps : callable
        Returns that portfolio for a problem.
    """

    steps: Callable[[Problem], tuple[Step, ...]]
    name: str = "ceiling"
    handles: ClassVar[frozenset[str]] = EVERY_TERM

    def applies(self, task: Task, best: Incumbent) -> bool:
        """Return True if loads have a ceiling and no plan keeps it yet."""
        return task.goal.ceiling is not None and not best.found

    def run(self, task: Task, _best: Incumbent) -> Iterator[Finding]:
        """Yield the plan with the lowest makespan found, and Exhausted if no plan can keep the ceiling."""
        ceiling = task.goal.ceiling
        assert ceiling is not None
        goal = Objective(ObjectiveKind.MAKESPAN, max_moves=task.goal.max_moves, across=Across.WORST)
        target = Target(cutoff=ceiling + task.problem.load_unit)
        side = replace(task, goal=goal, clock=task.clock, target=target, tie_break=False)
        found = begin(Incumbent(side))
        run_round(side, found, self.steps(task.problem), side.clock.allowance())
        if found.found:
            yield Candidate(found.plan, found.method)
        if found.bound > ceiling:
            yield Exhausted()
