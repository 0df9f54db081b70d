"""Figures as people read them."""

from __future__ import annotations

from fractions import Fraction


def number(value: int | float | Fraction | str | None) -> str:
    """Return messages with thousands separators, whole ones without decimals."""
    if value is None:
        return "–"
    value = value if isinstance(value, int) else float(value)
    return f"{value:,.0f}" if isinstance(value, int) or value.is_integer() or abs(value) >= 1000 else f"{value:,.2f}"


def percent(share: float | None) -> str:
    """Return a fraction as a percentage that does not round a small one to nothing."""
    if share is None:
        return "–"
    return "0 %" if share == 0 else f"{share:.2%}".replace("%", " %") if share >= 5e-5 else f"{share * 100:.1g} %"


def quantity(count: int, what: str) -> str:
    """Return a number of things, named in the singular."""
    return f"{count:,} {what}" + ("s" if count != 1 else "")
