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
    wall clock is only a safety net. What one stage has used, no other gets.

    A part of a clock ends when its own time is over, or that of the whole. But shares are of its own time, however
    little is left of the whole: what a search does first does not depend on how long it may go on.

    Attributes
    ----------
    cut : bool
        Something was ended by this clock that would have gone on.
    """

    limit: float
    deterministic: bool = False
    budget: float | None = None
    _started: float = field(default_factory=lambda: time.monotonic())
    _used: float = field(default=0.0, init=False)  # of the budget
    _whole: Clock | None = None  # of which this is a part
    cut: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.limit = float(min(self.limit, LONGEST))
        if self.budget is not None:
            self.budget = float(min(self.budget, LONGEST))

    def turn(self, seconds: float) -> Clock:
        """Return the clock of a part that may take so many seconds, or so much work; all that is left if infinite."""
        seconds = self.allowance() if seconds == math.inf else seconds
        if self.deterministic:  # work limits must not depend on the time left
            return Clock(self.left(), True, seconds, _whole=self)
        return Clock(seconds, _whole=self)

    def part(self, share: float) -> Clock:
        """Return the clock of a side question that may take this share of the time left, or of the work left."""
        return self.turn(share * self.allowance())

    def afterwards(self, share: float) -> Clock:
        """Return the clock of a question once the search is over: the same, but with a share of all the work."""
        return Clock(self.left(), True, share * self._budget) if self.deterministic else Clock(share * self.left())

    @property
    def _budget(self) -> float:
        return self.limit if self.budget is None else self.budget

    @property
    def _work_left(self) -> float:
        """Seconds of the budget that are left, here and in what this is a part of."""
        left = self.allowance()
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
        left = 0.0 if interrupted() else max(self.limit - self.spent, 0.0)
        return left if self._whole is None else min(left, self._whole.left())

    def room(self, *, found: bool) -> float:
        """Return the most seconds that a step may take which cannot be interrupted; `found`: there is a plan."""
        if self.deterministic and self.left():  # work limits must not depend on the time left
            return math.inf
        return self.left() if found else max(self.left(), GRACE)

    def passed(self) -> bool:
        """Say whether the limit is reached, or the search interrupted."""
        return self.left() <= 0

    def over(self) -> bool:
        """Say whether the limit is reached, of the work too."""
        return self.passed() or (self.deterministic and self._work_left < 0.5 / STEPS_PER_SECOND)

    def stop(self, share: float = 1.0) -> Callable[[], bool]:
        """Return the question a stage asks before each step: stop now? `share` is its part of the time or work left."""
        steps, until = int(STEPS_PER_SECOND * share * self.allowance()), self.spent + share * self.allowance()

        def stop_by_time() -> bool:
            over = self.spent >= until or self.passed()
            return over and self.ended()

        def stop_by_work() -> bool:
            nonlocal steps
            if steps <= 0 or self.over():
                return self.ended()
            steps -= 1
            self.use(1 / STEPS_PER_SECOND)
            return False

        return stop_by_work if self.deterministic else stop_by_time

    def ended(self) -> bool:
        """Note that with more time more would have been done, and return True."""
        self.cut = True
        return True if self._whole is None else self._whole.ended()

    def allowance(self) -> float:
        """Return the seconds left of this part, or with work limits the seconds that the work left stands for."""
        own, used = (self._budget, self._used) if self.deterministic else (self.limit, self.spent)
        return max(own - used, 0.0)

    def seconds(self, share: float = 1.0) -> float:
        """Return a backend's time limit: a share of the time left, or all of it where a work limit rules."""
        return self.left() if self.deterministic else min(share * self.allowance(), self.left())

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
