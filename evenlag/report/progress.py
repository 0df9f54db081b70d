"""Progress bar of a running job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.text import Text


class _Rate(TextColumn):
    """Column with the mean number of steps per second."""

    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> Text:
        rate = task.completed / task.elapsed if task.elapsed and task.completed else None
        return Text("" if rate is None else f"{rate:,.1f}/s", style="progress.data.speed")


@contextmanager
def progress_bar(what: str = "groups", console: Console | None = None) -> Iterator[Callable[..., None]]:
    """Show a progress bar with counts, rate, time left and failures, if the output is a terminal or a notebook.

    Parameters
    ----------
    what : str
        Name of the things counted.
    console : rich.console.Console, optional
        Output; by default standard error.

    Yields
    ------
    callable
        A function of (done, total, failed=0), as `run`, `plans` and `audit` take it for `progress`.
    """
    console = console or Console(stderr=True)
    bar = Bar(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate(),
        TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), TextColumn("[red]{task.fields[failures]}"),
        console=console, transient=True, disable=not (console.is_terminal or console.is_jupyter),
    )  # fmt: skip
    with bar:
        task = bar.add_task(what, total=None, failures="")

        def show(done: int, total: int, failed: int = 0) -> None:
            bar.update(task, completed=done, total=total, failures=f"{failed:,} failed" if failed else "")

        yield show


@contextmanager
def spinner(what: str) -> Iterator[Callable[[str, int, int], None]]:
    """Show a spinner if the output is a terminal; yield a function of (part, done, total) that updates its text."""
    console = Console(stderr=True)
    with Bar(
        SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn(), console=console,
        transient=True, disable=not console.is_terminal,
    ) as progress:  # fmt: skip
        task = progress.add_task(what)
        yield lambda part, done, total: progress.update(task, description=f"{what}: {part}, {done:,} of {total:,}")
