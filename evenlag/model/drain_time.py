"""A ceiling on the lag of members that was given as a time."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from evenlag.figures import at_least, at_most, exactly

_UNITS = ((2 * 86_400, 86_400, "d"), (2 * 3_600, 3_600, "h"), (120, 60, "min"), (0, 1, "s"))  # from seconds; seconds


@dataclass(frozen=True)
class DrainTime:
    """The time within which every member must be able to read its lag.

    Attributes
    ----------
    seconds : Fraction
    rate : Fraction
        Messages per second that a member of mean weight reads.
    parameter : str
        Name of the parameter that gave the time, for errors.
    """

    seconds: Fraction
    rate: Fraction
    parameter: str

    def __str__(self) -> str:
        size, unit = _unit(self.seconds)
        return f"{self.parameter} {exactly(self.seconds / size)} {unit}"

    @property
    def messages(self) -> Fraction:
        """The largest load per weight."""
        return self.seconds * self.rate

    def seconds_for(self, messages: int | Fraction) -> Fraction:
        """Return the time that a load takes, in seconds."""
        return Fraction(messages) / self.rate

    def enough(self, messages: int | Fraction) -> str:
        """Return the time that a load takes, rounded up, in a form that the option accepts."""
        size, unit = _unit(self.seconds_for(messages))
        return f"{at_least(self.seconds_for(messages) / size)} {unit}"

    def needed(self, messages: int | Fraction) -> str:
        """Return the time that a load takes, rounded down: a lower bound stays one."""
        size, unit = _unit(self.seconds_for(messages))
        return f"{at_most(self.seconds_for(messages) / size)} {unit}"


MaxLoad = float | Fraction | DrainTime
"""A ceiling in messages, or as a time."""


def in_messages(max_load: MaxLoad | None) -> float | Fraction | None:
    """Return a ceiling in messages."""
    return max_load.messages if isinstance(max_load, DrainTime) else max_load


def _unit(seconds: Fraction) -> tuple[int, str]:
    """Return the unit for a time, as seconds and symbol; small times have small units, so that rounding is slight."""
    return next((size, unit) for least, size, unit in _UNITS if seconds >= least)
