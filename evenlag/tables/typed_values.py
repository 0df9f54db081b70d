"""Conversion of a snapshot table's values to the types of their columns."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from evenlag.model.rates import time_micros, time_text

# These patterns mean the same in Python and in Java, whose regular expressions Spark uses. They must match the whole
# text; group 1 is the number.
_SPACE = r"[ \t\n\x0b\f\r]*"
NUMBER = rf"{_SPACE}([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{{1,3}})?){_SPACE}"
WHOLE = rf"{_SPACE}([+-]?[0-9]{{1,40}})(?:\.(?:0{{0,2}}|0{{4,}}))?{_SPACE}"
"""A whole number, optionally with zeros as its fraction: pandas writes 7.0 in a column with nulls.

Three zeros are not a fraction: 1.000 is a thousand in many countries.
"""
ROUNDED = r"E\+[0-9][0-9]"
"""The exponent in a number that a spreadsheet has rounded to a few digits: 1.23457E+11."""

_NUMBER, _WHOLE, _ROUNDED = re.compile(NUMBER), re.compile(WHOLE), re.compile(ROUNDED)
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(?:[., '’\u00a0\u202f][0-9]{3})+")


NULLS = frozenset(("", "-", "n/a", "nan", "<na>", "nat"))
"""Texts that mean no value, in lower case and without blanks around them."""


def is_null(text: str) -> bool:
    """Return whether a text means no value: empty, `-`, `N/A`, `NaN` and the like.

    Examples
    --------
    >>> [text for text in ("", " - ", "N/A", "NaN", "0", "none-1") if is_null(text)]
    ['', ' - ', 'N/A', 'NaN']
    """
    return text.strip().lower() in NULLS


def text_of(value: Any) -> str | None:
    """Return any value of a table as text: a whole number without a fraction, a time in ISO 8601 in UTC.

    Examples
    --------
    >>> text_of(7.0), text_of(True), text_of(datetime(2026, 1, 31, tzinfo=UTC))
    ('7', 'true', '2026-01-31T00:00:00.000Z')
    """
    if value is None or (isinstance(value, float | Decimal) and value != value):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float | Decimal) and math.isfinite(value) and value == int(value):
        return str(int(value))
    if isinstance(value, datetime):
        return time_text(value if value.tzinfo else value.replace(tzinfo=UTC))
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value)


def plain_value(value: Any, kind: str) -> Any:
    """Convert a value to the type of its column (`Column.kind`); return it unchanged if that is not possible.

    `tables.arrow_values` converts whole columns by this rule.

    Examples
    --------
    >>> [plain_value(text, "integer") for text in ("7.0", "7E3", "7.5", "7.000", "7.12346E+11", "N/A")]
    [7, 7000, '7.5', '7.000', '7.12346E+11', None]
    """
    if isinstance(value, float) and math.isnan(value):  # a null in pandas
        return None
    if isinstance(value, str) and is_null(value):
        return None
    if isinstance(value, datetime):
        return text_of(value)
    if kind in ("strings", "racks") and isinstance(value, str):
        return _names(value, blanks=kind == "racks")
    if kind == "integer":
        return _whole_number(value)
    if kind == "number" and isinstance(value, str) and (match := _NUMBER.fullmatch(value)):
        return float(match[1])
    if kind == "boolean" and isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip(" ").lower(), value)
    return value


def advice(value: object) -> str:
    """Return how to write a value that is meant as a whole number, for an error; empty without advice.

    Examples
    --------
    >>> advice("1,900"), advice("many")
    (' (write it without marks between thousands)', '')
    """
    text = value.strip() if isinstance(value, str) else ""
    if _THOUSANDS.fullmatch(text):
        return " (write it without marks between thousands)"
    return " (a spreadsheet has rounded it: export all digits)" if _ROUNDED.search(text) else ""


def snapshot_order(ts: object) -> tuple[bool, float, str]:
    """Return the sort key of a snapshot's time: an ISO 8601 time in any zone, or a number.

    Null comes first, then texts that are neither a time nor a number, in alphabetical order. `spark.native.fates`
    implements the same order in native Spark columns.

    Examples
    --------
    >>> sorted(["2026-10-25T02:10:00+01:00", "2026-10-25T02:30:00+02:00", "noon", None], key=snapshot_order)
    [None, 'noon', '2026-10-25T02:30:00+02:00', '2026-10-25T02:10:00+01:00']
    """
    number = plain_value(ts, "number")
    if not isinstance(number, int | float):
        number = time_micros(ts)
    return ts is not None, -math.inf if number is None else number, str(ts)


def _whole_number(value: Any) -> Any:
    if isinstance(value, str):
        if match := _WHOLE.fullmatch(value):
            return int(match[1])
        match = _NUMBER.fullmatch(value)
        exact = match and "e" in match[1].lower() and not _ROUNDED.search(match[1])
        real = float(match[1]) if match and exact else math.nan
        return int(real) if real.is_integer() else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _names(text: str, blanks: bool) -> Any:
    """Split names joined by `;` or in a JSON array; keep empty names only with `blanks`, and other JSON unchanged."""
    if not text.lstrip().startswith("["):
        names = [name.strip(" ") for name in text.split(";")]
        return names if blanks else list(filter(None, names))
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return names if all(isinstance(name, str) for name in names) else text
