"""Runs a backend in a process of its own, so that one that hangs or dies costs nothing but its time."""

from __future__ import annotations

import contextlib
import multiprocessing as mp
import os
import signal
import time
import warnings
from multiprocessing.connection import Connection
from typing import Any

from numpy.typing import NDArray

from evenlag.model.backends.outcome import Backend, Limits, Outcome
from evenlag.model.formulation import Mip

GRACE = 0.05  # seconds past its limit in which a backend may hand over its result


def run(backend: Backend, mip: Mip, hint: NDArray[Any] | None, limits: Limits) -> Outcome:
    """Run `backend` on the program and return what it found, at the latest just after `limits.seconds`.

    The best solution reported so far is kept outside: it survives a backend that is ended or dies. One that had to be
    ended has stopped by "time", and `failure` says so.
    """
    deadline = time.monotonic() + limits.seconds
    context: Any = mp.get_context("fork" if "fork" in mp.get_all_start_methods() else "spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(backend, mip, hint, limits, theirs), daemon=True)
    with warnings.catch_warnings():
        # Forking beside threads can block the child on a lock; the deadline below ends such a child.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            process.start()
        except AssertionError:  # inside a daemonic pool worker no process may be started
            return _guarded(backend, mip, hint, limits)
    theirs.close()
    best: NDArray[Any] | None = None
    try:
        while True:
            left = deadline + GRACE - time.monotonic()
            if not ours.poll(max(left, 0)):
                return Outcome(best, None, "time", f"did not stop within its {limits.seconds:.3g} s and was ended")
            try:
                message = ours.recv()
            except EOFError:
                process.join(1)
                return Outcome(best, None, "failed", f"died (exit code {process.exitcode})")
            if isinstance(message, Outcome):
                return message if message.values is not None else Outcome(
                    best, message.bound, message.stopped, message.failure
                )  # fmt: skip
            best = message
    finally:
        _end(process)
        ours.close()


def _work(backend: Backend, mip: Mip, hint: NDArray[Any] | None, limits: Limits, out: Connection) -> None:
    with contextlib.suppress(OSError):
        os.setsid()  # a group of its own, so that solvers it starts are ended with it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    outcome = _guarded(backend, mip, hint, limits, out)
    out.send(outcome)
    out.close()
    os._exit(0)  # skip exit handlers inherited from the parent


def _guarded(
    backend: Backend, mip: Mip, hint: NDArray[Any] | None, limits: Limits, out: Connection | None = None
) -> Outcome:
    try:
        return backend(mip, hint, limits, out.send if out is not None else lambda _: None)
    except Exception as error:
        return Outcome(stopped="failed", failure=f"{type(error).__name__}: {error}")


def _end(process: Any) -> None:
    if process.is_alive():
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
    process.join()
    process.close()
