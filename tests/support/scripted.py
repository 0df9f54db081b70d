"""Stages with findings set by a test, and tasks to run them on."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenlag import Problem
from evenlag.model.plan import Plan
from evenlag.search.incumbent import Finding, Incumbent
from evenlag.search.options import SolveOptions
from evenlag.search.solver import task_of
from evenlag.search.stage import Stage
from evenlag.search.task import Task

LAGS = [90, 70, 50, 40, 30, 20, 10, 5]


def group(lags: list[int] = LAGS, members: int = 3, **more: Any) -> Problem:
    """One topic that all members read."""
    return Problem.from_lags({"t": lags}, {f"c{i}": ["t"] for i in range(members)}, **more)


def even_plan(problem: Problem) -> Plan:
    """Return a plan that deals partitions in turn, which keeps every balance of one topic."""
    return Plan(problem, (np.arange(len(problem.lags)) % len(problem.members)).astype(np.int32))


@dataclass(frozen=True)
class Scripted(Stage):
    """A stage that yields given findings, asks for more time in its first `cut` turns, and records its limits.

    In turn number k it yields the first k of the findings in `each_turn` too, if there are any.
    """

    findings: tuple[Finding, ...] = ()
    name: str = "scripted"
    cut: int = 0
    starts_over: bool = False
    each_turn: tuple[Finding, ...] = ()
    runs: list[float] = field(default_factory=list)

    def applies(self, _task: Task, _best: Incumbent) -> bool:
        return True

    def run(self, task: Task, _best: Incumbent) -> Iterator[Finding]:
        self.runs.append(task.clock.limit)
        if len(self.runs) <= self.cut:
            task.clock.ended()
        yield from self.findings
        yield from self.each_turn[: len(self.runs)]


def task_for(problem: Problem, **options: Any) -> Task:
    return task_of(problem, SolveOptions(**{"time_limit": 60.0, "stickiness": 0} | options))
