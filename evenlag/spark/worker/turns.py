"""A task's groups in turn until its time is up: first a plan for every group, then more time where most is unproven."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from evenlag.search.clock import LEAST_SECONDS
from evenlag.spark.worker.budget import Budget, least_effort, recoverable
from evenlag.spark.worker.solving import GroupResult
from evenlag.tables.group import GroupRows

LONGER = 2.0  # how much more time a group gets in its next turn than in all before
SHORTEST = 0.02  # seconds that are worth another turn


class Turn(Protocol):
    """Solves one group within a limit in seconds, quickly or not, and goes on from what came of its turn before."""

    def __call__(
        self, rows: GroupRows, time_limit: float, quick: bool, late: bool, earlier: GroupResult | None, /
    ) -> GroupResult:
        """Give what became of the group."""


def take_turns(groups: Sequence[GroupRows], budget: Budget, task: int, gap: float, turn: Turn) -> Iterator[GroupResult]:
    """Solve the groups of a task, and give each when its last turn is over.

    Without a limit for the whole call, and with work limits, each has one turn. Else the first turn of a group is a
    quick one, and ends at the latest when its fair share of the time that is left is used up; what that saves goes to
    the others. The time left then goes to the group with most messages between its plan and its bound for each
    second that it has had, in turns that double, and at the end to those whose plan is proven but not yet evened out.

    Parameters
    ----------
    groups : sequence of GroupRows
    budget : Budget
    task : int
        Number of the task.
    gap : float
        Of the mean load; nearer to its bound no plan need come.
    turn : Turn
    """
    groups = sorted(groups, key=recoverable_spread, reverse=True)
    end = budget.task_end(task)
    if end is None or budget.deterministic:
        for group in groups:
            late = budget.over
            yield turn(group, LEAST_SECONDS if late else budget.group_limit, False, late, None)
        return
    open_: list[tuple[float, int, GroupResult]] = []  # first the one with most unproven for each second

    def leave_open(number: int, result: GroupResult) -> None:
        heapq.heappush(open_, (-result.unproven(gap) / max(result.seconds, LEAST_SECONDS), number, result))

    efforts = [least_effort(len(group.lags)) for group in groups]
    to_come = sum(efforts)
    for number, (group, effort) in enumerate(zip(groups, efforts, strict=True)):
        fair = max(end - time.time(), 0.0) * effort / to_come
        to_come -= effort
        result = turn(group, min(max(fair, LEAST_SECONDS), budget.group_limit), True, budget.over, None)
        if result.may_gain:
            leave_open(number, result)
        else:
            yield result
    while open_:
        _, number, result = heapq.heappop(open_)
        longer = max(LONGER * result.seconds, SHORTEST)
        limit = min(longer, budget.group_limit - result.seconds, end - time.time())
        if limit >= SHORTEST:
            result = turn(result.rows, limit, False, False, result)
            if result.may_gain and result.unproven(gap):
                leave_open(number, result)
                continue
        yield result


def recoverable_spread(group: GroupRows) -> float:
    """Return how many messages of spread a better plan may save; see `budget.recoverable`."""
    number: dict[str | None, int] = {None: -1}
    holders = np.array([number.setdefault(owner, len(number) - 1) for owner in group.owners], dtype=np.int64)
    return recoverable(group.lags, holders, max(len(group.members or ()), len(number) - 1))
