"""Progress of a running job as lines of text, for a log (without Rich, which takes time to import)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread


@contextmanager
def progress_lines(what: str, say: Callable[[str], None], every: float) -> Iterator[Callable[..., None]]:
    """Print a line of progress every few seconds, and one at the end; nothing if the work ends before the first.

    Parameters
    ----------
    what : str
        Name of the things counted.
    say : callable
        Prints a line; a thread calls it.
    every : float
        Seconds between two lines.

    Yields
    ------
    callable
        A function of (done, total, failed=0), as `progress_bar` yields.
    """
    started, counts, ended, lines = time.monotonic(), (0, 0, 0), Event(), 0

    def line() -> str:
        done, total, failed = counts
        of = f" of {total:,}" if total else ""
        parts = [f"{done:,}{of} {what}" if total or done else f"no {what} yet"]
        parts += [f"{failed:,} failed"] if failed else []
        return ", ".join([*parts, f"{time.monotonic() - started:,.0f} s"])

    def show(done: int, total: int, failed: int = 0) -> None:
        nonlocal counts
        counts = done, total, failed

    def talk() -> None:
        nonlocal lines
        while not ended.wait(every):
            say(line())
            lines += 1

    talker = Thread(target=talk, name="evenlag-progress-lines", daemon=True)
    talker.start()
    try:
        yield show
    finally:
        ended.set()
        talker.join()
    if lines:
        say(line())
