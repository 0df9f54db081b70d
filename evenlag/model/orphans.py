"""The end of processes whose parent process has ended."""

from __future__ import annotations

import multiprocessing
import os
import time

PAUSE = 1.0  # seconds between looks


def starter() -> int:
    """Return the id of the process that started this one; it may have ended already."""
    started_by = multiprocessing.parent_process()
    return os.getppid() if started_by is None or started_by.pid is None else started_by.pid


def wait_for_end(parent: int) -> None:
    """Return soon after the parent process, of this id, has ended."""
    while os.getppid() == parent:
        time.sleep(PAUSE)
