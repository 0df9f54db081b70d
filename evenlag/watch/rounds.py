"""Rounds: read the source, plan each group within its share of the interval, wait for the next."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType

from evenlag.errors import EvenlagError, InvalidProblemError, in_words
from evenlag.figures import quantity, some
from evenlag.model.interrupt import Watch, ending_searches, interrupted
from evenlag.watch.board import NAMED, Board, Entry
from evenlag.watch.inputs import Input, Seen
from evenlag.watch.loop import Loop
from evenlag.watch.standing import Asked, standing_of

PLAN_SHARE = 0.9  # share of the interval within which the plans are made
LEAST_PLAN_SHARE = 0.5  # share of the interval for the plans, however long the reading took
LEAST_GROUP_SECONDS = 0.02  # seconds for a group's plan, even if the interval is too short for all
MOST_WARNINGS = 1_000  # warnings of a round that are remembered, so that the next does not repeat them


class Terminated(BaseException):
    """SIGTERM has come."""


@dataclass
class Watcher:
    """The rounds over one source.

    Attributes
    ----------
    every : float
        Seconds from the beginning of one round to that of the next.
    group_time_limit : float
        Most seconds for the plan of a group.
    log : callable (str) -> None
        Gets one line for each event.
    loop : Loop or None
        Publishes plans.
    """

    source: Input
    board: Board
    asked: Asked
    every: float
    group_time_limit: float
    log: Callable[[str], None]
    loop: Loop | None = None
    _logged_before: set[str] = field(default_factory=set)  # warnings of the previous round
    _logged: set[str] = field(default_factory=set)  # and of this one

    def run(self) -> None:
        """Run rounds until a signal comes.

        Raises
        ------
        Terminated
            At SIGTERM.
        KeyboardInterrupt
            At an interrupt.
        """
        with _terminating() as end_if_asked:
            while True:
                began = time.monotonic()
                self.round()
                end_if_asked()
                time.sleep(max(began + self.every - time.monotonic(), 0))

    def round(self) -> EvenlagError | None:
        """Read and plan once; return the error if the source cannot be read."""
        began = time.monotonic()
        try:
            seen, warnings = self._read()
        except EvenlagError as error:
            self._note_failure(error, time.monotonic() - began)
            return error
        reads, now = self.board.reads, time.time()
        self.board.reads = replace(
            reads, total=reads.total + 1, succeeded=True, last_success=now, seconds=time.monotonic() - began
        )
        self.board.failures = {each.name: str(each.found) for each in seen if isinstance(each.found, Exception)}
        for warning in (*warnings, *self._warnings()):
            self._log_once(warning)
        for name, why in self.board.failures.items():
            self._cannot_publish(name, why)
        found = [each for each in seen if not isinstance(each.found, Exception)]
        if self.loop is not None:
            self.loop.caution.note_read([each.name for each in found], self.loop.now(), self.every)
        planning = time.monotonic()
        with ending_searches(signal.SIGTERM) as watch:
            self._plan(found, began, watch)
        self.board.reads = replace(self.board.reads, plan_seconds=time.monotonic() - planning)
        if watch.interrupted:
            raise Terminated if watch.signal == signal.SIGTERM else KeyboardInterrupt
        self._expire()
        self._logged_before, self._logged = self._logged, set()
        return None

    def _read(self) -> tuple[list[Seen], list[str]]:
        warnings: list[str] = []
        try:
            return list(self.source.read(self.board.choose, warnings.append)), warnings
        except EvenlagError:
            raise
        except Exception as error:  # an answer that kafka-python cannot read must not end the watch
            raise EvenlagError(in_words(error)) from error

    def _note_failure(self, error: EvenlagError, seconds: float) -> None:
        reads = self.board.reads
        self.board.reads = replace(
            reads, total=reads.total + 1, failed=reads.failed + 1, succeeded=False, seconds=seconds
        )
        self.log(f"read failed: {error}")
        self._expire()

    def _plan(self, seen: list[Seen], began: float, watch: Watch) -> None:
        """Plan the groups, the one planned longest ago first, until the interval is nearly over."""
        entries = self.board.entries
        seen.sort(key=lambda each: entries[each.name].planned_at if each.name in entries else 0.0)
        end = max(began + self.every * PLAN_SHARE, time.monotonic() + self.every * LEAST_PLAN_SHARE)
        self.board.unplanned = 0
        for place, each in enumerate(seen):
            left = end - time.monotonic()
            if watch.interrupted or (left <= 0 and place):
                self.board.unplanned = len(seen) - place
                break
            self._plan_one(each, share(left, len(seen) - place, LEAST_GROUP_SECONDS, self.group_time_limit))
        if self.board.unplanned and not watch.interrupted:
            self.log(
                f"{self.board.unplanned} of {len(seen)} groups got no turn and keep their figures; give a longer "
                "--every, or fewer groups by --group"
            )

    def _plan_one(self, seen: Seen, seconds: float) -> None:
        assert not isinstance(seen.found, InvalidProblemError)
        before = self.board.entries.get(seen.name)
        try:
            last = None if before is None else before.standing
            standing = standing_of(seen.found, last, self.asked, seconds, seen.stopped)
        except Exception as error:  # one group must not end the watch of the others
            text = in_words(error)
            self.board.failures[seen.name] = text
            self._log_once(f"group '{seen.name}': {text}")
            self._cannot_publish(seen.name, text)
            return
        self.board.put(seen.name, Entry(standing, seen.as_of, time.time()))
        if self.loop is not None and not interrupted():
            self.loop.consider(seen.name, standing)

    def _cannot_publish(self, group: str, why: str) -> None:
        if self.loop is not None and group in self.board.chosen:
            self.loop.unseen(group, why)

    def _expire(self) -> None:
        for name in self.board.expire(time.time()):
            self.log(f"group '{name}': its figures are older than {self.board.lifetime:g} s and are no longer served")

    def _warnings(self) -> Iterator[str]:
        """Yield the groups that could not be read, the patterns without a group, and the groups beyond the limit."""
        board = self.board
        yield from (f"group '{name}': {why}" for name, why in board.failures.items())
        yield from (f"{pattern}: {board.no_match(pattern)}" for pattern in board.unmatched)
        if names := board.left_out:
            are = "is" if len(names) == 1 else "are"
            beyond = f"{quantity(len(names), 'group')} beyond the limit of {board.most:,}"
            yield f"{beyond} {are} left out: {some(names, NAMED)}"

    def _log_once(self, warning: str) -> None:
        """Log a warning unless the previous round had it too."""
        if warning not in self._logged_before and warning not in self._logged:
            self.log(warning)
        if len(self._logged) < MOST_WARNINGS:
            self._logged.add(warning)


def share(left: float, groups: int, least: float, most: float) -> float:
    """Return the seconds for the next group: an equal share of the time left for `groups`, within limits.

    Examples
    --------
    >>> share(30.0, 10, 0.02, 2.0), share(30.0, 60, 0.02, 2.0), share(1.0, 2000, 0.02, 2.0)
    (2.0, 0.5, 0.02)
    """
    return min(max(left / groups, least), most)


@contextmanager
def _terminating() -> Iterator[Callable[[], None]]:
    """Raise `Terminated` at SIGTERM inside the block.

    Another package may catch what a signal raises, so yield a function that raises it again.
    """
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    on_interrupt = handlers[signal.SIGINT]

    def end_if_asked() -> None:
        if came:
            raise Terminated if signal.SIGTERM in came else KeyboardInterrupt

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if number == signal.SIGINT and callable(on_interrupt):
            on_interrupt(number, frame)
        end_if_asked()

    for number, handler in handlers.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, note)
    try:
        yield end_if_asked
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
