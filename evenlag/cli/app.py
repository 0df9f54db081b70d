"""Root command: dispatch to `evenlag.cli.commands`, error messages and exit statuses."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable

import click
from click.exceptions import NoArgsIsHelpError, NoSuchOption

from evenlag import __version__
from evenlag.cli.catalogue import CONTEXT, Catalogue
from evenlag.cli.commands import COMMANDS
from evenlag.cli.former_names import present_form
from evenlag.cli.paths import as_given
from evenlag.cli.signals import STATUS, raising_interrupts
from evenlag.cli.terminal import drop, finish, prepare, say
from evenlag.errors import EvenlagError, lacking, printable
from evenlag.model.names import did_you_mean

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # stdout could not be written: an error without a traceback
COMPLETE = "_EVENLAG_COMPLETE"  # environment variable by which a shell asks for completions
LONGEST_LINE = 1_000  # characters of an error message


@click.group(cls=Catalogue, parts=COMMANDS, home="evenlag.cli.commands", context_settings=CONTEXT)
@click.version_option(__version__, prog_name="evenlag")
def evenlag() -> None:
    """Provably good partition assignments for Kafka consumer groups that lag unevenly."""


def run() -> int:
    """Run the command and return its exit status.

    Status 1 is an input error or failed groups of a fleet (one line on stderr), 2 wrong usage, 3 a group left
    unchanged, 130 an interrupt.
    """
    prepare()
    try:
        status = _run()
        finish()
    except OSError as error:
        if error.errno not in FULL:
            raise
        say(f"evenlag: cannot write the output ({os.strerror(error.errno).lower()})", err=True)
        drop(sys.stdout)
        return 1
    return status


def _run() -> int:
    try:
        done = evenlag(prog_name="evenlag", complete_var=COMPLETE, standalone_mode=False)
        return done or 0  # the command's exit status; None means 0
    except NoArgsIsHelpError as error:
        say(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        say(f"evenlag: {_line(_usage(error))}", err=True)
        return error.exit_code
    except SystemExit as end:  # raised by click for completions, and when the reader of its help or version has gone
        drop(sys.stdout)
        return int(end.code or 0) if COMPLETE in os.environ else 0
    except EvenlagError as error:
        say(f"evenlag: {_line(str(error))}", err=True)
        return 1
    except (Exception, KeyboardInterrupt) as error:
        if raising_interrupts.came or isinstance(error, (click.Abort, KeyboardInterrupt)):
            say("evenlag: interrupted", err=True)  # another package may have turned the interrupt into its own error
            return STATUS
        text = lacking(error) if isinstance(error, ModuleNotFoundError) else None
        if text is None:
            raise
        say(f"evenlag: {text}", err=True)
        return 1


def _usage(error: click.ClickException) -> str:
    """Return the text of a usage error in evenlag's style, with the help to consult."""
    context = getattr(error, "ctx", None)
    text = error.format_message().rstrip(".")
    if isinstance(error, NoSuchOption):
        name = "" if context is None else context.command_path.removeprefix("evenlag ")
        if (form := present_form(name, error.option_name)) is not None:
            return f"evenlag {name} has no {error.option_name}: write {form}"
        if context is not None and _has(context, error.option_name):
            return f"{context.command_path} has no {error.option_name}; evenlag fleet {context.info_name} has"
        text = error.message.rstrip(".") + _nearest(error.option_name, error.possibilities or ())
    text = text[:1].lower() + text[1:]
    if context is None:
        return text
    return f"{text}{' See' if text.endswith('?') else '; see'} {context.command_path} --help"


def _nearest(option: str, known: Iterable[str]) -> str:
    """Suggest the nearest option, provided it is also near when the dashes are removed."""
    return did_you_mean(option, [each for each in known if did_you_mean(option.lstrip("-"), [each.lstrip("-")])])


def _has(context: click.Context, option: str) -> bool:
    """Return True if only the `evenlag fleet` form of the command has the option."""
    fleet = evenlag.get_command(context, "fleet")
    if not isinstance(fleet, Catalogue) or context.parent is None or context.parent.command is not evenlag:
        return False
    found = fleet.get_command(context, context.info_name or "")
    return found is not None and any(option in parameter.opts for parameter in found.params)


def _line(error: str) -> str:
    """Return an error message on one line, with unprintable characters escaped."""
    text = printable(" ".join(as_given(error).split()))
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}…"
