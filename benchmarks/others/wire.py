"""One question to a process: a JSON document on stdin, the answer on stdout, time counted as processor time.

The runners import this in environments of their own, with Python 3.10 or newer and nothing else installed.
"""

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

Document = dict[str, Any]
CLOCK = time.perf_counter
SPIN, MOST_STRETCH = 0.2, 20.0  # seconds in which the load of the machine is measured, and the most that is made of it
LOOK = 0.02  # seconds between two looks at the processor time


class OutOfTimeError(Exception):
    """The processor time is used up."""


def serve(answer: Callable[[Document], Document]) -> None:
    """Answer the question on stdin with one processor; whatever a library prints goes to stderr."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with out:
        json.dump(answer(json.load(sys.stdin)), out)


def processor_seconds() -> float:
    """Return user and system time of this process and of the children that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def count_processor_time() -> None:
    """Let the clocks of the `time` module count processor time: limits by them then hold on a loaded machine.

    Call this before the import of whatever reads the clock.
    """
    time.monotonic = time.perf_counter = processor_seconds


@contextmanager
def processor_limit(seconds: float) -> Iterator[None]:
    """Raise OutOfTimeError in the block once it has used this much processor time.

    The alarm goes by the clock and looks at the processor time: while a timer of processor time runs, Linux counts
    that time in ticks.
    """
    until = processor_seconds() + seconds

    def look(_signal: int, _frame: FrameType | None) -> None:
        if processor_seconds() >= until:
            raise OutOfTimeError

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, LOOK, LOOK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def stretch() -> float:
    """Return how many seconds pass for one of processor time, for limits that can only go by the clock."""
    started, used = CLOCK(), time.process_time()
    while CLOCK() < started + SPIN:
        pass
    return min(max((CLOCK() - started) / max(time.process_time() - used, 1e-3), 1.0), MOST_STRETCH)
