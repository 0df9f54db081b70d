"""Rows of one group out of several inputs, which know where they stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evenlag.tables.columns import TableKind
from evenlag.tables.copies import CopyRule, Numbered, first_copies
from evenlag.tables.formats import Reading
from evenlag.tables.row_checks import Row, at, check_key


class PlacedRows:
    """Rows of one group, of several readings, numbered through; a number tells the place."""

    def __init__(self) -> None:
        self.numbered: list[Numbered] = []
        self._places: list[tuple[Reading, int]] = []

    def add(self, reading: Reading, number: int, row: Row) -> None:
        """Add a row that stands at a number of an input."""
        self.numbered.append((len(self._places), row))
        self._places.append((reading, number))

    def place(self, number: int) -> str:
        """Say where a row stands: `offsets.csv, line 3`."""
        reading, its_number = self._places[number]
        return f"{reading.source}, {reading.unit} {its_number}"

    def of_text(self, number: int) -> bool:
        """Whether a row is of another tool's text, rather than of a snapshot table."""
        return bool(self._places[number][0].group)

    def once(self, rows: Iterable[Numbered], rule: CopyRule, source: str) -> tuple[list[Numbered], list[str]]:
        """Keep each thing's first row, and say how many copies there were."""
        kept, copies = first_copies(rows, rule, self.place)
        again = "1 row is there again" if copies == 1 else f"{copies} rows are there again"
        return kept, [f"{source}: {again} for the same {rule.what}, saying the same; counted once"] if copies else []


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
    """Give all rows with the group that each is of.

    Rows of a text that name none are of the group `label`, or else of the one that their text is called by.
    """
    for reading in readings:
        for number, row in reading.offsets if kind == "offsets" else reading.members:
            with at(f"{reading.source}, {reading.unit} {number}"):
                check_key(row)
            yield row["group"] or (reading.group and (label or reading.group)) or None, reading, number, row
