"""Number formatting for people."""

from __future__ import annotations

import math
from fractions import Fraction


def number(value: int | float | Fraction | str | None) -> str:
    """Format a number with thousands separators; whole numbers and those from 1,000 up have no decimals."""
    if value is None:
        return "–"
    value = value if isinstance(value, int) else float(value)
    return f"{value:,.0f}" if isinstance(value, int) or value.is_integer() or abs(value) >= 1000 else f"{value:,.2f}"


def percent(share: float | None) -> str:
    """Format a fraction as a percentage; a small one keeps a significant digit."""
    if share is None:
        return "–"
    return "0 %" if share == 0 else f"{share:.2%}".replace("%", " %") if share >= 5e-5 else f"{share * 100:.1g} %"


def quantity(count: int, what: str) -> str:
    """Return a count with its noun, plural unless the count is 1; `what` is the singular."""
    return f"{count:,} {what}" + ("s" if count != 1 else "")


def duration(seconds: Fraction | float | None) -> str:
    """Return a duration in at most two units, rounded to whole seconds; below a minute to three digits."""
    if seconds is None:
        return "–"
    if seconds == math.inf:
        return "never"
    seconds = float(seconds)
    seconds = seconds if seconds >= 60 else float(f"{seconds:.3g}")
    for size, unit, part, smaller in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            whole, rest = divmod(round(seconds / part), size // part)
            return f"{whole} {unit} {rest} {smaller}" if rest else f"{whole} {unit}"
    return f"{seconds:g} s"
