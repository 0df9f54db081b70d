"""Enums whose members are plain strings, so that they compare, print and serialise as such."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from evenlag.errors import InvalidProblemError


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
        if value in tuple(cls):
            return cls(str(value))
        raise InvalidProblemError(f"{parameter} must be one of {', '.join(cls)}, not {value!r}")
