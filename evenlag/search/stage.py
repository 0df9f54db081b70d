"""What a stage is, and how stages are run one after another under one clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Protocol

from evenlag.model.objective import LOADLESS
from evenlag.search.incumbent import Bound, Candidate, Exhausted, Finding, Incumbent
from evenlag.search.task import Task

Condition = Callable[[Task, Incumbent], bool]

LENGTH = 0.05  # seconds of the first round
LENGTH_OF_A_PAIR = 2e-6  # and for each pair of a partition and a member
GROWTH = 2.0  # of the length from one round to the next


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

    def run(self, task: Task, best: Incumbent, /) -> Iterator[Finding]:
        """Yield plans, bounds and notes as they are found, within the time (or work) of the task's clock.

        A stage that could do more with more time tells the clock (`Clock.ended`). `best` is brought up to date before
        the next finding is asked for, and is only to be read. A plan that comes of `best.plan` passes its
        `from_current` on.
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
    share : float
        Of the length of a round; infinite where it may take all the time there is.
    when : callable
        What is asked of the task and the incumbent here, beside what the stage itself asks.
    again : bool
        Whether it runs in every round; else only until it ends before its turn does.
    though_settled : bool
        Whether it runs though the task is settled already.
    """

    stage: Stage
    share: float = inf
    when: Condition = always
    again: bool = False
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


def round_length(task: Task) -> float:
    """Return how long the first round is, in seconds: longer where one step of a search takes longer."""
    problem = task.problem
    return LENGTH + LENGTH_OF_A_PAIR * len(problem.lags) * len(problem.members) * len(problem.judged_by)


def run_steps(task: Task, best: Incumbent, steps: tuple[Step, ...]) -> Incumbent:
    """Run steps in rounds, each longer than the one before, until the task is settled, time is up or all have ended.

    No round depends on the limit: with a longer one the same is done first, and then more.
    """
    ended: set[int] = set()
    length = round_length(task)
    number = 0
    while True:
        before = (best.value, best.bound) if best.found else None
        cut = run_round(replace(task, round=task.round + number), best, steps, length, ended)
        improved = best.found and before != (best.value, best.bound)
        if best.exhausted or best.settled or task.clock.over() or not (cut or improved):
            return best
        number, length = number + 1, length * GROWTH


def run_round(task: Task, best: Incumbent, steps: tuple[Step, ...], length: float, ended: set[int]) -> bool:
    """Run each step once that has not ended yet; return True if the length of the round ended one.

    Parameters
    ----------
    task : Task
    best : Incumbent
    steps : tuple of Step
    length : float
        Seconds that shares are of.
    ended : set of int
        Numbers of the steps that need no other turn; those that end in this round come to it.
    """
    cut = False
    for number, step in enumerate(steps):
        if best.exhausted:
            break
        if best.found and task.clock.over():
            return task.clock.ended()
        if number in ended or (best.settled and not step.though_settled):
            continue
        turn = replace(task, clock=task.clock.turn(step.share * length))
        covered = _covered(step.stage, turn, best)
        if covered is None or (covered[1].settled and not step.though_settled):
            continue
        if step.stage.applies(*covered) and step.when(*covered):
            _run(step, *covered, best)
            if step.share == inf or not (turn.clock.cut or step.again):
                ended.add(number)
        cut |= turn.clock.cut and number not in ended
    return cut


def _run(step: Step, task: Task, side: Incumbent, best: Incumbent) -> None:
    """Run a step, and take what it finds for the incumbent that it works on, and for that of the whole task."""
    started, name = time.monotonic(), step.stage.name
    for finding in step.stage.run(task, side):
        side.take(finding, name)
        if side is not best and not isinstance(finding, Exhausted):
            best.take(finding, name)
    best.seconds[name] = best.seconds.get(name, 0.0) + time.monotonic() - started
