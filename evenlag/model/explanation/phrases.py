"""Names and lists in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenlag.figures import number
from evenlag.model.plan import Number


def named(name: str) -> str:
    """Return a name, quoted if it is empty or has spaces, commas or characters that cannot be printed."""
    plain = name and name.isprintable() and not any(each.isspace() or each in ",;" for each in name)
    return name if plain else repr(name)


def partition(name: Sequence[Any]) -> str:
    """Return a partition's name, `topic-number`."""
    return named(f"{name[0]}-{name[1]}")


def partitions(names: Sequence[Sequence[Any]]) -> str:
    """Return the names of partitions as a list."""
    return joined([partition(name) for name in names])


def joined(words: Sequence[str]) -> str:
    """Return words as a list: `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def listed(words: Sequence[str], total: int) -> str:
    """Return words as a list, with the number of those that are left out of `total`."""
    left = total - len(words)
    return f"{', '.join(words)} and {number(left)} more" if left > 0 else joined(words)


def priced(price: Number) -> str:
    """Return a price in messages; one below 10 gets three significant digits, as prices of bytes are small."""
    return number(price) if price == int(price) or price >= 10 else f"{float(price):.3g}"
