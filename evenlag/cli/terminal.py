"""Terminal output: reports and JSON on stdout; notes, progress and errors on stderr.

If the reader of a pipe leaves (`evenlag … | head -1`), the remaining output is discarded and the work goes on to its
end.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from evenlag import report
from evenlag.errors import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

EVERY = 10.0  # seconds between lines of progress
WIDE = 132  # columns of a report that is not printed to a terminal
_PLAIN = {"×": "x", "…": "...", "█": "#", "▏": "|", "─": "-", "→": "->", "±": "+/-", "≥": ">=",
          "≤": "<=", "–": "-", "·": "."}  # fmt: skip


def prepare() -> None:
    """Discard output to closed streams, and print characters missing from a stream's encoding as ASCII."""
    codecs.register_error("evenlag", _plain)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the parent process: `evenlag … >&-`
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open to the end
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="evenlag")


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Return ASCII replacements for characters that cannot be encoded."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    texts = error.object[error.start : error.end]
    return "".join(_PLAIN.get(each, each.encode("ascii", "backslashreplace").decode()) for each in texts), error.end


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a line unchanged."""
    with _reader_may_leave(sys.stderr if err else sys.stdout):
        click.echo(text, err=err, nl=nl)


def print_json(document: Any) -> None:
    """Print one line of JSON."""
    say(json.dumps(document))


def show(*reports: RenderableType) -> None:
    """Print reports on stdout."""
    from evenlag.report.plain import Harmless  # imports Rich; see `_stdout`

    with _reader_may_leave(sys.stdout):
        console = _stdout()
        for each in reports:
            console.print(Harmless(each), crop=False)


def show_notes(notes: Iterable[str]) -> None:
    """Print notes below a report, on stdout."""
    with _reader_may_leave(sys.stdout):
        console = _stdout()
        for note in notes:
            console.print(f"note: {printable(note)}", style="yellow")


def warn(notes: Iterable[str]) -> None:
    """Print notes on stderr, so that stdout holds only data."""
    for note in notes:
        say(f"note: {printable(note)}", err=True)


def working(what: str) -> AbstractContextManager[Callable[[str, int, int], None]]:
    """Show a spinner if stderr is a terminal; the context yields a function that reports (part, done, of how many)."""
    return report.spinner(what) if _shows_progress() else contextlib.nullcontext(_say_nothing)


def progress(what: str) -> AbstractContextManager[Callable[..., None]]:
    """Show a bar if stderr is a terminal, else a line every ten seconds.

    The context yields a function that reports (done, of how many, failed).
    """
    if _shows_progress():
        return report.progress_bar(what)
    return report.progress_lines(what, lambda line: say(f"evenlag: {line}", err=True), EVERY)


def finish() -> None:
    """Flush stdout and stderr.

    Raises
    ------
    OSError
        A stream cannot be written for a reason other than a reader that left.
    """
    for stream in (sys.stdout, sys.stderr):
        with _reader_may_leave(stream):
            stream.flush()


def drop(stream: TextIO) -> None:
    """Discard the stream's remaining output; Python would try to write it again at exit."""
    with contextlib.suppress(OSError, ValueError):  # the stream is not a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def _reader_may_leave(stream: TextIO) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        drop(stream)


def _shows_progress() -> bool:
    return sys.stderr.isatty() or "FORCE_COLOR" in os.environ


def _say_nothing(*_: Any) -> None:
    """Ignore a report of progress."""


def _stdout() -> Console:
    """Return a console that prints names unchanged, even those that look like Rich's markup or emoji codes."""
    # Rich takes some hundredths of a second to import, and JSON output does not need it.
    from rich.console import Console

    class Patient(Console):
        def on_broken_pipe(self) -> None:  # Rich's own method ends the process with status 1
            raise BrokenPipeError

    plain: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
    console = Patient(**plain)
    return console if console.is_terminal or "COLUMNS" in os.environ else Patient(**plain, width=WIDE)
