"""What an interrupt (Ctrl-C) does at each moment of the command; never a traceback.

While the command is imported, and when it is done: it ends at once. While it runs: KeyboardInterrupt, so that files are
cleaned up. While it searches: `evenlag.model.interrupt`. Nothing is imported here that takes time.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

TYPE_CHECKING = False  # that of typing takes some milliseconds
if TYPE_CHECKING:
    from types import FrameType, TracebackType

STATUS = 130  # of a command that was interrupted, as shells have it
_LINE = b"evenlag: interrupted\n"


class leaving_at_once:  # noqa: N801 - a context manager without contextlib, which takes time to import
    """End the process at an interrupt, within and, if it was a process of its own, after that."""

    def __enter__(self) -> None:
        """Take interrupts."""
        _on_interrupt(_leave)

    def __exit__(self, kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        """Leave an interrupt to the system: Python would show a traceback of its own end."""
        _on_interrupt(signal.SIG_DFL)


class raising_interrupts:  # noqa: N801
    """Raise KeyboardInterrupt at an interrupt within."""

    came = False  # whether one has, whatever became of the exception

    def __enter__(self) -> raising_interrupts:
        """Take interrupts."""
        raising_interrupts.came = False
        _on_interrupt(self._raise)
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        """End at once from now on."""
        _on_interrupt(_leave)

    @staticmethod
    def _raise(_signal: int, _frame: FrameType | None) -> None:
        raising_interrupts.came = True
        raise KeyboardInterrupt


def _on_interrupt(handler: object) -> None:
    """Take interrupts, unless the process was started to ignore them or is not ours."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, handler)  # type: ignore[arg-type]


def _leave(_signal: int, _frame: FrameType | None) -> None:
    os.write(sys.stderr.fileno() if hasattr(sys.stderr, "fileno") else 2, _LINE)
    os._exit(STATUS)
