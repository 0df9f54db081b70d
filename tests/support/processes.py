"""Processes of other programs, as Linux lists them."""

import time
from pathlib import Path


def is_running(pid: int) -> bool:
    """Return whether a process runs; one that has ended may stay until somebody asks for its status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends between opening and reading
        return False


def wait_until_ended(pid: int, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while is_running(pid):
        assert time.monotonic() < until, f"process {pid} goes on"
        time.sleep(0.02)


def children(pid: int | str) -> list[int]:
    """Return the ids of the processes that a process, or "self", has started."""
    return [int(each) for path in Path(f"/proc/{pid}/task").glob("*/children") for each in path.read_text().split()]
