"""The command itself: its parts from `evenlag.cli.commands`, and what becomes of errors."""

from __future__ import annotations

import contextlib
import errno
import os
import sys

import click

from evenlag import __version__
from evenlag.cli import commands
from evenlag.cli.paths import as_given
from evenlag.errors import EvenlagError, lacking
from evenlag.model.values import printable

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # files that cannot be written are errors of evenlag's own
LONGEST_LINE = 1_000  # characters of an error


@click.group(
    commands=[part for part in vars(commands).values() if isinstance(part, click.Command)],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="evenlag")
def evenlag() -> None:
    """Provably good partition assignments for Kafka consumer groups that lag unevenly."""


def main() -> None:
    """Run the command; input errors are one line on stderr and status 1, wrong usage is 2, a group left alone 3."""
    try:
        sys.exit(evenlag(standalone_mode=False))  # what a command exits with; None, which is 0, if it just ends
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("evenlag: interrupted", err=True)
        sys.exit(130)
    except EvenlagError as error:
        click.echo(f"evenlag: {_line(error)}", err=True)
        sys.exit(1)
    except ModuleNotFoundError as error:
        if (text := lacking(error)) is None:
            raise
        click.echo(f"evenlag: {text}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        if error.errno not in FULL:
            raise
        click.echo(f"evenlag: the output cannot be written ({os.strerror(error.errno).lower()})", err=True)
        _drop_output()
        sys.exit(1)


def _drop_output() -> None:
    """Have what is left of the output go nowhere: Python writes it once more as it ends."""
    with contextlib.suppress(OSError):  # of what is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _line(error: Exception) -> str:
    """Return an error as one line, whatever the names in it are."""
    text = printable(" ".join(as_given(str(error)).split()))
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}…"
