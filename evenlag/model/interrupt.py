"""Interrupts (Ctrl-C) that end a search like its time limit does, so that its best result is kept.

The command enables this. In a program that imports evenlag, an interrupt raises KeyboardInterrupt as usual.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

LOOK = 0.1  # seconds between checks while waiting


class Watch:
    """State of an interrupt.

    Attributes
    ----------
    interrupted : bool
        True once an interrupt has come.
    """

    def __init__(self) -> None:
        self.interrupted = False

    def note(self, _signal: int, _frame: FrameType | None) -> None:
        """Record the first interrupt; raise KeyboardInterrupt at the next one."""
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True


_watch: Watch | None = None


def interrupted() -> bool:
    """Return True if an interrupt has ended the running searches."""
    return _watch is not None and _watch.interrupted


def watching() -> bool:
    """Return True if an interrupt would end the searches of this thread, so that it should wait in short intervals."""
    return _watch is not None and threading.current_thread() is threading.main_thread()


@contextmanager
def ending_searches() -> Iterator[Watch]:
    """Let the first interrupt inside the block end all searches; let the next one raise KeyboardInterrupt.

    This has no effect outside the main thread, or if the process was started to ignore interrupts, as by nohup.
    """
    global _watch
    watch = Watch()
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield watch
        return
    before = signal.signal(signal.SIGINT, watch.note)
    _watch = watch
    try:
        yield watch
    finally:
        _watch = None
        signal.signal(signal.SIGINT, before)
