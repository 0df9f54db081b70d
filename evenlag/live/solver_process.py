"""A separate process for the solver, so that a crash or a hang costs the caller no more than its time limit.

Inside a Kafka client's process, the MIP would fork the client with its connections, the search would hold the
interpreter lock and so delay heartbeats, and nothing could end a search that hangs.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from dataclasses import replace
from struct import Struct
from typing import Any

from evenlag.errors import EvenlagError
from evenlag.model.plan import Plan
from evenlag.model.problem import Problem
from evenlag.model.processes import end_with, kill_group
from evenlag.model.result import Result
from evenlag.search.entry import with_payoff
from evenlag.search.options import SolveOptions
from evenlag.search.solver import search

LENGTH = Struct(">Q")
SERVE = "from evenlag.live.solver_process import serve; serve({fd}, {parent})"
LEAST_LIMIT = 0.05  # seconds for a search that starts late
READY = b"r"
STARTS_WITHIN = 60.0  # seconds after which a process that is still starting counts as hanging


class SolverError(EvenlagError):
    """Error for a solver process that returned no plan; the message gives the reason."""


class SolverProcess:
    """A separate Python process that solves one problem after another, and ends with its parent process.

    Threads may share it: a thread waits while the problem of another is being solved.
    """

    def __init__(self) -> None:
        self._solving = threading.Lock()
        self._running: tuple[subprocess.Popen[bytes], socket.socket] | None = None
        self._started, self._ready = 0.0, False
        self._trouble = "the solver was not started"
        self._finalizer: Any = None

    def start(self) -> None:
        """Start the process unless it runs; return immediately, before it is ready, and never raise."""
        if self._solving.acquire(blocking=False):  # otherwise it runs, and another thread uses it
            try:
                self._start()
            finally:
                self._solving.release()

    def _start(self) -> None:
        if self._running is not None and self._running[0].poll() is None:
            return
        self.stop()
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            self._trouble = f"the solver could not be started ({error})"
            return
        code = f"import sys; sys.path[:] = {sys.path!r}; {SERVE.format(fd=theirs.fileno(), parent=os.getpid())}"
        try:
            process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            self._trouble = f"the solver could not be started ({error})"
            return
        finally:
            theirs.close()
        self._running = process, ours
        self._started, self._ready = time.monotonic(), False
        self._finalizer = weakref.finalize(self, _end, process, ours)

    def stop(self) -> None:
        """Kill the process."""
        if self._running is not None:
            self._finalizer()
            self._running = None

    def solve(
        self, problem: Problem, options: SolveOptions, until: float, answer_by: float, longest: float = math.inf
    ) -> Result:
        """Solve a problem within limits, which are times of `time.monotonic`.

        Parameters
        ----------
        problem, options
            Parameters of `evenlag.search.solver.search`; the time limit is replaced.
        until
            End of the search, and of the wait for another thread's problem.
        answer_by
            Latest time of the answer, after which the process is killed. A process that is still starting at `until`
            is kept for the next problem.
        longest
            Longest duration of the search, in seconds.

        Raises
        ------
        SolverError
            There is no answer, or the answer is an error.
        """
        if not self._solving.acquire(timeout=max(until - time.monotonic(), 0)):
            raise SolverError("the solver was busy")
        try:
            return self._solve(problem, options, until, answer_by, longest)
        finally:
            self._solving.release()

    def _solve(self, problem: Problem, options: SolveOptions, until: float, answer_by: float, longest: float) -> Result:
        self._start()
        if self._running is None:
            raise SolverError(self._trouble)
        connection = self._running[1]
        try:
            if not self._ready:
                self._ready = _received(connection, len(READY), until) == READY
            ok, answer = _exchange(connection, (problem, options, until, longest), answer_by)
        except TimeoutError:
            if not self._ready and time.monotonic() < self._started + STARTS_WITHIN:
                raise SolverError("the solver was still starting") from None
            self.stop()
            raise SolverError("the solver did not answer in time and was killed") from None
        except Exception as error:  # a dying process may leave half an answer
            self.stop()
            raise SolverError(f"the solver died ({type(error).__name__})") from error
        if not ok:
            raise SolverError(f"the solver failed: {answer}")
        result: Result = replace(
            answer, plan=Plan(problem, answer.plan.member_of)
        )  # refer to the caller's problem, not to its copy
        return result


def _exchange(connection: socket.socket, message: object, answer_by: float) -> tuple[bool, Any]:
    data = pickle.dumps(message)
    connection.settimeout(_left(answer_by))
    connection.sendall(LENGTH.pack(len(data)) + data)
    (size,) = LENGTH.unpack(_received(connection, LENGTH.size, answer_by))
    ok, answer = pickle.loads(_received(connection, size, answer_by))
    return ok, answer


def _received(connection: socket.socket, size: int, answer_by: float | None = None) -> bytes:
    parts = []
    while size:
        if answer_by is not None:
            connection.settimeout(_left(answer_by))
        part = connection.recv(min(size, 2**20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _left(answer_by: float) -> float:
    left = answer_by - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _end(process: subprocess.Popen[bytes], connection: socket.socket) -> None:
    connection.close()
    kill_group(process.pid)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1)


def serve(fd: int, parent: int) -> None:
    """Run the solver process: solve the problems that arrive on a socket until it is closed.

    The process ends soon after the one that started it, of the id `parent`, even if that one ended during the imports.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent process
    end_with(parent)
    search(
        Problem.from_lags({"t": [9, 8, 7, 6, 5, 4]}, {"a": ["t"], "b": ["t"]}), SolveOptions()
    )  # the first search is slow
    with socket.socket(fileno=fd) as connection, contextlib.suppress(EOFError, OSError):
        connection.sendall(READY)
        while True:
            (size,) = LENGTH.unpack(_received(connection, LENGTH.size))
            problem, options, until, longest = pickle.loads(_received(connection, size))
            answer: tuple[bool, object]
            try:
                limited = options.within(max(min(until - time.monotonic(), longest), LEAST_LIMIT))
                answer = True, with_payoff(search(problem, limited), limited)
            except Exception as error:
                answer = False, f"{type(error).__name__}: {error}"
            data = pickle.dumps(answer)
            connection.sendall(LENGTH.pack(len(data)) + data)
