"""Commands that are known by name, and imported when one is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from evenlag.cli.signals import STATUS, raising_interrupts
from evenlag.cli.terminal import say
from evenlag.model.names import did_you_mean

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


if TYPE_CHECKING:
    Choice = click.Choice[str]
else:
    Choice = click.Choice  # which earlier versions of click do not subscript


class Word(Choice):
    """One of a few words; an error names the nearest."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return what is wrong with another word."""
        return super().get_invalid_choice_message(value, ctx).rstrip(".") + did_you_mean(value, self.choices)


class Command(click.Command):
    """A command that is cleaned up where it is interrupted."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it."""
        with raising_interrupts():
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                say("evenlag: interrupted", err=True)
                raise click.exceptions.Exit(STATUS) from None


def command(*examples: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command of a function; its help ends with these examples, a line each."""
    epilog = "\n".join(["\b", "Examples:", *(f"  {example}" for example in examples)])
    return click.command(cls=Command, epilog=epilog)


class Catalogue(click.Group):
    """A group of commands, each in a file of its own.

    Parameters
    ----------
    parts : mapping of name to help
        The first line of each command's help, so that nothing is imported to list them.
    home : str
        The package with the modules, which are named as the commands in them are, after `prefix`.
    """

    def __init__(self, *args: Any, parts: Mapping[str, str], home: str, prefix: str = "", **more: Any) -> None:
        super().__init__(*args, **more)
        self.parts, self._home, self._prefix = parts, home, prefix

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names."""
        return sorted(self.parts)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command; None if there is none of this name."""
        if cmd_name not in self.parts:
            return None
        name = self._prefix + cmd_name
        found: click.Command = getattr(import_module(f"{self._home}.{name}"), name)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called.

        Raises
        ------
        click.UsageError
            There is none; the message names the nearest.
        """
        name = args[0]
        if name not in self.parts and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(f"no such command {name!r}{did_you_mean(name, self.parts)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.parts[name]) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands, and options of the group, that begin so."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        items = [CompletionItem(name, help=self.parts[name]) for name in names]
        return items + click.Command.shell_complete(self, ctx, incomplete)
