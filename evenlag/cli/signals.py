"""Handle an interrupt (Ctrl-C) at each moment of the command, never with a traceback.

While anything is imported, and when all is done: it ends the process at once. While a command runs: KeyboardInterrupt,
so that files are cleaned up. While it searches: `evenlag.model.interrupt`. As little as possible is imported here:
until it is, an interrupt is Python's.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing's takes some milliseconds to import
if TYPE_CHECKING:
    import signal
    from types import FrameType, TracebackType
else:
    try:
        import _signal as signal  # the same without enums, which take longer to import than all else here
    except ImportError:
        import signal

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
        _on_interrupt(_raise)
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        """End at once from now on."""
        _on_interrupt(_leave)


def _on_interrupt(handler: object) -> None:
    """Take interrupts, unless the process was started to ignore them, or this is not its main thread."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        return
    try:
        signal.signal(signal.SIGINT, handler)  # type: ignore[arg-type]
    except ValueError:  # what other threads get
        return


def _raise(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but leave where something is imported: compiled modules make another error of it.

    Beside Spark it is always raised: a Java process may have been started, which is ended with the interpreter.
    """
    raising_interrupts.came = True
    above = None if "py4j" in sys.modules else frame
    while above is not None:
        if above.f_code.co_filename.startswith("<frozen importlib"):
            _leave(number, frame)
        above = above.f_back
    raise KeyboardInterrupt


def _leave(_number: int, _frame: FrameType | None) -> None:
    os.write(2, _LINE)
    os._exit(STATUS)
