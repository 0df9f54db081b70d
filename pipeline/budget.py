"""How the time for a whole call is shared out among the groups, task by task, without Spark."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

LEAST = 0.001  # seconds; what a group gets that comes too late: its plan is then the best published heuristic's
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
    tasks, slots : int
        How many tasks there are, started in the order of their numbers, and how many run at once.
    deterministic : bool
        Every group gets `group_limit`, whatever the clock says, until the deadline.
    """

    group_limit: float
    deadline: float | None = None
    tasks: int = 1
    slots: int = 1
    deterministic: bool = False

    @classmethod
    def share(
        cls,
        time_limit: float | None,
        group_time_limit: float,
        *,
        started: float,
        tasks: int,
        slots: int,
        deterministic: bool,
        reserve: float = RESERVE,
    ) -> Budget:
        """Share out `time_limit` seconds from `started` (epoch) on; None is no limit for the whole call."""
        if time_limit is None:
            return cls(group_time_limit, None, tasks, slots, deterministic)
        useful = time_limit * (1 - reserve)
        return cls(min(group_time_limit, useful), started + useful, tasks, slots, deterministic)

    def task_end(self, task: int) -> float | None:
        """Return when this task should end (epoch): it takes its part of the time left, as those after it must."""
        if self.deadline is None:
            return None
        now = time.time()
        rounds = math.ceil(max(self.tasks - task, 1) / self.slots)
        return now + max(self.deadline - now, 0) / rounds

    def group(self, end: float | None, left: int, over: float = 0.0) -> tuple[float, bool]:
        """Return the seconds for a task's next group, and whether the time of the call is up.

        Parameters
        ----------
        end : float or None
            When the task should end (epoch).
        left : int
            Groups that the task has still to solve, this one included.
        over : float
            Seconds by which its groups so far went over what they were given, on average.
        """
        if self.deadline is None or end is None:
            return self.group_limit, False
        now = time.time()
        if now >= self.deadline:
            return LEAST, True
        if self.deterministic:
            return self.group_limit, False
        return min(self.group_limit, max((end - now) / left - over, LEAST)), False
