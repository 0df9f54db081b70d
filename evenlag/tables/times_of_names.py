"""Times in file names, for texts that do not contain their time."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_TIME = re.compile(
    r"(?<![0-9])([0-9]{4})(-?)([0-9]{2})\2([0-9]{2})"
    r"(?:[T_ -]?([0-9]{2})[-:.]?([0-9]{2})(?:(?!-[0-9]{2}:)[-:.]?([0-9]{2}))?)?"
    r"(Z|[+][0-9]{2}(?::?[0-9]{2})?|-(?:0[0-9]|1[0-2]):?[03]0)?(?!T?[0-9])"
)


def time_in_name(stem: str) -> str | None:
    """Return the time in a file name without suffix, in ISO 8601; None if there is none, or more than one.

    A time without a zone is in UTC; a date without a time is the beginning of that day.

    Examples
    --------
    >>> time_in_name("20260131T120000Z"), time_in_name("offsets-2026-01-31_13-00")
    ('2026-01-31T12:00:00Z', '2026-01-31T13:00:00Z')
    >>> time_in_name("2026-01-31T12:00:00-0500"), time_in_name("20260131T120000-0001")
    ('2026-01-31T17:00:00Z', '2026-01-31T12:00:00Z')
    >>> time_in_name("groups-2"), time_in_name("2026-02-30"), time_in_name("00010101T000000+0200")
    (None, None, None)
    """
    matches = list(_TIME.finditer(stem))
    if len(matches) != 1:
        return None
    year, _, month, day, hour, minute, second, zone = matches[0].groups()
    text = f"{year}-{month}-{day}T{hour or '00'}:{minute or '00'}:{second or '00'}{zone or 'Z'}"
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError):  # no such day, or before the year 1
        return None
