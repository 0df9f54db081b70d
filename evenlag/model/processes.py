"""Processes that evenlag starts: forked for one call or serving several, ended with the process that started them.

A solver of the MIP is forked for each model (`model/backends/runner.py`); a Spark task that has failed once forks for
each turn (`in_own_process`); inside a Kafka client and an MCP server, a new interpreter solves one problem after
another (`live/solver_process.py`, `mcp/pool.py`), because a fork would share the client's connections.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeVar

from evenlag.errors import EvenlagError

PAUSE = 1.0  # seconds between looks at the parent process

T = TypeVar("T")


class ProcessDiedError(EvenlagError):
    """Error for a process that ended without an answer."""


def starter() -> int:
    """Return the id of the process that started this one; it may have ended already."""
    started_by = multiprocessing.parent_process()
    return os.getppid() if started_by is None or started_by.pid is None else started_by.pid


def wait_for_end(parent: int) -> None:
    """Return soon after the parent process, of this id, has ended."""
    while os.getppid() == parent:
        time.sleep(PAUSE)


def end_with(parent: int, end: Callable[[], object] = lambda: None) -> None:
    """Exit soon after the parent process, of this id, has ended, even during a search; call `end` first."""

    def watch() -> None:
        wait_for_end(parent)
        end()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def kill_group(leader: int) -> None:
    """Kill a process that leads its group, with all processes that it started."""
    with contextlib.suppress(OSError):
        os.killpg(leader, signal.SIGKILL)


def in_own_process(call: Callable[[], T]) -> T:
    """Call a function in a forked process, and return its result.

    Raises
    ------
    ProcessDiedError
        The process ended without a result: killed, out of memory, or crashed in native code.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, call))
    process.start()
    sender.close()
    try:
        answer: T = receiver.recv()
    except EOFError:
        process.join()
        code = process.exitcode or 0
        how = f"signal {-code}" if code < 0 else f"status {code}"
        raise ProcessDiedError(f"its process ended with {how}: out of memory, or a crash") from None
    finally:
        receiver.close()
    process.join()
    return answer


def _answer(sender: Connection, call: Callable[[], object]) -> None:
    sender.send(call())
    sender.close()
