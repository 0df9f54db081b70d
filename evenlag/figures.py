"""Number formatting for people."""

from __future__ import annotations

import math
from collections.abc import Collection
from fractions import Fraction
from itertools import islice
from numbers import Rational


def number(value: int | float | Fraction | str | None) -> str:
    """Format a number with thousands separators; whole numbers and those from 1,000 up have no decimals.

    In pages, `page.js` follows the same rule.
    """
    if value is None:
        return "–"
    if isinstance(value, Rational) and (value.denominator == 1 or abs(value) >= 1000):
        return f"{round(value):,}"  # exact: floats have no whole numbers beyond 2^53
    value = float(value)
    return f"{value:,.0f}" if value.is_integer() or abs(value) >= 999.995 else f"{value:,.2f}"


def at_least(value: int | Fraction) -> str:
    """Format a number >= 0 like `number`, rounded up: a limit of this value can be kept if one of `value` can."""
    return number(Fraction(math.ceil(value * 100), 100) if value < 1000 else math.ceil(value))


def at_most(value: int | Fraction) -> str:
    """Format a number >= 0 like `number`, rounded down: a lower bound stays one."""
    return number(Fraction(math.floor(value * 100), 100) if value < 1000 else math.floor(value))


def exactly(value: int | Fraction) -> str:
    """Format a number >= 0 with all digits before the point, and up to six after it."""
    whole, rest = divmod(Fraction(value), 1)
    if not whole:
        return f"{float(rest):.10g}"
    return f"{int(whole):,}" + (f"{float(rest):.6f}".rstrip("0").removeprefix("0") if rest else "")


def percent(share: float | None) -> str:
    """Format a fraction as a percentage; a small one keeps a significant digit."""
    if share is None:
        return "–"
    return "0 %" if share == 0 else f"{share:.2%}".replace("%", " %") if share >= 5e-5 else f"{share * 100:.1g} %"


def quantity(count: int, what: str) -> str:
    """Return a count with its noun, plural unless the count is 1; `what` is the singular."""
    return f"{count:,} {what}" + ("s" if count != 1 else "")


def some(names: Collection[object], most: int = 8) -> str:
    """Join the first names by commas, and add the number of the others; no names give an empty text."""
    shown = ", ".join(map(str, islice(names, most)))
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def messages(value: int | float | Fraction) -> str:
    """Return a number of messages with its noun."""
    return f"{number(value)} message" + ("s" if value != 1 else "")


def span(fewest: int, most: int, what: str) -> str:
    """Return a range of counts with its noun; `what` is the singular."""
    if fewest == most:
        return quantity(most, what)
    return f"at most {quantity(most, what)}" if not fewest else f"{fewest:,} to {quantity(most, what)}"


def duration(seconds: Fraction | float | None) -> str:
    """Return a duration in at most two units, rounded to the smaller; below a minute in seconds of three digits."""
    if seconds is None:
        return "–"
    if seconds == math.inf:
        return "never"
    seconds = float(seconds)
    grain = 3_600 if seconds >= 86_400 else 60 if seconds >= 3_600 else 1
    seconds = round(seconds / grain) * grain if seconds >= 60 else float(f"{seconds:.3g}")  # may reach the next unit
    for size, unit, part, smaller in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            whole, rest = divmod(round(seconds / part), size // part)
            return f"{whole} {unit} {rest} {smaller}" if rest else f"{whole} {unit}"
    return f"{seconds:g} s"
