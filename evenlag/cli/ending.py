"""How a command ends that was interrupted while it searched: with what was found until then, and status 130."""

from __future__ import annotations

import click

from evenlag.cli.signals import STATUS
from evenlag.cli.terminal import say
from evenlag.model.interrupt import Watch

_TOLD = "interrupted: this is the best that was found until then"


def notes_of(watch: Watch) -> list[str]:
    """Return what a report, or a document, is to say of an interrupt."""
    return [_TOLD] if watch.interrupted else []


def end(watch: Watch) -> None:
    """End the command if its search was interrupted; its report has been shown."""
    if watch.interrupted:
        say(f"evenlag: {_TOLD}", err=True)
        raise click.exceptions.Exit(STATUS)
