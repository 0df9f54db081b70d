"""How the time for a whole call is shared out: among tasks, among a task's groups, and turn after turn. No Spark."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

QUICKEST, QUICKEST_PER_ROW = 0.004, 1e-5  # seconds that the plan of least effort takes, in all and for each row
RESERVE = 0.1  # share of the time limit kept for what comes after the last plan


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
    """

    group_limit: float
    deadline: float | None = None
    costs: Sequence[float] = (1.0,)
    slots: int = 1
    deterministic: bool = False

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
    ) -> Budget:
        """Share out `time_limit` seconds from `started` (epoch) on; None is no limit for the whole call."""
        if time_limit is None:
            return cls(group_time_limit, None, costs, slots, deterministic)
        useful = time_limit * (1 - reserve)
        return cls(min(group_time_limit, useful), started + useful, costs, slots, deterministic)

    def task_end(self, task: int) -> float | None:
        """Return when this task should end (epoch): it takes its part of the time left, as those after it must."""
        if self.deadline is None:
            return None
        now = time.time()
        own, to_come = self.costs[task : task + 1] or (1.0,), sum(self.costs[task:])
        return now + max(self.deadline - now, 0) * min(own[0] * self.slots / max(to_come, own[0]), 1)

    @property
    def over(self) -> bool:
        """Whether the time of the call is up."""
        return self.deadline is not None and time.time() >= self.deadline


def least_effort(rows: int) -> float:
    """Return the seconds that reading a group and its quickest plan take, roughly."""
    return QUICKEST + QUICKEST_PER_ROW * rows


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
