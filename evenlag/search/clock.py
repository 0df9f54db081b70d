"""The one deadline of a call, and the work limits that stand in for it in the deterministic profile."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from evenlag.model.interrupt import interrupted

STEPS_PER_SECOND = 500  # a step: about what it takes to look at one pair of members
WORK_PER_SECOND = 0.05
LEAST_SECONDS = 0.001  # of a search whose turn comes when the time is over: there is a plan and a bound all the same
LONGEST = 1e6  # seconds, some days: neither solvers nor polls take infinite limits


@dataclass
class Clock:
    """Time left of a limit in seconds, from the moment of creation.

    With `deterministic` stages get work limits in proportion to `budget` (seconds; by default the limit), small
    enough that the wall clock is only a safety net.
    """

    limit: float
    deterministic: bool = False
    budget: float | None = None
    _started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.limit = float(min(self.limit, LONGEST))
        if self.budget is not None:
            self.budget = float(min(self.budget, LONGEST))

    def part(self, share: float) -> Clock:
        """Return the clock of a side question that may take this share of the time left."""
        if self.deterministic:  # work limits must not depend on the time left
            return Clock(self.left(), True, share * self._budget)
        return Clock(share * self.left())

    @property
    def _budget(self) -> float:
        return self.limit if self.budget is None else self.budget

    @property
    def spent(self) -> float:
        """Seconds since the call began."""
        return time.monotonic() - self._started

    def left(self) -> float:
        """Return the seconds left, never negative."""
        return 0.0 if interrupted() else max(self.limit - self.spent, 0.0)

    def passed(self) -> bool:
        """Say whether the limit is reached, or the search interrupted."""
        return self.left() <= 0

    def stop(self, share: float = 1.0) -> Callable[[], bool]:
        """Return the question a stage asks before each step: stop now? `share` is its part of the time left."""
        if not self.deterministic:
            until = self.spent + share * self.left()
            return lambda: self.spent >= until or interrupted()
        steps = int(STEPS_PER_SECOND * share * self._budget)

        def stop() -> bool:
            nonlocal steps
            steps -= 1
            return steps < 0 or self.passed()

        return stop

    def allowance(self) -> float:
        """Return the seconds left, or with work limits the seconds that they stand for."""
        return self._budget if self.deterministic else self.left()

    def work(self, share: float = 1.0) -> float | None:
        """Return a backend's work limit; None where the wall clock rules."""
        return WORK_PER_SECOND * share * self._budget if self.deterministic else None


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
