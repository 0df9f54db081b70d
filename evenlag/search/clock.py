"""The one deadline of a call, and the work limits that stand in for it in the deterministic profile."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from evenlag.model.interrupt import interrupted

STEPS_PER_SECOND = 1000  # a step: what it takes to look at one pair of members, about half a millisecond
WORK_PER_SECOND = 0.05
LEAST_SECONDS = 0.001  # of a search whose turn comes when the time is over: there is a plan and a bound all the same
GRACE = 0.1  # seconds that a step may always take while there is no plan
LONGEST = 1e6  # seconds, some days: neither solvers nor polls take infinite limits


@dataclass
class Clock:
    """Time left of a limit in seconds, from the moment of creation.

    With `deterministic` stages get work limits out of `budget` (seconds; by default the limit), small enough that the
    wall clock is only a safety net. What one stage has used, no other gets: shares are of the work that is left.
    """

    limit: float
    deterministic: bool = False
    budget: float | None = None
    _started: float = field(default_factory=time.monotonic)
    _used: float = field(default=0.0, init=False)  # of the budget
    _whole: Clock | None = None  # of which this is a part

    def __post_init__(self) -> None:
        self.limit = float(min(self.limit, LONGEST))
        if self.budget is not None:
            self.budget = float(min(self.budget, LONGEST))

    def part(self, share: float) -> Clock:
        """Return the clock of a side question that may take this share of the time left, or of the work left."""
        if self.deterministic:  # work limits must not depend on the time left
            return Clock(self.left(), True, share * self._work_left, _whole=self)
        return Clock(share * self.left())

    def afterwards(self, share: float) -> Clock:
        """Return the clock of a question once the search is over: the same, but with a share of all the work."""
        return Clock(self.left(), True, share * self._budget) if self.deterministic else self.part(share)

    @property
    def _budget(self) -> float:
        return self.limit if self.budget is None else self.budget

    @property
    def _work_left(self) -> float:
        """Seconds of the budget that are left, here and in what this is a part of."""
        left = max(self._budget - self._used, 0.0)
        return left if self._whole is None else min(left, self._whole._work_left)

    def use(self, seconds: float) -> None:
        """Count work as done, in seconds of the budget."""
        self._used += seconds
        if self._whole is not None:
            self._whole.use(seconds)

    @property
    def spent(self) -> float:
        """Seconds since the call began."""
        return time.monotonic() - self._started

    def left(self) -> float:
        """Return the seconds left, never negative."""
        return 0.0 if interrupted() else max(self.limit - self.spent, 0.0)

    def room(self, *, found: bool) -> float:
        """Return the most seconds that a step may take which cannot be interrupted; `found`: there is a plan."""
        if self.deterministic and self.left():  # work limits must not depend on the time left
            return math.inf
        return self.left() if found else max(self.left(), GRACE)

    def passed(self) -> bool:
        """Say whether the limit is reached, or the search interrupted."""
        return self.left() <= 0

    def stop(self, share: float = 1.0) -> Callable[[], bool]:
        """Return the question a stage asks before each step: stop now? `share` is its part of the time or work left."""
        if not self.deterministic:
            until = self.spent + share * self.left()
            return lambda: self.spent >= until or interrupted()
        steps = int(STEPS_PER_SECOND * share * self._work_left)

        def stop() -> bool:
            nonlocal steps
            if steps <= 0 or not self._work_left or self.passed():
                return True
            steps -= 1
            self.use(1 / STEPS_PER_SECOND)
            return False

        return stop

    def allowance(self) -> float:
        """Return the seconds left, or with work limits the seconds that what is left of them stands for."""
        return self._work_left if self.deterministic else self.left()

    def work(self, share: float = 1.0) -> float | None:
        """Return a backend's work limit, a share of the work left; None where the wall clock rules."""
        return WORK_PER_SECOND * share * self._work_left if self.deterministic else None


def in_steps_of(count: int, stop: Callable[[], bool]) -> Callable[[], bool]:
    """Return the same question for steps that are each worth so many of the usual ones."""
    return lambda: any(stop() for _ in range(count))


class Turn:
    """The same question with a limit of steps, for a search that others take turns with.

    Attributes
    ----------
    over : bool
        Whether the limit was reached.
    """

    def __init__(self, steps: int, stop: Callable[[], bool]) -> None:
        self.steps, self.stop, self.over = steps, stop, False

    def __call__(self) -> bool:
        """Say whether to stop, of which the limit is one reason."""
        self.over = self.over or self.steps <= 0
        self.steps -= 1
        return self.over or self.stop()
