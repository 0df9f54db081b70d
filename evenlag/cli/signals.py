"""Handling of an interrupt (Ctrl-C) at each stage of the command, never with a traceback.

During imports and after the work, an interrupt ends the process at once. While a command runs, it raises
KeyboardInterrupt, so that files are cleaned up. While it searches, see `evenlag.model.interrupt`. This module imports
as little as possible, because Python handles interrupts until it is loaded.
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
        import _signal as signal  # signal without its enums, which take longer to import than everything else here
    except ImportError:
        import signal

STATUS = 130  # exit status of an interrupted command, by the convention of shells
_LINE = b"evenlag: interrupted\n"


class leaving_at_once:  # noqa: N801 - a context manager without contextlib, which takes time to import
    """End the process at an interrupt, both inside the block and after it."""

    def __enter__(self) -> None:
        """Install the handler."""
        _on_interrupt(_leave)

    def __exit__(self, kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        """Restore the system's handling: Python's own would print a traceback while it shuts down."""
        _on_interrupt(signal.SIG_DFL)


class raising_interrupts:  # noqa: N801
    """Raise KeyboardInterrupt at an interrupt within."""

    came = False  # whether an interrupt has come, even if another package caught the exception

    def __enter__(self) -> raising_interrupts:
        """Install the handler."""
        raising_interrupts.came = False
        _on_interrupt(_raise)
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        """From now on, let an interrupt end the process at once."""
        _on_interrupt(_leave)


def _on_interrupt(handler: object) -> None:
    """Install a handler, unless the process was started to ignore interrupts or this is not the main thread."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        return
    try:
        signal.signal(signal.SIGINT, handler)  # type: ignore[arg-type]
    except ValueError:  # raised in any thread but the main one
        return


def _raise(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt; during an import, exit instead, because compiled modules turn it into another error.

    With Spark loaded, always raise: a Java process may be running, and the interpreter ends it on its way out.
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
