"""Share out the time of a call among tasks, and the time of a task among its groups, turn by turn. No Spark.

Every group gets a plan first; the time left goes where most is unproven.
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

RESERVE = 0.03  # share of the time limit kept for what comes after the last plan is written
FIRST_PLAN, FIRST_PLAN_PER_ROW = 0.001, 7e-6  # seconds that it takes, in all and for each row
WRITING_PER_ROW = 4e-6  # seconds that a task takes, at its end, to hand a row of its plans on and have it written


@dataclass(frozen=True)
class Budget:
    """Time limits of a call whose groups are solved by tasks, of which some run at once.

    Attributes
    ----------
    group_limit : float
        Seconds, the most a group gets.
    deadline : float or None
        Seconds since the epoch when the last plan should stand: executors' clocks must agree to about a second.
    costs : sequence of float
        What each task is expected to take beside the others, in the order in which they start.
    slots : int
        How many tasks run at once.
    deterministic : bool
        Every group gets `group_limit`, whatever the clock says, until the deadline.
    last : float or None
        Seconds since the epoch when plans of least effort are no longer begun either.
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
        """Share out `time_limit` seconds from `started` (epoch) on; None is no limit for the whole call."""
        if time_limit is None:
            return cls(group_time_limit, None, costs, slots, deterministic)
        useful = time_limit * (1 - reserve)
        return cls(min(group_time_limit, useful), started + useful, costs, slots, deterministic, last)

    def task_end(self, task: int) -> float | None:
        """Return when this task should end (epoch): it takes its part of the time left, as those after it must."""
        if self.deadline is None:
            return None
        now = time.time()
        own, to_come = self.costs[task : task + 1] or (1.0,), sum(self.costs[task:])
        return now + max(self.deadline - now, 0) * min(own[0] * self.slots / max(to_come, own[0]), 1)

    def for_rows(self, rows: int) -> Budget:
        """Return the budget of a task that has so many rows to write when its last plan stands."""
        return self if self.deadline is None else replace(self, deadline=self.deadline - WRITING_PER_ROW * rows)

    @property
    def over(self) -> bool:
        """Whether the time of the call is up."""
        return self.deadline is not None and time.time() >= self.deadline


def first_effort(rows: int) -> float:
    """Return the seconds that a group's first plan takes, roughly, where it is more than the least."""
    return FIRST_PLAN + FIRST_PLAN_PER_ROW * rows


def recoverable(lags: NDArray[np.int64], holders: NDArray[np.int64], members: int) -> float:
    """Return how many messages of spread a better plan may save, without looking for one.

    Parameters
    ----------
    lags : int64 array (P,)
        Messages.
    holders : int64 array (P,)
        Number of the member that holds each partition today, −1 for nobody; where nobody holds any they are dealt
        in turn.
    members : int

    Returns
    -------
    float
        Today's spread beyond the least that the biggest partition leaves; 0 with fewer than two members.
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


LONGER = 2.0  # how much more time a group gets in its next turn than in all before
SHORTEST = 0.02  # seconds that are worth another turn


class Turn(Protocol):
    """Solves one group within a limit in seconds, and goes on from what came of its turn before."""

    def __call__(
        self, rows: GroupRows, time_limit: float, effort: Effort, late: bool, earlier: GroupResult | None, /
    ) -> GroupResult:
        """Give what became of the group."""


def take_turns(groups: Sequence[GroupRows], budget: Budget, task: int, gap: float, turn: Turn) -> Iterator[GroupResult]:
    """Solve the groups of a task, and give each when its last turn is over.

    Without a limit for the whole call, and with work limits, each has one turn. Else every group first has a turn of
    least effort, or of a little more where there is time for all of them. The time left then goes to the group with
    most messages between its plan and its bound for each second that it has had: a quick turn first, then turns that
    double, and at the end those whose plan is proven but not yet evened out.

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
    end = budget.task_end(task)
    if end is not None:
        groups = sorted(groups, key=recoverable_spread, reverse=True)
    if end is None or budget.deterministic:
        for group in groups:
            late = budget.over
            yield turn(group, LEAST_SECONDS if late else budget.group_limit, Effort.FULL, late, None)
        return
    open_: list[tuple[float, int, GroupResult]] = []  # first the one with most unproven for each second

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
        else:  # where time is short there is no second look, and what is handed on now is written meanwhile
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
    """Return how many messages of spread a better plan may save; see `recoverable`."""
    number: dict[str | None, int] = {None: -1}
    holders = np.array([number.setdefault(owner, len(number) - 1) for owner in group.owners], dtype=np.int64)
    return recoverable(group.lags, holders, max(len(group.members or ()), len(number) - 1))
