"""Limits in processor time, for measurements on a machine that others use too."""

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from unittest.mock import patch

from evenlag.search import clock


def seconds() -> float:
    """Return the processor time of this process and of all that it has started and ended, in seconds."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


@contextmanager
def processor_time() -> Iterator[None]:
    """Let limits of searches count processor time; only solvers in a process of their own still go by the clock."""
    with patch.object(clock, "time", SimpleNamespace(monotonic=seconds)):
        yield
