"""Checks of single values: names, lags, weights, caps, generations and lists of entries.

Each function returns the value in the form used by `Problem`, or raises an `InvalidProblemError` that names the place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any

import numpy as np

from evenlag.errors import InvalidProblemError
from evenlag.model.arrays import NO_CAP
from evenlag.model.lag import MAX_LAG
from evenlag.model.names import did_you_mean

MAX_PARTITION = 2**31 - 1
LARGEST_AMOUNT = 2**53 - 1  # for sizes, traffic and costs: the largest integer that every JSON reader reads exactly
LARGEST_WEIGHT = Fraction(10**9)  # only proportions matter; a larger range would slow down exact arithmetic
MOST_DIGITS = 100  # before or after the decimal point; more would slow down exact arithmetic

_ENTRY = {
    2: "[topic, partition], a text and a whole number",
    3: "[topic, partition, member], a whole number in between",
}


def check_name(name: object, what: str) -> str:
    """Return a name, which must be a non-empty text that can be written to a file."""
    if not isinstance(name, str) or not name:
        raise InvalidProblemError(f"{what} needs a name, a text that is not empty; got {shown(name)}")
    if not is_unicode(name):
        raise InvalidProblemError(f"{what} needs a name of valid Unicode; got {shown(name)}")
    return name


def is_unicode(text: str) -> bool:
    """Return True if a text can be written to a file; JSON allows lone surrogates, which cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_whole(value: object) -> bool:
    """Return True for an integer, of Python or NumPy, but not for booleans or NumPy times."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.timedelta64)


def is_number(value: object) -> bool:
    """Return True for a number, of Python or NumPy, but not for booleans or NumPy times."""
    return isinstance(value, Real) and not isinstance(value, bool | np.timedelta64)


def exact(value: object) -> Fraction | None:
    """Return a number exactly as its decimals express it, so that 0.1 is a tenth; None if it is not a number."""
    if not is_number(value):
        return None
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    return _of_decimals(str(value))


def positive(name: str, value: object, what: str, *, zero: bool = False) -> Fraction:
    """Return a number > 0 (with `zero`, >= 0), exactly as written; `what` says in the error what it must be."""
    number = exact(value)
    if number is None or number < 0 or (number == 0 and not zero):
        raise InvalidProblemError(f"{name} must be {what}, not {shown(value)}")
    return number


def amount(value: object) -> tuple[Fraction | None, bool]:
    """Return a number, given as such or as text, and True if it is a percentage; None if it is not a number."""
    if not isinstance(value, str):
        return exact(value), False
    text = value.strip()
    return _of_decimals(text.removesuffix("%")), text.endswith("%")


def _of_decimals(text: str) -> Fraction | None:
    """Return the number that decimals express; None if they are not a number, or have too many digits."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite() or (number and abs(number.adjusted()) >= MOST_DIGITS):
        return None
    return Fraction(number)


def check_mapping(value: object, what: str, of: str) -> None:
    """Check that a value is a mapping; `of` describes its keys and values for the error."""
    if not isinstance(value, Mapping):
        raise InvalidProblemError(f"{what} must be a mapping of {of}; got {kind(value)}")


def check_fields(entry: Mapping[str, Any], fields: Iterable[str], place: str) -> None:
    """Refuse unknown fields, so that a misspelt one is not silently ignored."""
    for field in entry:
        if field not in fields:
            known = f"known are {', '.join(sorted(fields))}{did_you_mean(field, fields)}"
            raise InvalidProblemError(f"{place}: unknown field {shown(field)}; {known}")


def parse_lag(topic: str, partition: int, lag: Any) -> int:
    """Return a lag in messages, from 0 to 2**62."""
    if type(lag) is int:
        number = lag
    elif is_whole(lag) or (isinstance(lag, float | np.floating) and lag.is_integer()):
        number = int(lag)
    else:
        raise InvalidProblemError(f"{topic}-{partition}: lag must be a whole number of messages, not {shown(lag)}")
    if not 0 <= number <= MAX_LAG:
        raise InvalidProblemError(f"{topic}-{partition}: lag must lie between 0 and 2^62, not {shown(number)}")
    return number


def parse_partition_number(topic: str, key: Any) -> int:
    """Return the partition number that a key represents; in JSON, keys are texts."""
    number = -1
    if isinstance(key, str):
        if key.isascii() and key.isdecimal() and len(key) <= len(str(MAX_PARTITION)):
            number = int(key)
    elif is_whole(key):
        number = int(key)
    if not 0 <= number <= MAX_PARTITION:
        raise InvalidProblemError(f"topic {topic!r}: {shown(key)} is not a partition number (0, 1, 2, …)")
    return number


def parse_weight(place: str, weight: object) -> Fraction:
    """Return the weight of a member or a scenario, exactly as its decimals express it."""
    value = exact(weight)
    if value is None or not 1 / LARGEST_WEIGHT <= value <= LARGEST_WEIGHT:
        raise InvalidProblemError(f"{place}: weight must be a number > 0, between 1e-9 and 1e9, not {shown(weight)}")
    return value


def parse_cap(member: str, cap: Any) -> int:
    """Return the most partitions that a member may hold; `NO_CAP` for None and for values beyond int64."""
    if cap is None:
        return NO_CAP
    if not is_whole(cap) or cap < 0:
        raise InvalidProblemError(f"member {member!r}: max_partitions must be a whole number >= 0, not {shown(cap)}")
    return min(int(cap), NO_CAP)


def parse_generation(member: str, generation: Any) -> int | None:
    """Return the generation in which a member got what it owns, or None."""
    if generation is None:
        return None
    if not is_whole(generation):
        raise InvalidProblemError(f"member {member!r}: generation must be a whole number, not {shown(generation)}")
    return int(generation)


def parse_entries(entries: Any, width: int, place: str) -> list[tuple[Any, ...]]:
    """Return a list of (topic, partition) or (topic, partition, member); topic and partition types are checked.

    A partition given as text is refused: only JSON keys, which are always text, may express a number that way.
    """
    if isinstance(entries, str | bytes | Mapping) or not isinstance(entries, Iterable):
        raise InvalidProblemError(f"{place}: must be a list; got {kind(entries)}")
    parsed = []
    for entry in entries:
        long_enough = isinstance(entry, Sequence) and not isinstance(entry, str) and len(entry) == width
        if not long_enough or not (isinstance(entry[0], str) and (type(entry[1]) is int or is_whole(entry[1]))):
            raise InvalidProblemError(f"{place}: every entry is {_ENTRY[width]}, not {shown(entry)}")
        parsed.append(tuple(entry))
    return parsed


def kind(value: object) -> str:
    """Return the description of a value's type for an error message."""
    return "nothing" if value is None else type(value).__name__


def shown(value: object) -> str:
    """Return a value for an error message, shortened if it is long."""
    if value is None:
        return "nothing"
    try:
        text = str(value) if isinstance(value, Fraction) else repr(value)
    except ValueError:  # Python refuses to print an integer with this many digits
        return "a number of thousands of digits"
    return text if len(text) <= 100 else f"{text[:97]}…"
