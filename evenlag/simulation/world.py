"""Virtual time: processes that take turns, in an order drawn from a seed.

Each process is a thread, so that code which blocks runs unchanged. One thread runs at a time; a process gives up its
turn only by `sleep`, and time passes only between turns. A run is therefore repeated exactly by its seed.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable
from random import Random

from evenlag.errors import EvenlagError

TOLD = 60  # events of a story
BEGAN = 1_750_000_000.0  # seconds since 1970 at which a world begins


class BrokenPromiseError(EvenlagError):
    """A simulated group did what it must never do; the message ends with the last events."""


class Killed(BaseException):
    """A process was killed: raised in it at its next turn, and not to be caught."""


class World:
    """The clock, the processes and what happened.

    Attributes
    ----------
    now : float
        Seconds since the start.
    random : Random
        The only source of chance.
    current : Process or None
        The process whose turn it is.
    """

    def __init__(self, seed: int) -> None:
        self.now, self.random, self.seed = 0.0, Random(seed), seed
        self.current: Process | None = None
        self._due: list[tuple[float, int, Process]] = []
        self._turns = 0
        self._over = _closed()
        self._until = 0.0
        self._story: deque[str] = deque(maxlen=TOLD)
        self._broken: BaseException | None = None
        self._processes: list[Process] = []

    def tell(self, event: str) -> None:
        """Add an event to the story."""
        self._story.append(f"{self.now:10.2f} {event}")

    def broken(self, promise: str) -> BrokenPromiseError:
        """Return the error for a promise that does not hold; the run ends with it, even if our code catches it."""
        error = BrokenPromiseError("\n".join([f"seed {self.seed}: {promise}", *self._story]))
        self._broken = self._broken or error
        return error

    def start(self, name: str, body: Callable[[Process], None]) -> Process:
        """Start a process; its first turn is now."""
        process = Process(self, name, body)
        self._processes = [each for each in self._processes if each.alive] + [process]
        self.wake(process, 0.0)
        return process

    def wake(self, process: Process, after: float) -> None:
        """Give a process its next turn after some seconds."""
        self._turns += 1
        heapq.heappush(self._due, (self.now + after, self._turns, process))

    def sleep(self, seconds: float) -> None:
        """Let the process whose turn it is sleep.

        Raises
        ------
        Killed
            The caller is another process, which was killed and cleans up.
        """
        assert self.current is not None
        if not self.current.calls():
            raise Killed
        self.current.sleep(seconds)

    def wall(self) -> float:
        """Return the seconds since 1970, by the clock of the process whose turn it is."""
        return BEGAN + self.now + (0.0 if self.current is None else self.current.clock_off)

    def run(self, seconds: float) -> None:
        """Let time pass, and end all processes.

        Raises
        ------
        BrokenPromiseError
        """
        self._until = seconds
        try:
            self.end_turn()
            self._over.acquire()
        finally:
            for process in self._processes:
                process.kill()
        if self._broken is not None:
            raise self._broken

    def passes(self, at: float) -> bool:
        """Let time pass until then if no process has a turn before, and return whether it did."""
        if at > self._until or (self._due and self._due[0][0] <= at):
            return False
        self.now = at
        return True

    def end_turn(self, error: BaseException | None = None) -> None:
        """Give the turn to the process that is due next. If there is none, or after an error, let `run` end.

        The caller's thread does this, because to go through the thread of `run` would switch threads twice.
        """
        self._broken = self._broken or error
        while self._due and self._broken is None:
            at, _, process = heapq.heappop(self._due)
            if at > self._until:
                break
            if not process.alive:
                continue
            if process.resumes > at:  # it has been stopped
                self.wake(process, process.resumes - self.now)
                continue
            self.now, self.current = at, process
            process.turn.release()
            return
        self._over.release()


class Process:
    """A process of the world.

    Attributes
    ----------
    resumes : float
        Time until which it is stopped, as by SIGSTOP.
    clock_off : float
        Seconds by which its clock is ahead.
    """

    def __init__(self, world: World, name: str, body: Callable[[Process], None]) -> None:
        self.world, self.name, self.resumes, self.clock_off = world, name, 0.0, 0.0
        self.turn = _closed()
        self._killed = False
        self._thread = threading.Thread(target=self._run, args=(body,), name=name, daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """True until it has ended or was killed."""
        return self._thread.is_alive() and not self._killed

    @property
    def stopped(self) -> bool:
        """True while it is stopped."""
        return self.resumes > self.world.now

    def sleep(self, seconds: float) -> None:
        """Give up the turn, and have the next one after some seconds."""
        at = self.world.now + seconds
        if self.resumes <= at and self.world.passes(at):
            return
        self.world.wake(self, seconds)
        self.world.end_turn()
        self.turn.acquire()
        if self._killed:
            raise Killed

    def calls(self) -> bool:
        """Return whether the caller is this process."""
        return threading.current_thread() is self._thread

    def stop(self, seconds: float) -> None:
        """Stop it for some seconds."""
        self.resumes = max(self.resumes, self.world.now + seconds)

    def kill(self) -> None:
        """Let it have no turn any more, and end its thread."""
        self._killed = True
        if self._thread.is_alive():
            self.turn.release()
            self._thread.join()

    def _run(self, body: Callable[[Process], None]) -> None:
        self.turn.acquire()
        error: BaseException | None = None
        try:
            if not self._killed:
                body(self)
        except Killed:
            return  # nobody waits for this turn: it was given only to end the thread
        except BaseException as found:  # of our code or of the simulation: the run ends with it
            error = found
        if not self._killed:
            self.world.end_turn(error)


def _closed() -> threading.Lock:
    """Return a lock that is held: whoever waits for it goes on once another releases it."""
    lock = threading.Lock()
    lock.acquire()
    return lock
