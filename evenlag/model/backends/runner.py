"""Runs a backend in a process of its own, so that one that hangs or dies costs nothing but its time."""

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

GRACE = 0.05  # seconds past its limit in which a backend may hand over its result


def run(backend: Backend, mip: Mip, hint: NDArray[Any] | None, limits: Limits) -> Outcome:
    """Run `backend` on the program and return what it found, at the latest just after `limits.seconds`.

    The best solution reported so far is kept outside: it survives a backend that is ended or dies. One that had to be
    ended has stopped by "time", and `failure` says so. What it has started ends with it, and its temporary files go.
    """
    deadline = time.monotonic() + limits.seconds
    with _folder() as folder:
        try:
            process, ours = _started(backend, mip, hint, limits, folder)
        except AssertionError:  # inside a daemonic pool worker no process may be started
            return _in_a_thread(backend, mip, hint, limits, deadline)
        except OSError as error:  # there are as many processes or open files as there may be, or no memory is left
            return _failed(error)
        return _heard(process, ours, limits, deadline)


def _started(*job: Any) -> tuple[Any, Connection]:
    """Start `_work` in a process of its own, and return it with the end of the pipe on which it reports."""
    context: Any = mp.get_context("fork" if "fork" in mp.get_all_start_methods() else "spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(*job, theirs), daemon=True)
    with warnings.catch_warnings(), theirs:
        # Forking beside threads can block the child on a lock; the deadline ends such a child.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    return process, ours


def _heard(process: Any, ours: Connection, limits: Limits, deadline: float) -> Outcome:
    """Return what a backend says until the deadline, and end it."""
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
            except (EOFError, OSError):  # it died, perhaps amid a message, or is about to
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
    """Return what a backend says in a thread of this process until the deadline; a thread cannot be ended."""
    said: SimpleQueue[Any] = SimpleQueue()
    job = threading.Thread(target=lambda: said.put(_guarded(backend, mip, hint, limits, said.put)), daemon=True)
    job.start()
    best: NDArray[Any] | None = None
    while (left := deadline + GRACE - time.monotonic()) > 0 and not interrupted():
        try:
            message = said.get(timeout=min(left, LOOK) if watching() else left)
        except Empty:
            continue
        if isinstance(message, Outcome):
            return _with(best, message)
        best = message
    late = f"did not stop within its {limits.seconds:.3g} s and runs on in a thread"
    return Outcome(best, None, "time", None if interrupted() else late)


def _with(best: NDArray[Any] | None, outcome: Outcome) -> Outcome:
    """Return an outcome, its values the best ones reported where it has none itself."""
    return outcome if outcome.values is not None else replace(outcome, values=best)


@contextlib.contextmanager
def _folder() -> Iterator[str | None]:
    """Give a folder for a backend's temporary files, and remove it; None where there can be none, which few need."""
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
        os.setsid()  # a group of its own, so that solvers it starts are ended with it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if folder is not None:
        tempfile.tempdir = folder
    outcome = _guarded(backend, mip, hint, limits, out.send)
    out.send(outcome)
    out.close()
    os._exit(0)  # skip exit handlers inherited from the parent


def _guarded(backend: Backend, mip: Mip, hint: NDArray[Any] | None, limits: Limits, report: Report) -> Outcome:
    try:
        return backend(mip, hint, limits, report)
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> Outcome:
    return Outcome(stopped="failed", failure=f"{type(error).__name__}: {error}")


def _end(process: Any) -> int | None:
    """End a backend and all that it has started, and return its exit code; one that died by itself keeps its own.

    Its group is ended before anyone waits for it: until then nobody else can have its number.
    """
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()
    exit_code: int | None = process.exitcode
    process.close()
    return exit_code
