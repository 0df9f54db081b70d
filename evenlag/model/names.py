"""Names that users write: of parameters, and of the few values that some of them take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import wraps
from typing import ParamSpec, Self, TypeVar

from evenlag.errors import InvalidProblemError

P = ParamSpec("P")
R = TypeVar("R")
_LEAST_PART = 3  # letters of a word that is the first part of another


class Name(StrEnum):
    """One of a few names; `Name.of` reads a parameter."""

    __repr__ = str.__repr__

    @classmethod
    def of(cls, value: object, parameter: str) -> Self:
        """Return the member that a parameter names.

        Raises
        ------
        InvalidProblemError
            There is none; the message lists those that there are.
        """
        known = cls._value2member_map_.get(value) if isinstance(value, str) else None  # quicker than a look at each
        return known if isinstance(known, cls) else cls(one_of(tuple(cls), value, parameter))


def one_of(known: Iterable[str], value: object, parameter: str) -> str:
    """Return the value of a parameter that must be one of a few words.

    Raises
    ------
    InvalidProblemError
        It is none of them; the message lists them and names the nearest.
    """
    words = tuple(known)
    if value in words:
        return str(value)
    raise InvalidProblemError(
        f"{parameter} must be one of {', '.join(words)}, not {value!r}{did_you_mean(value, words)}"
    )


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Name the known word that is nearest to one that is not known; nothing where none is near.

    Examples
    --------
    >>> did_you_mean("balanse", ["balance", "slack"])
    "; did you mean 'balance'?"
    >>> did_you_mean("drain", ["drain_seconds", "capacity"])
    "; did you mean 'drain_seconds'?"
    >>> did_you_mean("x", ["balance", "slack"])
    ''
    """
    from difflib import get_close_matches  # only where something is wrong

    words = {_plain(each): each for each in reversed(list(known))}
    near = get_close_matches(_plain(word), words, n=1) if isinstance(word, str) else []
    if not near and isinstance(word, str) and len(word) >= _LEAST_PART:
        near = [each for each in words if each.startswith(f"{_plain(word)}-")]
    return f"; did you mean {words[near[0]]!r}?" if near else ""


def _plain(word: str) -> str:
    """Return a word as it is compared: `Fewest_Moves` is as good as `fewest-moves`."""
    return word.lower().replace("_", "-").replace(" ", "-")


def unknown_keyword(call: str, word: str, known: Iterable[str]) -> TypeError:
    """Return the error of a call that is given a keyword it does not have."""
    return TypeError(f"{call}() got an unexpected keyword argument {word!r}{did_you_mean(word, known)}")


def keywords_of(function: Callable[..., object]) -> list[str]:
    """Return the parameters of a function that have names."""
    parameters = inspect.signature(function).parameters
    return [name for name, each in parameters.items() if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]


def spelled(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that an unknown keyword is answered with the nearest that it has."""
    known = keywords_of(function)

    @wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        for word in keywords:
            if word not in known:
                raise unknown_keyword(function.__qualname__, word, known)
        return function(*arguments, **keywords)

    return call
