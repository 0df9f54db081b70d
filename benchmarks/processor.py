"""Limits in processor time, for measurements on a machine that others use too."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from unittest.mock import patch

from benchmarks.others.wire import processor_seconds
from evenlag.search import clock


@contextmanager
def processor_time() -> Iterator[None]:
    """Let limits of searches count processor time; only solvers in a process of their own still go by the clock."""
    with patch.object(clock, "time", SimpleNamespace(monotonic=processor_seconds)):
        yield
