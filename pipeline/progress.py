"""Progress of a running job, reported from a thread of the driver."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import Accumulator

Progress = Callable[[int, int], None]
"""Called with the groups done and their total."""

INTERVAL = 0.25  # seconds


@contextmanager
def reporting(progress: Progress | None, done: Accumulator[int] | None, total: int) -> Iterator[None]:
    """Report while the job runs, whenever the count has changed, and once at its end.

    Spark counts a group as done when the task it belongs to ends.
    """
    if progress is None or done is None:
        yield
        return
    ended = threading.Event()

    def watch() -> None:
        reported = 0
        while not ended.wait(INTERVAL):
            if done.value != reported:
                reported = done.value
                progress(reported, total)

    watcher = threading.Thread(target=watch, name="evenlag-progress", daemon=True)
    progress(0, total)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
    progress(total, total)
