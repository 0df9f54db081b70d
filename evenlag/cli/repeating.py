"""Arguments of the running command, to suggest other commands on the same input."""

from __future__ import annotations

import shlex
from collections.abc import Container
from typing import Any

import click

from evenlag.cli.catalogue import GIVEN


def input_given() -> str:
    """Return INPUT as given, quoted for a shell."""
    context = click.get_current_context()
    return shlex.join([str(_parsed(context)["path"])])


def options_given(names: Container[str | None]) -> str:
    """Return the options of the running command that were given and are among `names`, quoted for a shell."""
    context = click.get_current_context()
    given = _parsed(context)
    words: list[str] = []
    for option in context.command.params:
        if not isinstance(option, click.Option) or option.name not in given or option.name not in names:
            continue
        flag = max(option.opts, key=len)
        values = given[option.name] if option.multiple else [given[option.name]]
        words += [flag] if option.is_flag else [word for value in values for word in (flag, str(value))]
    return shlex.join(words)


def _parsed(context: click.Context) -> dict[str, Any]:
    """Return the arguments by name, as written, before any conversion."""
    return dict(context.command.make_parser(context).parse_args(args=list(context.meta[GIVEN]))[0])
