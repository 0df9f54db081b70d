"""Output of the command: reports and JSON on stdout, notes, progress and errors on stderr.

A reader may leave (`evenlag … | head -1`): what is left to say goes nowhere then, and the work goes on to its end.
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

WIDE = 132  # columns where there is no terminal to ask
_PLAIN = {"×": "x", "…": "...", "█": "#", "▏": "|", "─": "-", "→": "->", "±": "+/-", "≥": ">=",
          "≤": "<=", "–": "-", "·": "."}  # fmt: skip


def prepare() -> None:
    """Have output go nowhere where a stream is closed, and print characters that its encoding lacks as ASCII."""
    codecs.register_error("evenlag", _plain)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by whoever started the process: `evenlag … >&-`
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open to the end
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="evenlag")


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Return what is printed in place of characters that cannot be encoded."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    texts = error.object[error.start : error.end]
    return "".join(_PLAIN.get(each, each.encode("ascii", "backslashreplace").decode()) for each in texts), error.end


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a line as it is."""
    with _reader_may_leave(sys.stderr if err else sys.stdout):
        click.echo(text, err=err, nl=nl)


def print_json(document: Any) -> None:
    """Print one line of JSON."""
    say(json.dumps(document))


def show(*reports: RenderableType) -> None:
    """Print reports for a person."""
    with _reader_may_leave(sys.stdout):
        console = _stdout()
        for each in reports:
            console.print(each, crop=False)


def show_notes(notes: Iterable[str]) -> None:
    """Print below a report what its reader should know."""
    with _reader_may_leave(sys.stdout):
        console = _stdout()
        for note in notes:
            console.print(f"note: {note}", style="yellow")


def warn(notes: Iterable[str]) -> None:
    """Print notes on stderr, beside output that is not for a person."""
    for note in notes:
        say(f"note: {printable(note)}", err=True)


def working(what: str) -> AbstractContextManager[Callable[[str, int, int], None]]:
    """Show that work goes on, on a terminal only; gives a function that says how much of which part is done."""
    return report.spinner(what) if _shows_progress() else contextlib.nullcontext(_say_nothing)


def progress(what: str) -> AbstractContextManager[Callable[..., None]]:
    """Show a bar on a terminal only; gives a function that says how many are done, of how many, and how many failed."""
    return report.progress_bar(what) if _shows_progress() else contextlib.nullcontext(_say_nothing)


def finish() -> None:
    """Write what is still to be written.

    Raises
    ------
    OSError
        It cannot be written, for another reason than that nobody reads it.
    """
    for stream in (sys.stdout, sys.stderr):
        with _reader_may_leave(stream):
            stream.flush()


def drop(stream: TextIO) -> None:
    """Have what is left of the output go nowhere: Python writes it once more as it ends."""
    with contextlib.suppress(OSError, ValueError):  # it is not a file
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
    """Take progress down where nobody looks."""


def _stdout() -> Console:
    """A console that takes names as they are: what looks like rich's markup, or like an emoji, is part of a name."""
    # Rich takes some hundredths of a second to import, and JSON does without.
    from rich.console import Console

    class Patient(Console):
        def on_broken_pipe(self) -> None:  # Rich's own ends the process with status 1
            raise BrokenPipeError

    plain: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
    console = Patient(**plain)
    return console if console.is_terminal or "COLUMNS" in os.environ else Patient(**plain, width=WIDE)
