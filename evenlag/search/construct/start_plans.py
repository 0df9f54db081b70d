"""The stages that give the search something to start from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from evenlag.errors import EvenlagError
from evenlag.heuristics import HEURISTICS
from evenlag.model.objective import EVERY_TERM, Objective, ObjectiveKind
from evenlag.search.construct.fresh import fresh_plan, greedy, relabel
from evenlag.search.incumbent import Candidate, Exhausted, Finding, Incumbent, begin
from evenlag.search.stage import Step, run_round
from evenlag.search.task import Target, Task


@dataclass(frozen=True)
class Construct:
    """A plan from nothing."""

    name: str = "construct"
    handles: ClassVar[frozenset[str]] = EVERY_TERM  # plans may break a budget or the ceiling: then they do not count

    def applies(self, _task: Task, _best: Incumbent) -> bool:
        """For every group."""
        return True

    def run(self, task: Task, _best: Incumbent) -> Iterator[Finding]:
        """Offer one plan."""
        yield Candidate(relabel(fresh_plan(task.rule), task.rule))


@dataclass(frozen=True)
class Baselines:
    """The published heuristics, as they are.

    Attributes
    ----------
    only : sequence of str
        Which of them.
    largest : mapping of heuristic to partitions
        Beyond which it takes longer than stages that do more.
    """

    only: Sequence[str] = tuple(HEURISTICS)
    largest: Mapping[str, int] = field(default_factory=lambda: {"swap-balance": 2_000})
    name: str = "baselines"
    handles: ClassVar[frozenset[str]] = EVERY_TERM

    def applies(self, _task: Task, _best: Incumbent) -> bool:
        """For every group."""
        return True

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Offer each that is defined for the problem."""
        for name in self.only:
            if best.found and task.clock.passed():
                return
            if len(task.problem.lags) > self.largest.get(name, np.inf):
                continue
            try:
                plan = task.cache.plan(name)
            except EvenlagError:  # not defined for this problem, so no baseline of it
                continue
            yield Candidate(plan, name, fallback=True)


@dataclass(frozen=True)
class Greedy:
    """Plans that keep every rule, where no baseline does."""

    name: str = "greedy"
    handles: ClassVar[frozenset[str]] = EVERY_TERM

    def applies(self, _task: Task, best: Incumbent) -> bool:
        """Where no baseline keeps the rule."""
        return not best.found

    def run(self, task: Task, _best: Incumbent) -> Iterator[Finding]:
        """Offer the plan with the fewest moves, and a fresh one where the budget of moves allows it."""
        if task.has_owners:
            yield Candidate(task.fewest_moves_plan)
        if task.goal.max_moves is None or not task.has_owners:
            yield Candidate(greedy(task.rule))


# ---- a first plan under a ceiling ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ceiling:
    """The portfolio for the makespan alone, until a plan keeps the ceiling or none can.

    Attributes
    ----------
    steps : callable
        Gives that portfolio.
    """

    steps: Callable[[], tuple[Step, ...]]
    name: str = "ceiling"
    handles: ClassVar[frozenset[str]] = EVERY_TERM

    def applies(self, task: Task, best: Incumbent) -> bool:
        """Where loads have a ceiling and no plan keeps it yet."""
        return task.goal.ceiling is not None and not best.found and not task.problem.futures

    def run(self, task: Task, _best: Incumbent) -> Iterator[Finding]:
        """Offer a plan that keeps the ceiling; where none can, all plans have been seen."""
        ceiling = task.goal.ceiling
        assert ceiling is not None
        goal = Objective(ObjectiveKind.MAKESPAN, max_moves=task.goal.max_moves, across=task.goal.across)
        target = Target(cutoff=ceiling + task.problem.load_unit)
        side = replace(task, goal=goal, clock=task.clock, target=target, tie_break=False)
        found = begin(Incumbent(side))
        run_round(side, found, self.steps(), side.clock.allowance(), set())
        yield Candidate(found.plan, found.method)
        if found.bound > ceiling:
            yield Exhausted()
