"""Stages of the search, and the rounds in which they run under one clock."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from inspect import get_annotations
from math import inf
from typing import ClassVar

from evenlag.model.objective import EVERY_TERM, LOADLESS
from evenlag.search.incumbent import Bound, Candidate, Exhausted, Finding, Incumbent
from evenlag.search.task import Task

Condition = Callable[[Task, Incumbent], bool]

LENGTH = 0.05  # seconds of the first round
LENGTH_OF_A_PAIR = 2e-6  # seconds more for each pair of a partition and a member
GROWTH = 2.0  # factor of the length from one round to the next
LEAST_GAIN = 0.2  # share of the gap; a stage that starts over and closes less of it sits out the next round


class Stage(ABC):
    """Method that finds better plans or proves better bounds.

    Attributes
    ----------
    handles : frozenset of str
        Terms of an objective beyond loads and moves that it supports: of `Objective.terms`. A stage is skipped if the
        task has a term that it does not support.
    relaxes : bool
        It runs without these terms instead: its bounds stay valid, and its plans are checked under the full objective.
    starts_over : bool
        It keeps nothing from one round to the next. After a round in which it was cut short and closed little of the
        gap, it sits out a round, so that other stages get further in the same time.
    """

    handles: ClassVar[frozenset[str]] = frozenset()
    relaxes: ClassVar[bool] = False
    starts_over: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Refuse class variables and terms in `handles` that do not exist, such as misspelt ones."""
        unknown = [
            name for name, kind in get_annotations(cls).items() if "ClassVar" in str(kind) and not hasattr(Stage, name)
        ]
        if unknown:
            raise TypeError(f"{cls.__name__}: no stage has the class variable {unknown[0]!r}")
        if terms := cls.handles - EVERY_TERM:
            raise TypeError(f"{cls.__name__}: no objective has the term {min(terms)!r}, only {sorted(EVERY_TERM)}")

    @property
    @abstractmethod
    def name(self) -> str:
        """Name that `Result.method` gives for its plans."""

    @abstractmethod
    def applies(self, task: Task, best: Incumbent, /) -> bool:
        """Return True if the stage can help this task in its current state."""

    @abstractmethod
    def run(self, task: Task, best: Incumbent, /) -> Iterator[Finding]:
        """Yield each plan, bound and note once it is found, within the time (or work) of the task's clock.

        A stage that could do more with more time calls `Clock.ended`. Treat `best` as read-only: it is updated between
        two findings. A plan derived from `best.plan` passes on its `from_current`.
        """


def always(_task: Task, _best: Incumbent) -> bool:
    """Return True: no condition."""
    return True


@dataclass(frozen=True)
class Step:
    """One stage at one position in the portfolio.

    Attributes
    ----------
    share : float
        Time as a share of the length of a round; infinite: all the time left.
    when : callable
        Condition on the task and the incumbent, in addition to that of the stage.
    again : bool
        Run in every round. Without it, the step runs until it finishes within its time once.
    though_settled : bool
        Run even if the task is already settled.
    though_over : bool
        Run even if a plan is known and no time is left.
    """

    stage: Stage
    share: float = inf
    when: Condition = always
    again: bool = False
    though_settled: bool = False
    though_over: bool = False


def _covered(stage: Stage, task: Task, best: Incumbent) -> tuple[Task, Incumbent] | None:
    """Return the task and incumbent for a stage, without the terms that it does not support; None if it is skipped."""
    unknown: frozenset[str] = task.goal.terms - stage.handles
    if not unknown:
        return task, best
    if not stage.relaxes or LOADLESS in unknown:
        return None
    relaxed = replace(task, goal=task.goal.without(unknown))
    side = Incumbent(relaxed)
    if best.found:
        side.take(Candidate(best.plan, best.method), "start")
    side.take(Bound(best.base_bound, best.base_bound, best.moves_bound, by=best.bound_by), "start")
    side.seconds = best.seconds
    return relaxed, side


@dataclass
class Standing:
    """Steps that do not run in the next round.

    Attributes
    ----------
    ended : set of int
        Numbers of the steps that have finished.
    idle : set of int
        Numbers of the steps that sit out one round.
    """

    ended: set[int] = field(default_factory=set)
    idle: set[int] = field(default_factory=set)


def round_length(task: Task) -> float:
    """Return the length of the first round in seconds; it grows with the time that one step of a search takes."""
    problem = task.problem
    return LENGTH + LENGTH_OF_A_PAIR * len(problem.lags) * len(problem.members) * len(problem.judged_by)


def run_steps(task: Task, best: Incumbent, steps: tuple[Step, ...]) -> Incumbent:
    """Run steps in rounds, each longer than the one before, until the task is settled, time is up or all have ended.

    Rounds do not depend on the time limit: a longer limit repeats the same rounds and adds more.
    """
    standing = Standing()
    length = round_length(task)
    number = 0
    while True:
        before = (best.value, best.bound) if best.found else None
        cut = run_round(replace(task, round=task.round + number), best, steps, length, standing)
        improved = best.found and before != (best.value, best.bound)
        if best.exhausted or best.settled or task.clock.over() or not (cut or improved):
            return best
        number, length = number + 1, length * GROWTH


def run_round(
    task: Task, best: Incumbent, steps: tuple[Step, ...], length: float, standing: Standing | None = None
) -> bool:
    """Run each remaining step once; return True if the length of the round cut one short.

    Parameters
    ----------
    length : float
        Length of the round in seconds.
    standing : Standing, optional
        The steps that do not run in this round; this call updates it for the next one. Without it, all steps run.
    """
    standing = standing or Standing()
    ended, idle, standing.idle = standing.ended, standing.idle, set()
    cut = over = False
    for number, step in enumerate(steps):
        if best.exhausted:
            break
        if best.found and task.clock.over() and not step.though_over:
            over = True
            continue
        if number in ended or (best.settled and not step.though_settled):
            continue
        if number in idle:
            cut = task.clock.ended()
            continue
        turn = replace(task, clock=task.clock.turn(step.share * length))
        covered = _covered(step.stage, turn, best)
        if covered is None or (covered[1].settled and not step.though_settled):
            continue
        if step.stage.applies(*covered) and step.when(*covered):
            gap = best.value - best.bound if best.found else inf
            _run(step, *covered, best)
            left = best.value - best.bound if best.found else inf
            if turn.clock.cut and step.stage.starts_over and left > (1 - LEAST_GAIN) * gap:
                standing.idle.add(number)
            if step.share == inf or not (turn.clock.cut or step.again):
                ended.add(number)
        cut |= turn.clock.cut and number not in ended
    return task.clock.ended() if over else cut


def _run(step: Step, task: Task, side: Incumbent, best: Incumbent) -> None:
    """Run a step, and give its findings to the incumbent that it works on and to that of the task."""
    started, name = time.monotonic(), step.stage.name
    for finding in step.stage.run(task, side):
        side.take(finding, name)
        if side is not best and not isinstance(finding, Exhausted):
            best.take(finding, name)
    best.seconds[name] = best.seconds.get(name, 0.0) + time.monotonic() - started
