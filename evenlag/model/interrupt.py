"""An interrupt (Ctrl-C) that ends a search as its time limit would, so that what was found until then is not lost.

The command asks for that. In a program that imports evenlag an interrupt raises KeyboardInterrupt, as ever.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

LOOK = 0.1  # seconds between looks where something is waited for


class Watch:
    """Return whether an interrupt has come.

    Attributes
    ----------
    interrupted : bool
    """

    def __init__(self) -> None:
        self.interrupted = False

    def note(self, _signal: int, _frame: FrameType | None) -> None:
        """Take the first interrupt down; raise KeyboardInterrupt at the next one."""
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True


_watch: Watch | None = None


def interrupted() -> bool:
    """Return whether an interrupt has ended the running searches."""
    return _watch is not None and _watch.interrupted


def watching() -> bool:
    """Return whether an interrupt would end the searches of this thread, so that waits should be short."""
    return _watch is not None and threading.current_thread() is threading.main_thread()


@contextmanager
def ending_searches() -> Iterator[Watch]:
    """Have the first interrupt within end every search at once; the next one raises KeyboardInterrupt.

    Only the main thread is interrupted, and no process that was started to ignore that, as by nohup.
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
