"""Decorators and callbacks from which the options of commands are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Command = Callable[..., Any]


def together(*several: Command) -> Command:
    """Return several options as one decorator; help lists them in this order."""

    def add(command: Command) -> Command:
        for option in reversed(several):
            command = option(command)
        return command

    return add


def price(_: click.Context, __: click.Parameter, value: str) -> str | float:
    """Read a price: a number where it is one, else the text for whoever checks it."""
    try:
        return float(value) if "." in value else int(value)
    except ValueError:
        return value


def names(_: click.Context, __: click.Parameter, value: str | None) -> list[str] | None:
    """Read names joined by commas."""
    return None if value is None else [name.strip() for name in value.split(",") if name.strip()]


def settings(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Read `NAME=VALUE`, given any number of times."""
    pairs = [value.partition("=") for value in values]
    for name, equals, _value in pairs:
        if not name or not equals:
            raise click.BadParameter(f"{name!r} is no NAME=VALUE")
    return {name: value for name, _equals, value in pairs}
