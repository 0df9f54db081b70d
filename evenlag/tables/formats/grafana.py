"""CSV of a Grafana panel whose series are joined by time: a column of times, and a column for each series."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from datetime import UTC, datetime

from evenlag.errors import SourceError
from evenlag.model.values import shown
from evenlag.tables.formats.base import Format, Reading
from evenlag.tables.formats.prometheus import named_series
from evenlag.tables.formats.samples import Sample
from evenlag.tables.formats.series import assemble

_TIME = "time"
_SEPARATOR = re.compile(r"sep=(.)\s*")  # the first line of a CSV for Excel
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_EPOCH = re.compile(r"[0-9]{10}(?P<millis>[0-9]{3})?")
_NOTHING = ("", "null", "undefined", "nan")


def recognises(text: str) -> bool:
    """Return whether a text has such a header: Time, and at least one series with labels."""
    first, second, *_ = [*text.lstrip("\ufeff\r\n").split("\n", 2), ""]
    header = second if _SEPARATOR.fullmatch(first) else first
    if "{" not in header or _TIME not in header[: len(_TIME) + 3].lower():
        return False
    names, *_ = _table(text)
    return names[1][0].strip().lower() == _TIME and any(map(named_series, names[1][1:]))


def _table(text: str) -> list[tuple[int, list[str]]]:
    """Return the cells of each line that is not blank, with its number."""
    lines = text.lstrip("\ufeff").splitlines()
    mark = next((match[1] for line in lines[:1] if (match := _SEPARATOR.fullmatch(line))), None)
    reader = csv.reader(lines[mark is not None :], delimiter=mark or ",", skipinitialspace=True)
    return [(reader.line_num + (mark is not None), cells) for cells in reader if any(cells)]


def read(text: str, source: str) -> Reading:
    """Read the series of consumer groups, with one snapshot for each time.

    Raises
    ------
    SourceError
        A column has no labels, or a value is formatted; also as in `assemble`.
    """
    (number, names), *lines = _table(text)
    series = [named_series(name) for name in names[1:]]
    for name, found in zip(names[1:], series, strict=True):
        if found is None:
            raise SourceError(
                f"{source}, line {number}: column {name!r} has no labels such as {{group=…, topic=…, partition=…}}; "
                "set the panel's legend to Auto or Verbose"
            )
    zoneless: list[int] = []

    def samples() -> Iterator[Sample]:
        for line, cells in lines:
            if len(cells) != len(names):
                raise SourceError(f"{source}, line {line}: {len(cells)} fields, but the header has {len(names)}")
            at, has_zone = _time(cells[0], f"{source}, line {line}")
            zoneless.extend([] if has_zone else [line])
            for column, (found, cell) in enumerate(zip(series, cells[1:], strict=True), start=2):
                if cell.strip().lower() in _NOTHING or found is None:
                    continue
                if not _NUMBER.fullmatch(cell.strip()):
                    raise SourceError(
                        f"{source}, line {line}: {shown(cell)} is not a number; export without formatted data"
                    )
                yield Sample(column, *found, float(cell), at)

    reading = assemble(samples(), source, "column", dated=True)
    if zoneless:
        reading.notes.append(f"{source}, line {zoneless[0]}: times have no zone and are read as UTC")
    return reading


def _time(text: str, place: str) -> tuple[float, bool]:
    """Return a time in seconds since 1970, and whether its zone is known."""
    if match := _EPOCH.fullmatch(text.strip()):
        return int(text) / (1_000 if match["millis"] else 1), True
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise SourceError(f"{place}: {shown(text)} is not a time; export without formatted data") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp(), found.tzinfo is not None


FORMAT = Format("grafana", "the CSV of a Grafana panel with series joined by time", recognises, read)
