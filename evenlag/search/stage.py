"""What a stage is, and how stages are run one after another under one clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from evenlag.model.objective import LOADLESS
from evenlag.search.incumbent import Bound, Candidate, Exhausted, Finding, Incumbent
from evenlag.search.task import Task

Condition = Callable[[Task, Incumbent], bool]
Share = float | Callable[[Task, Incumbent], float]


class Stage(Protocol):
    """A way to find better plans, or to prove more of them.

    A stage that knows terms of the objective beyond loads and moves has them in `handles`, a frozenset of
    `Objective.terms`. Where it does not know one that the task has it is left out; with `relaxes = True` it runs
    without these terms, and only what it proves counts.
    """

    @property
    def name(self) -> str:
        """What `Result.method` says of its plans."""

    def applies(self, task: Task, best: Incumbent, /) -> bool:
        """Say whether it can do anything for such a task, as things stand."""

    def run(self, task: Task, best: Incumbent, share: float, /) -> Iterator[Finding]:
        """Yield plans, bounds and notes as they are found, within a share of the time (or work) that is left.

        `best` is brought up to date before the next one is asked for, and is only to be read. A plan that comes of
        `best.plan` passes its `from_current` on.
        """


def always(_task: Task, _best: Incumbent) -> bool:
    """No condition."""
    return True


@dataclass(frozen=True)
class Step:
    """A stage in its place in the portfolio.

    Attributes
    ----------
    stage : Stage
    share : float or callable
        Of the time left; with 0 it does not run.
    when : callable
        What is asked of the task and the incumbent here, beside what the stage itself asks.
    though_settled : bool
        Whether it runs though the task is settled already.
    """

    stage: Stage
    share: Share = 1.0
    when: Condition = always
    though_settled: bool = False


def _covered(stage: Stage, task: Task, best: Incumbent) -> tuple[Task, Incumbent] | None:
    """Return the task and the incumbent that a stage works on: without the terms that it does not know, or None."""
    unknown: frozenset[str] = task.goal.terms - getattr(stage, "handles", frozenset())
    if not unknown:
        return task, best
    if not getattr(stage, "relaxes", False) or LOADLESS in unknown:
        return None
    relaxed = replace(task, goal=task.goal.without(unknown))
    side = Incumbent(relaxed)
    if best.found:
        side.take(Candidate(best.plan, best.method), "start")
    side.take(Bound(best.base_bound, best.base_bound, best.moves_bound, by=best.bound_by), "start")
    side.seconds = best.seconds
    return relaxed, side


def run_steps(task: Task, best: Incumbent, steps: tuple[Step, ...]) -> Incumbent:
    """Run steps until the time is up or all plans have been seen; once the task is settled few are left to run."""
    for step in steps:
        if best.exhausted or (best.found and task.clock.passed()):
            break
        if best.settled and not step.though_settled:
            continue
        covered = _covered(step.stage, task, best)
        if covered is None:
            continue
        of, side = covered
        if side.settled and not step.though_settled:
            continue
        if step.stage.applies(of, side) and step.when(of, side):
            share = step.share(of, side) if callable(step.share) else step.share
            if not share:
                continue
            started = time.monotonic()
            for finding in step.stage.run(of, side, share):
                side.take(finding, step.stage.name)
                if side is not best and not isinstance(finding, Exhausted):
                    best.take(finding, step.stage.name)
            took = time.monotonic() - started
            best.seconds[step.stage.name] = best.seconds.get(step.stage.name, 0.0) + took
    return best
