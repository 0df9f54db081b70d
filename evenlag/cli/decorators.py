"""Decorators and callbacks for building options."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import click

from evenlag.model.names import keywords_of

Command = Callable[..., Any]


class FloatRange(click.FloatRange):
    """A range of numbers without NaN, which click takes to be in every range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        number = super().convert(value, param, ctx)
        return self.fail(f"{value!r} is not a number", param, ctx) if math.isnan(number) else number


def together(*several: Command) -> Command:
    """Combine options into one decorator; the help lists them in this order."""

    def add(command: Command) -> Command:
        for option in reversed(several):
            command = option(command)
        return command

    return add


def into(name: str, made: Callable[..., Any], like: Callable[..., Any] | None = None) -> Command:
    """Return a decorator, so that the command gets several options as one object.

    Parameters
    ----------
    name : str
        Parameter of the command for the object.
    made : callable
        Called with the options that are named like its parameters, or like the parameters of `like`.
    """
    taken = keywords_of(like or made)

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_object(**parameters: Any) -> Any:
            own = {each: parameters.pop(each) for each in taken if each in parameters}
            return command(**parameters, **{name: made(**own)})

        return with_object

    return decorate


def price(_: click.Context, __: click.Parameter, value: str) -> str | float:
    """Parse a price: a number if it is one, else the text unchanged, to be checked later."""
    try:
        return float(value) if "." in value else int(value)
    except ValueError:
        return value


def names(_: click.Context, __: click.Parameter, value: str | None) -> list[str] | None:
    """Parse names separated by commas."""
    return None if value is None else [name.strip() for name in value.split(",") if name.strip()]


def settings(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Parse the values of a repeatable `NAME=VALUE` option."""
    pairs = [value.partition("=") for value in values]
    for name, equals, _value in pairs:
        if not name or not equals:
            raise click.BadParameter(f"{name!r}: write NAME=VALUE")
    return {name: value for name, _equals, value in pairs}


def pairs(values: Iterable[str]) -> dict[str, str]:
    """Parse `NAME=VALUE` pairs with distinct names; a name may contain an equals sign."""
    found: dict[str, str] = {}
    for value in values:
        name, equals, text = value.rpartition("=")
        if not name or not equals:
            raise click.BadParameter(f"{value!r}: write NAME=VALUE")
        if name in found:
            raise click.BadParameter(f"{name!r} is given twice")
        found[name] = text
    return found


def weights_of_members(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    """Parse the values of a repeatable `NAME=WEIGHT` option."""
    weights: dict[str, float] = {}
    for name, weight in pairs(values).items():
        try:
            weights[name] = int(weight) if weight.isdecimal() else float(weight)
        except ValueError as error:
            raise click.BadParameter(f"{name!r}: the weight must be a number, not {weight!r}") from error
    return weights
