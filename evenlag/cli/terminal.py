"""What the command shows: reports and JSON on stdout, notes, progress and errors on stderr."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import click
from rich.console import Console, RenderableType
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from evenlag.model.values import printable

WIDE = 132  # columns where there is no terminal to ask

err = Console(stderr=True)


def _stdout() -> Console:
    """A console that takes names as they are: what looks like rich's markup, or like an emoji, is part of a name."""
    plain = partial(Console, highlight=False, markup=False, emoji=False)
    console = plain()
    return console if console.is_terminal or "COLUMNS" in os.environ else plain(width=WIDE)


def print_json(document: Any) -> None:
    """Print one line of JSON."""
    click.echo(json.dumps(document))


def show(report: RenderableType, document: Any, as_json: bool) -> None:
    """Print a report for a person, or the same as one line of JSON."""
    if as_json:
        print_json(document)
    else:
        _stdout().print(report, crop=False)


def show_notes(notes: Iterable[str]) -> None:
    """Print below a report what its reader should know."""
    for note in notes:
        _stdout().print(f"note: {note}", style="yellow")


def fleet_notes(errors: Sequence[str], rejects: int, written: Sequence[str]) -> list[Text]:
    """Return what the report of a fleet says below its table: groups that failed, rows rejected, tables written."""
    notes = [Text(f"failed: {error}", style="red") for error in errors]
    if rejects:
        notes.append(Text(f"note: {rejects:,} rows rejected; `evenlag audit` lists them", style="yellow"))
    if written:
        notes.append(Text("written: " + ", ".join(written)))
    return notes


def warn(notes: Iterable[str]) -> None:
    """Print notes on stderr, beside output that is not for a person."""
    for note in notes:
        click.echo(f"note: {printable(note)}", err=True)


@contextmanager
def working(what: str) -> Iterator[Callable[[str, int, int], None]]:
    """Show that work goes on, on a terminal only; gives a function that says how much of which part is done."""
    with Progress(
        SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn(), console=err,
        transient=True, disable=not err.is_terminal,
    ) as progress:  # fmt: skip
        task = progress.add_task(what)
        yield lambda part, done, total: progress.update(task, description=f"{what}: {part}, {done:,} of {total:,}")
