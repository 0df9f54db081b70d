"""Command groups that import a command only when it is used."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from evenlag.cli.former_names import present_form
from evenlag.cli.sections import HEADINGS, heading_of
from evenlag.cli.signals import STATUS, raising_interrupts
from evenlag.cli.terminal import say
from evenlag.errors import EvenlagError
from evenlag.model.names import did_you_mean

GIVEN = "evenlag.cli.given"  # key of the running command's arguments in its context
ALIASES = {"drain": "drain_seconds", "max_drain": "drain_seconds"}  # names of options that have another in Python
COLUMNS = {"auto_offset_reset"}  # parameters that are columns of tables too, by which name errors call them
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


if TYPE_CHECKING:
    Choice = click.Choice[str]
else:
    Choice = click.Choice  # earlier versions of click cannot subscript it


class Word(Choice):
    """A choice among words; an error suggests the nearest."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return the error message for a word that is not a choice."""
        return super().get_invalid_choice_message(value, ctx).rstrip(".") + did_you_mean(value, self.choices)


class Command(click.Command):
    """A command that cleans up its files when interrupted, and remembers its arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and keep them as given."""
        ctx.meta[GIVEN] = list(args)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options below their headings."""
        sections: dict[str, list[tuple[str, str]]] = {heading: [] for heading in HEADINGS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                sections[heading_of(parameter.opts[0])].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn an interrupt into exit status 130, and name options in errors."""
        with raising_interrupts() as handler:
            try:
                status = super().invoke(ctx)
                if handler.came:  # another package has caught it
                    raise KeyboardInterrupt
                return status
            except EvenlagError as error:
                raise type(error)(self._with_options(str(error))) from error
            except KeyboardInterrupt:
                say("evenlag: interrupted", err=True)
                raise click.exceptions.Exit(STATUS) from None

    def _with_options(self, text: str) -> str:
        """Return an error with the options of the command in place of the parameters of Python."""
        options = {each.name: each.opts[0] for each in self.params if isinstance(each, click.Option) and each.name}
        options |= {ALIASES[name]: option for name, option in options.items() if name in ALIASES}
        for name, option in options.items():
            if name in COLUMNS:
                continue
            word = rf"(?<![\w/.'-]){name}(?![\w=(/-]|\.\w)"  # not part of a path, and not a quoted name
            place = word if "_" in name else rf"^{name}(?= must | needs )"
            text = re.sub(place, option, text)
        return text


def command(*examples: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator that makes a command of a function, with these examples at the end of its help."""
    epilog = "\n".join(["\b", "Examples:", *(f"  {example}" for example in examples)])
    return click.command(cls=Command, epilog=epilog)


class Catalogue(click.Group):
    """A group of commands, one module each.

    Parameters
    ----------
    parts : mapping of heading to (mapping of name to help)
        The first line of each command's help, so that listing the commands imports none of them; in the order of the
        list, each heading with its commands.
    home : str
        The package that holds the modules. Each module has the name of its command, preceded by `prefix`.
    """

    def __init__(
        self, *args: Any, parts: Mapping[str, Mapping[str, str]], home: str, prefix: str = "", **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self.parts = {name: text for each in parts.values() for name, text in each.items()}
        self._headings, self._home, self._prefix = parts, home, prefix

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of the commands, in the order of the list."""
        return list(self.parts)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return a command; None if the name is unknown."""
        if cmd_name not in self.parts:
            return None
        name = self._prefix + cmd_name
        found: click.Command = getattr(import_module(f"{self._home}.{name}"), name)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command to run.

        Raises
        ------
        click.UsageError
            The name is unknown; the message has its present form, or suggests the nearest.
        """
        name = args[0]
        if name not in self.parts and not name.startswith("-") and not ctx.resilient_parsing:
            if (form := present_form(str(ctx.info_name), name)) is not None:
                raise click.UsageError(f"{ctx.command_path} has no {name}: write {form}", ctx)
            raise click.UsageError(f"no such command {name!r}{did_you_mean(name, self.parts)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands for the help, under their headings."""
        width = max(map(len, self.parts))
        for heading, commands in self._headings.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands and the group's options that begin with the incomplete word."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        items = [CompletionItem(name, help=self.parts[name]) for name in names]
        return items + click.Command.shell_complete(self, ctx, incomplete)
