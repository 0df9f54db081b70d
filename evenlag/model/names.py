"""Names in the interface: of parameters, and of the values of enumerated parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields
from enum import StrEnum
from functools import wraps
from typing import Any, ParamSpec, Self, TypeVar

from evenlag.errors import InvalidProblemError

P = ParamSpec("P")
R = TypeVar("R")
_LEAST_PART = 3  # least number of letters for a match by the beginning


class Name(StrEnum):
    """An enumerated value; `Name.of` parses a parameter."""

    __repr__ = str.__repr__

    @classmethod
    def of(cls, value: object, parameter: str) -> Self:
        """Return the member named by a parameter's value.

        Raises
        ------
        InvalidProblemError
            The value is not a member; the message lists the valid ones.
        """
        known = cls._value2member_map_.get(value) if isinstance(value, str) else None  # faster than comparing
        return known if isinstance(known, cls) else cls(one_of(tuple(cls), value, parameter))


def one_of(known: Iterable[str], value: object, parameter: str) -> str:
    """Return a parameter's value, which must be one of the known words.

    Raises
    ------
    InvalidProblemError
        The value is not known; the message lists the valid ones and suggests the nearest.
    """
    words = tuple(known)
    if value in words:
        return str(value)
    raise InvalidProblemError(
        f"{parameter} must be one of {', '.join(words)}, not {value!r}{did_you_mean(value, words)}"
    )


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return a suggestion of the known word nearest to an unknown one; empty if none is near.

    Examples
    --------
    >>> did_you_mean("balanse", ["balance", "slack"])
    "; did you mean 'balance'?"
    >>> did_you_mean("drain", ["drain_seconds", "capacity"])
    "; did you mean 'drain_seconds'?"
    >>> did_you_mean("x", ["balance", "slack"])
    ''
    """
    from difflib import get_close_matches  # imported only for errors

    words = {_plain(each): each for each in reversed(list(known))}
    near = get_close_matches(_plain(word), words, n=1) if isinstance(word, str) else []
    if not near and isinstance(word, str) and len(word) >= _LEAST_PART:
        near = [each for each in words if each.startswith(f"{_plain(word)}-")]
    return f"; did you mean {words[near[0]]!r}?" if near else ""


def _plain(word: str) -> str:
    """Return a word normalized for comparison: `Fewest_Moves` equals `fewest-moves`."""
    return word.lower().replace("_", "-").replace(" ", "-")


def unknown_keyword(call: str, word: str, known: Iterable[str]) -> TypeError:
    """Return the TypeError for a call with an unknown keyword."""
    return TypeError(f"{call}() got an unexpected keyword argument {word!r}{did_you_mean(word, known)}")


def keywords_of(function: Callable[..., object]) -> list[str]:
    """Return the names of a function's parameters."""
    parameters = inspect.signature(function).parameters
    return [name for name, each in parameters.items() if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]


def spelled(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that an unknown keyword argument is answered with the nearest known one."""
    known = keywords_of(function)

    @wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        for word in keywords:
            if word not in known:
                raise unknown_keyword(function.__qualname__, word, known)
        return function(*arguments, **keywords)

    return call


def taking(keywords: type, *defaults: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function with `**parameters: Unpack[keywords]`, so that its signature lists each with its default.

    Parameters
    ----------
    keywords : type
        A TypedDict. Parameters that the function itself names keep their place and default.
    *defaults : dataclass
        The first with a field of the parameter's name has its default; without one it is None.

    Returns
    -------
    callable
        The decorator. An unknown keyword argument is answered as by `spelled`.
    """
    values = {each.name: each.default for kind in reversed(defaults) for each in fields(kind)}

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        more = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, annotation=getattr(kind, "__forward_arg__", kind),
                default=inspect.Parameter.empty if values.get(name) is MISSING else values.get(name),
            )
            for name, kind in keywords.__annotations__.items() if name not in signature.parameters
        ]  # fmt: skip
        vars(function)["__signature__"] = signature.replace(parameters=[*own, *more])
        return spelled(function)

    return decorate
