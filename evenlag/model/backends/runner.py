"""Execution of a backend in its own process, so that one that hangs or dies costs only its time."""

from __future__ import annotations

import contextlib
import multiprocessing as mp
import os
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from queue import Empty, SimpleQueue
from typing import Any

from numpy.typing import NDArray

from evenlag.model.backends.outcome import Backend, Limits, Outcome, Report
from evenlag.model.formulation import Mip
from evenlag.model.interrupt import LOOK, interrupted, watching
from evenlag.model.processes import end_with, kill_group, starter

GRACE = 0.05  # seconds past the limit in which a backend may still deliver its result


def run(backend: Backend, mip: Mip, hint: NDArray[Any] | None, limits: Limits) -> Outcome:
    """Run a backend on the program and return its result, at the latest shortly after `limits.seconds`.

    The best solution reported so far is kept by the caller, so it survives a backend that is terminated or dies. A
    terminated backend has stopped by "time", with a message in `failure`. Its child processes end with it, and its
    temporary files are removed.
    """
    deadline = time.monotonic() + limits.seconds
    with _folder() as folder:
        try:
            process, ours = _started(backend, mip, hint, limits, folder)
        except AssertionError:  # daemonic workers of a pool cannot start processes
            return _in_a_thread(backend, mip, hint, limits, deadline)
        except OSError as error:  # the limit of processes, open files or memory is reached
            return _failed(error)
        return _received(process, ours, limits, deadline)


def _started(*job: Any) -> tuple[Any, Connection]:
    """Start `_work` in a new process; return it with the receiving end of its pipe."""
    context: Any = mp.get_context("fork" if "fork" in mp.get_all_start_methods() else "spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(*job, theirs), daemon=True)
    with warnings.catch_warnings(), theirs:
        # Forking while threads run can block the child on a lock; the deadline ends such a child.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    return process, ours


def _received(process: Any, ours: Connection, limits: Limits, deadline: float) -> Outcome:
    """Receive a backend's messages until the deadline, then end its process; return its result."""
    best: NDArray[Any] | None = None
    try:
        while True:
            left = max(deadline + GRACE - time.monotonic(), 0)
            if not ours.poll(min(left, LOOK) if watching() else left):
                if interrupted():
                    return Outcome(best, None, "time")
                if time.monotonic() < deadline + GRACE:
                    continue
                return Outcome(best, None, "time", f"did not stop within its {limits.seconds:.3g} s and was ended")
            try:
                message = ours.recv()
            except (EOFError, OSError):  # the process died, perhaps in the middle of a message, or is about to
                wait([process.sentinel], GRACE)
                break
            if isinstance(message, Outcome):
                return _with(best, message)
            best = message
    finally:
        exit_code = _end(process)
        ours.close()
    return Outcome(best, None, "failed", f"died (exit code {exit_code})")


def _in_a_thread(backend: Backend, mip: Mip, hint: NDArray[Any] | None, limits: Limits, deadline: float) -> Outcome:
    """Run a backend in a thread of this process until the deadline; return its result. Threads cannot be ended."""
    messages: SimpleQueue[Any] = SimpleQueue()
    job = threading.Thread(target=lambda: messages.put(_guarded(backend, mip, hint, limits, messages.put)), daemon=True)
    job.start()
    best: NDArray[Any] | None = None
    while (left := deadline + GRACE - time.monotonic()) > 0 and not interrupted():
        try:
            message = messages.get(timeout=min(left, LOOK) if watching() else left)
        except Empty:
            continue
        if isinstance(message, Outcome):
            return _with(best, message)
        best = message
    late = f"did not stop within its {limits.seconds:.3g} s and runs on in a thread"
    return Outcome(best, None, "time", None if interrupted() else late)


def _with(best: NDArray[Any] | None, outcome: Outcome) -> Outcome:
    """Return the outcome; if it has no values, with the best ones reported before."""
    return outcome if outcome.values is not None else replace(outcome, values=best)


@contextlib.contextmanager
def _folder() -> Iterator[str | None]:
    """Create a folder for temporary files and remove it afterwards; yield None if that fails, since few need it."""
    try:
        made = tempfile.TemporaryDirectory(prefix="evenlag-", ignore_cleanup_errors=True)
    except OSError:
        yield None
        return
    with made as folder:
        yield folder


def _work(
    backend: Backend, mip: Mip, hint: NDArray[Any] | None, limits: Limits, folder: str | None, out: Connection
) -> None:
    with contextlib.suppress(OSError):
        os.setsid()  # a process group, so that solvers started by the backend end with it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(starter(), lambda: kill_group(os.getpid()))  # if the caller's process is killed, it cannot end this one
    if folder is not None:
        tempfile.tempdir = folder
    outcome = _guarded(backend, mip, hint, limits, out.send)
    out.send(outcome)
    out.close()
    os._exit(0)  # skip the exit handlers inherited from the parent


def _guarded(backend: Backend, mip: Mip, hint: NDArray[Any] | None, limits: Limits, report: Report) -> Outcome:
    try:
        return backend(mip, hint, limits, report)
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> Outcome:
    return Outcome(stopped="failed", failure=f"{type(error).__name__}: {error}")


def _end(process: Any) -> int | None:
    """Kill a backend with all its child processes, and return its exit code, its own if it had ended by itself.

    The process group is killed before the process is waited for: until then its id cannot be reused.
    """
    kill_group(process.pid)
    process.kill()
    process.join()
    exit_code: int | None = process.exitcode
    process.close()
    return exit_code
