"""Exit status of a fleet command after some groups failed: 1, unless `--allow-errors` accepts that share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import click

from evenlag.cli.decorators import Command
from evenlag.cli.ending import FAILED
from evenlag.cli.terminal import say
from evenlag.errors import printable
from evenlag.figures import quantity

LONGEST = 300  # characters of an error in the reason


class Share(click.ParamType):  # type: ignore[type-arg, unused-ignore] # not generic in earlier versions of click
    """A share of all: a percentage, or a fraction from 0 to 1."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Fraction:
        """Return the share as a fraction."""
        text = str(value).strip()
        number, percent, rest = text.partition("%")
        try:
            share = Fraction(number.strip()) / (100 if percent else 1)
        except (ValueError, ZeroDivisionError):
            share = Fraction(-1)
        if rest or not 0 <= share <= 1:
            self.fail(f"must be a share of the groups, such as 5% or 0.05, not {text!r}", param, ctx)
        return share


def allow_errors(lack: str, default: str | None = None) -> Command:
    """Return the option for the share of groups that may fail; `lack` is the verb for such groups."""
    return click.option(
        "--allow-errors", type=Share(), default=default, show_default=default is not None, metavar="SHARE",
        help=f"Share of the groups that may {lack}, such as 5%. Above it, the exit status is 1"
        f"{'.' if default is not None else ', as it is if all do.'}",
    )  # fmt: skip


def end(failed: int, groups: int, allowed: Fraction | None, errors: Sequence[str], lack: str) -> None:
    """Exit with status 1 if more groups failed than are allowed; call it after the report is shown.

    Parameters
    ----------
    failed, groups : int
        Number of groups that failed, and of all groups.
    allowed : Fraction or None
        Largest share of groups that may fail. None: any, but not all.
    errors : sequence of str
        Their errors, the most frequent first.
    lack : str
        The end of the sentence about them: `got no plan`.
    """
    if not failed or (failed < groups if allowed is None else failed <= allowed * groups):
        return
    first = printable(errors[0]) if errors else ""
    first = first if len(first) <= LONGEST else f"{first[:LONGEST]}…"
    enough = math.ceil(Fraction(100 * failed, groups))
    reason = f"{failed:,} of {quantity(groups, 'group')} {lack}{f' ({first})' if first else ''}"
    say(f"evenlag: {reason}; --allow-errors {enough}% accepts as many", err=True)
    raise click.exceptions.Exit(FAILED)
