"""Rows of one group from several inputs, with their places for error messages."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from evenlag.errors import InvalidProblemError
from evenlag.tables.columns import TableKind
from evenlag.tables.copies import CopyRule, Numbered, first_copies
from evenlag.tables.files import open_text
from evenlag.tables.formats import Reading
from evenlag.tables.row_checks import Row, check_key

_MOST_SHOWN = 160  # characters of a line in a message


class PlacedRows:
    """Rows of one group from several readings, numbered consecutively, with the place of each."""

    def __init__(self) -> None:
        self.numbered: list[Numbered] = []
        self._places: list[tuple[Reading, int]] = []

    def add(self, reading: Reading, number: int, row: Row) -> None:
        """Add a row with its number in a reading."""
        self.numbered.append((len(self._places), row))
        self._places.append((reading, number))

    def place(self, number: int) -> str:
        """Return the place of a row: `offsets.csv, line 3`."""
        return _place(*self._places[number])

    @contextmanager
    def at(self, number: int) -> Iterator[None]:
        """Add the place of a row and its line to errors raised within."""
        with _at(*self._places[number]):
            yield

    def of_text(self, number: int) -> bool:
        """Return whether a row comes from another tool's text rather than a snapshot table."""
        return bool(self._places[number][0].group)

    def once(self, rows: Iterable[Numbered], rule: CopyRule, source: str) -> tuple[list[Numbered], list[str]]:
        """Return the first row for each key of the rule, and a note if copies were dropped."""
        kept, copies = first_copies(rows, rule, self.place)
        dropped = "1 row repeats" if copies == 1 else f"{copies} rows repeat"
        return kept, [f"{source}: {dropped} an earlier row of the same {rule.what}; dropped"] if copies else []


def rows_of_group(readings: Sequence[Reading], kind: TableKind, group: str, label: str | None) -> PlacedRows:
    """Return the rows of a group; `label` as in `with_groups`."""
    rows = PlacedRows()
    for name, reading, number, row in with_groups(readings, kind, label):
        if name == group:
            rows.add(reading, number, row)
    return rows


def with_groups(
    readings: Sequence[Reading], kind: TableKind, label: str | None
) -> Iterable[tuple[str | None, Reading, int, Row]]:
    """Yield all rows, each with its group.

    A row of a text that names no group belongs to `label`, or without a label to the group of its reading.
    """
    for reading in readings:
        for number, row in reading.offsets if kind == "offsets" else reading.members:
            with _at(reading, number):
                check_key(row)
            yield row["group"] or (reading.group and (label or reading.group)) or None, reading, number, row


@contextmanager
def _at(reading: Reading, number: int) -> Iterator[None]:
    try:
        yield
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{_place(reading, number)}: {error}{_shown(reading, number)}") from error


def _place(reading: Reading, number: int) -> str:
    return f"{reading.source}, {reading.unit} {number}"


def _shown(reading: Reading, number: int) -> str:
    """Return a line of a file to append to an error; empty if the source has no lines."""
    if reading.unit != "line":
        return ""
    try:
        with open_text(Path(reading.source)) as file:
            line = next(islice(file, number - 1, None), "").strip()
    except (OSError, EOFError, UnicodeError, zlib.error):  # not a file, or no longer there
        return ""
    return f": {line}" if len(line) <= _MOST_SHOWN else f": {line[:_MOST_SHOWN]}…"
