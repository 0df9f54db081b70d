"""Division of a call's time among tasks, and of a task's time among its groups, in turns (no Spark import).

Every group gets a first plan; the remaining time goes to the groups with the largest unproven gap.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from evenlag.search.clock import LEAST_SECONDS
from evenlag.spark.worker.one_group import Effort, GroupResult
from evenlag.tables.group import GroupRows

RESERVE = 0.03  # share of the time limit reserved for the work after the last plan is written
FIRST_PLAN, FIRST_PLAN_PER_ROW = 0.001, 7e-6  # seconds for a first plan, in total and for each row
WRITING_PER_ROW = 4e-6  # seconds that a task takes at its end to return and write a row of its plans


@dataclass(frozen=True)
class Budget:
    """Time limits of a call whose groups are solved by concurrent tasks.

    Attributes
    ----------
    group_limit : float
        Time limit of a group, in seconds.
    deadline : float or None
        Time for the last plan, in seconds since the epoch; executors' clocks must agree to about a second.
    costs : sequence of float
        Expected relative duration of each task, in the order in which they start.
    slots : int
        Number of tasks that run concurrently.
    deterministic : bool
        True if every group gets `group_limit` until the deadline, independent of the clock.
    last : float or None
        Time after which not even plans of least effort are started, in seconds since the epoch.
    """

    group_limit: float
    deadline: float | None = None
    costs: Sequence[float] = (1.0,)
    slots: int = 1
    deterministic: bool = False
    last: float | None = None

    @classmethod
    def share(
        cls,
        time_limit: float | None,
        group_time_limit: float,
        *,
        started: float,
        costs: Sequence[float],
        slots: int,
        deterministic: bool,
        reserve: float = RESERVE,
        last: float | None = None,
    ) -> Budget:
        """Return the budget of a call with `time_limit` seconds (None: no limit) from `started` (epoch)."""
        if time_limit is None:
            return cls(group_time_limit, None, costs, slots, deterministic)
        useful = time_limit * (1 - reserve)
        return cls(min(group_time_limit, useful), started + useful, costs, slots, deterministic, last)

    def task_end(self, task: int) -> float | None:
        """Return the time (epoch) at which a task should end, by its share of the time left for it and later tasks."""
        if self.deadline is None:
            return None
        now = time.time()
        own, to_come = self.costs[task : task + 1] or (1.0,), sum(self.costs[task:])
        return now + max(self.deadline - now, 0) * min(own[0] * self.slots / max(to_come, own[0]), 1)

    def for_rows(self, rows: int) -> Budget:
        """Return the budget of a task that must write `rows` rows after its last plan."""
        return self if self.deadline is None else replace(self, deadline=self.deadline - WRITING_PER_ROW * rows)

    @property
    def over(self) -> bool:
        """True if the call's deadline has passed."""
        return self.deadline is not None and time.time() >= self.deadline


def first_effort(rows: int) -> float:
    """Return the approximate seconds for a group's first plan, with more than the least effort."""
    return FIRST_PLAN + FIRST_PLAN_PER_ROW * rows


def recoverable(lags: NDArray[np.int64], holders: NDArray[np.int64], members: int) -> float:
    """Estimate the messages of spread that a better plan may save, without a search.

    Parameters
    ----------
    lags : int64 array (P,)
        Messages.
    holders : int64 array (P,)
        Index of the member that holds each partition, −1 for none. If no partition has an owner, they are assumed to be
        assigned round-robin.
    members : int

    Returns
    -------
    float
        The current spread minus the least spread that the biggest partition allows; 0 for fewer than two members.
    """
    if members < 2 or not len(lags):
        return 0.0
    held = holders >= 0
    if not held.any():
        holders, held = np.arange(len(lags)) % members, np.ones(len(lags), dtype=bool)
    weights = lags.astype(np.float64)
    loads = np.bincount(holders[held], weights=weights[held], minlength=members)
    biggest, total = weights.max(), weights.sum()
    least = max(biggest - (total - biggest) / (members - 1), 0.0)
    return max(float(loads.max() - loads.min() - least), 0.0)


LONGER = 2.0  # ratio of a group's next turn to all its previous ones
SHORTEST = 0.02  # shortest turn in seconds


class Turn(Protocol):
    """Interface of a function that solves a group within a time limit, starting from its earlier result."""

    def __call__(
        self, rows: GroupRows, time_limit: float, effort: Effort, late: bool, earlier: GroupResult | None, /
    ) -> GroupResult:
        """Return the group's result."""


def take_turns(groups: Sequence[GroupRows], budget: Budget, task: int, gap: float, turn: Turn) -> Iterator[GroupResult]:
    """Solve the groups of a task, and yield each result after the group's last turn.

    Without a time limit for the call, or with work limits, each group gets one turn. Otherwise every group first gets a
    turn of least effort, or of a little more if there is time for all. The remaining time goes to the group with the
    largest difference between plan and bound, in messages, per second spent on it: first a quick turn, then turns that
    double in length, and finally groups whose plan is proven but not yet evened out by the tie rule.

    Parameters
    ----------
    groups : sequence of GroupRows
    budget : Budget
    task : int
        Number of the task.
    gap : float
        Gap at which a plan is good enough, as a share of the mean load.
    turn : Turn
    """
    end = budget.task_end(task)
    if end is not None:
        groups = sorted(groups, key=recoverable_spread, reverse=True)
    if end is None or budget.deterministic:
        for group in groups:
            late = budget.over
            yield turn(group, LEAST_SECONDS if late else budget.group_limit, Effort.FULL, late, None)
        return
    open_: list[tuple[float, int, GroupResult]] = []  # heap, first the largest unproven difference per second

    def leave_open(number: int, result: GroupResult) -> None:
        heapq.heappush(open_, (-result.unproven(gap) / max(result.seconds, LEAST_SECONDS), number, result))

    efforts = [first_effort(len(group.lags)) for group in groups]
    to_come = sum(efforts)
    for number, (group, seconds) in enumerate(zip(groups, efforts, strict=True)):
        effort = Effort.FIRST if end - time.time() > to_come else Effort.LEAST
        to_come -= seconds
        result = turn(group, budget.group_limit, effort, budget.over, None)
        if result.seeking or (result.may_gain and effort == Effort.FIRST):
            leave_open(number, result)
        else:  # with little time there is no second turn, and results returned now are written in the meantime
            yield result
    looked_at: set[int] = set()
    while open_:
        _, number, result = heapq.heappop(open_)
        longer = max(LONGER * result.seconds, SHORTEST)
        limit = min(longer, budget.group_limit - result.seconds, end - time.time())
        if limit >= SHORTEST:
            effort = Effort.FULL if number in looked_at else Effort.QUICK
            looked_at.add(number)
            result = turn(result.rows, limit, effort, False, result)
            if result.may_gain and (effort == Effort.QUICK or result.unproven(gap)):
                leave_open(number, result)
                continue
        yield result


def recoverable_spread(group: GroupRows) -> float:
    """Estimate the messages of spread that a better plan of a group may save; see `recoverable`."""
    number: dict[str | None, int] = {None: -1}
    holders = np.array([number.setdefault(owner, len(number) - 1) for owner in group.owners], dtype=np.int64)
    return recoverable(group.lags, holders, max(len(group.members or ()), len(number) - 1))
