"""Times in a text of tables: printed by a loop before or after each description, or on the lines themselves."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any, NamedTuple

from evenlag.errors import SourceError
from evenlag.tables.formats.describe.consistency import Fields
from evenlag.tables.formats.describe.lines import Line
from evenlag.tables.times_of_names import time_in_name

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,]\d+)?)?(?:\s*(?P<half>[AaPp])\.?[Mm]\.?)?"
_ZONE = r"(?:\s*(?P<zone>Z|[A-Z]{2,5}|[+-]\d\d(?::?\d\d)?))?"
_MONTH = r"(?P<name>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_TIMES = tuple(
    re.compile(rf"(?:.*[^\w.:/-])?{pattern}")
    for pattern in (
        rf"(?P<year>\d{{4}})[-/.](?P<month>\d\d)[-/.](?P<day>\d\d)[T _]{_CLOCK}{_ZONE}",  # 2026-11-20 10:00:00+01:00
        rf"{_MONTH}\s+(?P<day>\d{{1,2}}),?\s+{_CLOCK}{_ZONE}\s+(?P<year>\d{{4}})",  # Fri Nov 20 10:00:00 CET 2026
        rf"(?P<day>\d{{1,2}})\.?[ -]{_MONTH}[ -](?P<year>\d{{4}}),?\s+{_CLOCK}{_ZONE}",  # 20 Nov 2026 10:00:00 AM CET
        rf"{_MONTH}\s+(?P<day>\d{{1,2}}),?\s+(?P<year>\d{{4}}),?\s+{_CLOCK}{_ZONE}",  # Nov 20, 2026 10:00:00
    )
)
_SINCE_1970 = re.compile(r"(?:[^\d]*[^\w.:/-])?(?P<seconds>\d{10})(?P<millis>\d{3})?")
_AROUND = " \t=-#*[](){}<>~|:;,.'\""
_DIGITS = 12  # fewest digits in a date and a time
_UTC = ("Z", "UTC", "GMT")


class Stamp(NamedTuple):
    """A time on a line of its own.

    Attributes
    ----------
    line : int
        Line number.
    at : datetime
        The time, in UTC unless the line shows another offset.
    zone : str
        The name of a zone whose offset is not known; else empty.
    """

    line: int
    at: datetime
    zone: str

    @property
    def text(self) -> str:
        """The time in ISO 8601, in UTC."""
        return self.at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def stamp_of(line: Line) -> Stamp | None:
    r"""Return the time at the end of a line that is not a row; None if it does not end in a date and a time.

    Examples
    --------
    >>> from evenlag.tables.formats.describe.lines import lines_of
    >>> texts = "== Fri Nov 20 10:00:00 CET 2026 ==", "Lag at 2026-11-20T10:00:00+01:00:", "1795168800", "[10:00] done"
    >>> [stamp and (stamp.text, stamp.zone) for stamp in map(stamp_of, lines_of("\n".join(texts)))]
    [('2026-11-20T10:00:00Z', 'CET'), ('2026-11-20T09:00:00Z', ''), ('2026-11-20T10:00:00Z', ''), None]
    """
    text = line.text.strip(_AROUND)
    for pattern in _TIMES:
        if match := pattern.fullmatch(text):
            return _stamp(line.number, match.groupdict())
    if match := _SINCE_1970.fullmatch(text):
        return Stamp(line.number, datetime.fromtimestamp(int(match["seconds"]), UTC), "")
    word = text.rsplit(" ", 1)[-1]
    compact = time_in_name(word) if sum(map(str.isdigit, word)) >= _DIGITS else None
    return None if compact is None else Stamp(line.number, datetime.fromisoformat(compact), "")


def _stamp(number: int, parts: Mapping[str, str | Any]) -> Stamp | None:
    month, hour, half = parts.get("month"), int(parts["hour"]), (parts["half"] or "").lower()
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    zone = parts["zone"] or "Z"
    try:
        at = datetime(
            int(parts["year"]),
            int(month) if month else 1 + _MONTHS.index(parts["name"].lower()[:3]),
            int(parts["day"]),
            hour,
            int(parts["minute"]),
            int(parts["second"] or 0),
            tzinfo=_offset(zone) if zone[0] in "+-" else UTC,
        )
    except ValueError:  # no such day or hour
        return None
    return Stamp(number, at, "" if zone in _UTC or zone[0] in "+-" else zone)


def _offset(zone: str) -> timezone:
    digits = zone[1:].replace(":", "").ljust(4, "0")
    ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(ahead if zone[0] == "+" else -ahead)


def stamps_of(lines: Iterable[Line], headers: Iterable[Line]) -> list[Stamp]:
    """Return the times on separate lines; in a text without such lines, the times before its headers."""
    own = [stamp for line in lines if (stamp := stamp_of(line)) is not None]
    return own or [stamp for line in headers if (stamp := stamp_of(replace(line, text=line.at))) is not None]


class Stamps:
    """Find the times that apply to the lines of a text.

    Parameters
    ----------
    found : sequence of Stamp
        In the order of the text.
    first : int
        Line number of the first row. Times stand above their rows if one is above the first, else below.
    source : str
        Name of the text in errors.
    """

    def __init__(self, found: Sequence[Stamp], first: int, source: str) -> None:
        self._found, self._source = found, source
        self._lines = [stamp.line for stamp in found]
        self._above = found[0].line < first

    def check_order(self) -> None:
        """Raise an error if times go backwards.

        Raises
        ------
        SourceError
            The message names the lines.
        """
        for before, stamp in pairwise(self._found):
            if stamp.at < before.at:
                raise SourceError(
                    f"{self._source}, line {stamp.line}: the time is before the time on line {before.line}; sort the "
                    "descriptions by time, and print times in UTC (`date -u`)"
                )

    def of(self, line: Line) -> str | None:
        """Return the time that applies to a line; None if there is none.

        It is the nearest time above the line, or below it if the text prints times below.
        """
        place = bisect.bisect_left(self._lines, line.number) - self._above
        return self._found[place].text if 0 <= place < len(self._found) else None

    def notes(self) -> list[str]:
        """Return a note on times in a zone whose offset is unknown."""
        zones = {stamp.zone: stamp.line for stamp in reversed(self._found) if stamp.zone}
        return [f"{self._source}, line {line}: times in {zone} are read as UTC" for zone, line in sorted(zones.items())]


def repetitions(rows: Sequence[tuple[Line, Fields]]) -> Iterator[tuple[Line, Line, bool]]:
    """Yield the lines of each row of a partition that an earlier row of the same time has too: first the earlier one.

    The third item is True if the rows differ.
    """
    seen: dict[tuple[str | None, ...], tuple[Line, Fields]] = {}
    for line, row in rows:
        key = row.get("snapshot_ts"), row["group"], row["topic"], row["partition"]
        first, before = seen.setdefault(key, (line, row))
        if first is not line:
            yield first, line, before != row
