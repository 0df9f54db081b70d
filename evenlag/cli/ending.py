"""The end of a command whose search was interrupted: it prints the best result so far and exits with status 130."""

from __future__ import annotations

import click

from evenlag.cli.signals import STATUS
from evenlag.cli.terminal import say
from evenlag.model.interrupt import Watch

_TOLD = "interrupted: this is the best result found so far"


def notes_of(watch: Watch) -> list[str]:
    """Return the note that a report or document carries after an interrupt."""
    return [_TOLD] if watch.interrupted else []


def end(watch: Watch) -> None:
    """Exit with status 130 if the search was interrupted; call it after the report is shown."""
    if watch.interrupted:
        say(f"evenlag: {_TOLD}", err=True)
        raise click.exceptions.Exit(STATUS)
