"""Ends of commands: the status of a failure, and the best result so far with status 130 after an interrupt."""

from __future__ import annotations

import click

from evenlag.cli.signals import STATUS
from evenlag.cli.terminal import say
from evenlag.model.interrupt import Watch

FAILED = 1  # exit status: the input or a group could not be read or planned
_TOLD = "interrupted: this is the best result found so far"


def notes_of(watch: Watch) -> list[str]:
    """Return the note that a report or document carries after an interrupt."""
    return [_TOLD] if watch.interrupted else []


def end(watch: Watch) -> None:
    """Exit with status 130 if the search was interrupted; call it after the report is shown."""
    if watch.interrupted:
        say(f"evenlag: {_TOLD}", err=True)
        raise click.exceptions.Exit(STATUS)
