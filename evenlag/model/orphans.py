"""The end of processes whose parent process has ended."""

from __future__ import annotations

import os
import time

PAUSE = 1.0  # seconds between looks


def wait_for_end(parent: int) -> None:
    """Return soon after the parent process, of this id, has ended."""
    while os.getppid() == parent:
        time.sleep(PAUSE)
