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
    signal : int or None
        The signal that came first.
    """

    def __init__(self) -> None:
        self.interrupted = False
        self.signal: int | None = None

    def note(self, number: int, _frame: FrameType | None) -> None:
        """Record the first interrupt; raise KeyboardInterrupt at the next one."""
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted, self.signal = True, number


_watch: Watch | None = None


def interrupted() -> bool:
    """Return True if an interrupt has ended the running searches."""
    return _watch is not None and _watch.interrupted


def watching() -> bool:
    """Return True if an interrupt would end the searches of this thread, so that it should wait in short intervals."""
    return _watch is not None and threading.current_thread() is threading.main_thread()


@contextmanager
def ending_searches(*others: signal.Signals) -> Iterator[Watch]:
    """Let the first interrupt inside the block end all searches; let the next one raise KeyboardInterrupt.

    This has no effect outside the main thread, or on a signal that the process was started to ignore, as by nohup.

    Parameters
    ----------
    *others : Signals
        Signals that have the same effect as an interrupt.
    """
    global _watch
    watch = Watch()
    main = threading.current_thread() is threading.main_thread()
    heeded = [each for each in (signal.SIGINT, *others) if main and signal.getsignal(each) is not signal.SIG_IGN]
    if not heeded:
        yield watch
        return
    before = [(each, signal.signal(each, watch.note)) for each in heeded]
    _watch = watch
    try:
        yield watch
    finally:
        _watch = None
        for each, handler in before:
            signal.signal(each, handler)
