"""Deadline of a call, and the work limits that replace it in the deterministic profile."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from evenlag.model.interrupt import interrupted

STEPS_PER_SECOND = 1000  # work steps for a second of budget; a step searches one pair of members, about 0.5 ms
WORK_PER_SECOND = 0.05  # work units of a backend for a second of budget
LEAST_SECONDS = 0.001  # limit of a search that starts after the deadline: it still gives a plan and a bound
GRACE = 0.1  # seconds that a step may always take while no plan exists
LONGEST = 1e6  # seconds, some days: solvers and polls accept no infinite limit


def milliseconds(seconds: float) -> int:
    """Return a time limit for GLOP: at least 1, because 0 is none."""
    return max(math.ceil(1000 * min(seconds, LONGEST)), 1)


@dataclass
class Clock:
    """Countdown of a time limit in seconds, which starts on creation.

    With `deterministic`, stages get work limits instead, taken from one common `budget` (seconds; default: the limit).
    Work limits are small enough that the wall clock is only a safety net.

    A part of a clock ends with its own time or with the whole clock. Its shares refer to its own time, even if the
    whole clock has less left. So the first steps of a search do not depend on its time limit.

    Attributes
    ----------
    cut : bool
        This clock ended a search that had more to do.
    """

    limit: float
    deterministic: bool = False
    budget: float | None = None
    _started: float = field(default_factory=lambda: time.monotonic())
    _used: float = field(default=0.0, init=False)  # seconds of the budget
    _whole: Clock | None = None  # the clock that this one is a part of
    cut: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.limit = float(min(self.limit, LONGEST))
        if self.budget is not None:
            self.budget = float(min(self.budget, LONGEST))

    def turn(self, seconds: float) -> Clock:
        """Return a part of this clock with `seconds` of time or work; if infinite, with all that is left."""
        seconds = self.allowance() if seconds == math.inf else seconds
        if self.deterministic:  # work limits must not depend on the time left
            return Clock(self.left(), True, seconds, _whole=self)
        return Clock(seconds, _whole=self)

    def part(self, share: float) -> Clock:
        """Return a clock for a side question, with a share of the time or work left."""
        return self.turn(share * self.allowance())

    def afterwards(self, share: float) -> Clock:
        """Return a clock for a question after the search, with a share of the time left or of the whole work budget."""
        return Clock(self.left(), True, share * self._budget) if self.deterministic else Clock(share * self.left())

    @property
    def _budget(self) -> float:
        return self.limit if self.budget is None else self.budget

    @property
    def _work_left(self) -> float:
        """Seconds left of the budget, here and in the clock that this one is a part of."""
        left = self.allowance()
        return left if self._whole is None else min(left, self._whole._work_left)

    def use(self, seconds: float) -> None:
        """Charge work to the budget, in seconds."""
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
        """Return the maximum seconds for a step that cannot be interrupted; `found`: a plan exists already."""
        if self.deterministic and self.left():  # work limits must not depend on the time left
            return math.inf
        return self.left() if found else max(self.left(), GRACE)

    def passed(self) -> bool:
        """Return True once the time limit is reached or the search is interrupted."""
        return self.left() <= 0

    def over(self) -> bool:
        """Return True once the time limit or the work limit is reached."""
        return self.passed() or (self.deterministic and self._work_left < 0.5 / STEPS_PER_SECOND)

    def stop(self, share: float = 1.0) -> Callable[[], bool]:
        """Return the stop criterion that a stage calls before each step; `share`: its part of the time or work left."""
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
        """Record that the limit cut a search short, and return True."""
        self.cut = True
        return True if self._whole is None else self._whole.ended()

    def allowance(self) -> float:
        """Return the seconds left of this part; with work limits, the work left in seconds of the budget."""
        own, used = (self._budget, self._used) if self.deterministic else (self.limit, self.spent)
        return max(own - used, 0.0)

    def seconds(self, share: float = 1.0) -> float:
        """Return a backend's time limit: a share of the time left; with work limits, all of it."""
        return self.left() if self.deterministic else min(share * self.allowance(), self.left())

    def work(self, share: float = 1.0) -> float | None:
        """Return a backend's work limit: a share of the work left; None without work limits."""
        return WORK_PER_SECOND * share * self._work_left if self.deterministic else None


def endless() -> float:
    """Return the seconds left without a limit."""
    return math.inf


@dataclass(frozen=True)
class Stop:
    """Stop criterion of a search that also solves linear programs, which cannot be interrupted.

    Attributes
    ----------
    criterion : callable
        Called before each step.
    room : callable
        Returns the seconds left for a linear program.
    """

    criterion: Callable[[], bool]
    room: Callable[[], float] = endless

    def __call__(self) -> bool:
        """Return True if the search must stop."""
        return self.criterion()

    def in_steps_of(self, count: int) -> Stop:
        """Return the criterion for larger steps, as the function `in_steps_of` does."""
        return Stop(in_steps_of(count, self.criterion), self.room)


def in_steps_of(count: int, stop: Callable[[], bool]) -> Callable[[], bool]:
    """Return a stop criterion for larger steps: each call counts as `count` steps of `stop`."""
    return lambda: any(stop() for _ in range(count))


class Turn:
    """Stop criterion with a step limit of its own, for searches that take turns.

    Attributes
    ----------
    over : bool
        The step limit was reached.
    """

    def __init__(self, steps: int, stop: Callable[[], bool]) -> None:
        self.steps, self.stop, self.over = steps, stop, False

    def __call__(self) -> bool:
        """Return True once the step limit or the outer criterion is reached."""
        self.over = self.over or self.steps <= 0
        self.steps -= 1
        return self.over or self.stop()
