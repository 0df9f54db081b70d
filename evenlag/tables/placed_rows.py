"""Rows from several inputs in one table, with their places for error messages."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evenlag.errors import InvalidProblemError
from evenlag.model.arrays import Bools, Whole
from evenlag.model.values import is_unicode, shown
from evenlag.tables.columns import TABLES, TableKind
from evenlag.tables.copies import MEMBER_ROWS, PARTITION_ROWS
from evenlag.tables.files import open_text
from evenlag.tables.formats import Reading
from evenlag.tables.rows import Rows
from evenlag.tables.rules import CheckedRows, check_rows, contradiction
from evenlag.tables.typed_values import advice, plain_value

_MOST_SHOWN = 160  # characters of a line in a message


@dataclass(frozen=True, eq=False)
class PlacedRows:
    """The rows of one table from several readings.

    Attributes
    ----------
    kind : {"offsets", "members"}
    reading_of : int array (N,)
        Index of each row's reading.
    """

    kind: TableKind
    readings: Sequence[Reading]
    rows: Rows
    reading_of: Whole

    @classmethod
    def of(cls, readings: Sequence[Reading], kind: TableKind, label: str | None) -> PlacedRows:
        """Put the rows of several readings together.

        A row of a text that names no group belongs to `label`, or without a label to the group of its reading.
        """
        parts = [_labelled(each.rows(kind), each.group and (label or each.group)) for each in readings]
        reading_of = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        return cls(kind, readings, Rows.joined(parts), reading_of)

    @property
    def of_text(self) -> Bools:
        """True for rows of another tool's text rather than a snapshot table, shape (N,)."""
        return np.array([bool(reading.group) for reading in self.readings], dtype=bool)[self.reading_of]

    def at_times(self, origin: NDArray[Any], times: Sequence[str | None]) -> PlacedRows:
        """Return copies of some rows with other values of `snapshot_ts`."""
        rows = self.rows
        columns = {
            name: [rows.mixed[name][row] for row in origin.tolist()]
            if name in rows.mixed
            else rows.column(name).take(pa.array(origin))
            for name in rows.table.column_names
        }
        timed = Rows.of_columns(columns | {"snapshot_ts": list(times)}, rows.numbers[origin])
        return replace(self, rows=timed, reading_of=self.reading_of[origin])

    def checked(self, auto_offset_reset: str) -> CheckedRows:
        """Return the rows after the rule of a row; copies are still among them."""
        table = self.rows.table
        names = {name: name for name in table.column_names}
        checked = check_rows(table, names, self.kind, auto_offset_reset, timed=False, copies=False)
        for column in TABLES[self.kind]:
            if column.kind == "string" and column.name in self.rows.mixed.keys() & checked.values:
                values = self.rows.mixed[column.name]
                wrong = np.array([not _may_be_text(value) for value in values])
                checked.reject(f"{column.name} is not a text", column.name, wrong)
        return checked

    def error(self, checked: CheckedRows, row: int) -> InvalidProblemError:
        """Return the error of a row with a fault: its place, partition or member, reason, value and line."""
        code = int(checked.reason_of[row])
        reason, column = checked.reasons[code], checked.at_fault[code]
        rule = PARTITION_ROWS if self.kind == "offsets" else MEMBER_ROWS
        if reason == rule.differ:
            other, differ = contradiction(checked, rule, row)
            first, second = sorted((row, other))
            source, _, also = self._place(first).rpartition(", ")
            also = also if self._place(second).startswith(f"{source}, ") else self._place(first)
            return InvalidProblemError(
                f"{self._place(second)}: {rule.what} {self._key(checked, row)} is also in {also}, but the rows differ "
                f"in {', '.join(differ)}; keep one"
            )
        key, value, kind = self._key(checked, row, column), None, ""
        if column:
            kind = next(each.kind for each in TABLES[self.kind] if each.name == column)
            value = plain_value(self.rows.value(column, row), kind)
        named = f"member {key!r}: " if key and self.kind == "members" else f"{key}: " if key else ""
        what = reason if value is None else f"{reason}: {shown(value)}{advice(value) if kind == 'integer' else ''}"
        return InvalidProblemError(f"{self._place(row)}: {named}{what}{self._line(row)}")

    def _key(self, checked: CheckedRows, row: int, wrong: str = "") -> str:
        """Return the partition or the member of a row, as far as it names one in columns other than a wrong one."""
        column = "topic" if self.kind == "offsets" else "consumer_id"
        names, number = checked.values[column], checked.values.get("partition")
        if wrong == column or names.data[row] < 0:
            return ""
        name = str(names.names[names.data[row]])
        if number is None or wrong == "partition" or number.null[row] or number.wrong[row]:
            return name
        return f"{name}-{number.data[row]}"

    def _place(self, row: int) -> str:
        """Return the place of a row: `offsets.csv, line 3`."""
        reading = self.readings[self.reading_of[row]]
        return f"{reading.source}, {reading.unit} {self.rows.numbers[row]}"

    def _line(self, row: int) -> str:
        """Return a line of a file to append to an error; empty if the source has no lines."""
        reading = self.readings[self.reading_of[row]]
        if reading.unit != "line":
            return ""
        try:
            with open_text(Path(reading.source)) as file:
                line = next(islice(file, int(self.rows.numbers[row]) - 1, None), "").strip()
        except (OSError, EOFError, UnicodeError, zlib.error):  # not a file, or no longer there
            return ""
        return f": {line}" if len(line) <= _MOST_SHOWN else f": {line[:_MOST_SHOWN]}…"


def _may_be_text(value: object) -> bool:
    """Return whether a value may be in a text column: not a list, an object, or a lone JSON surrogate."""
    if isinstance(value, str):
        return is_unicode(value)
    return not isinstance(value, list | tuple | dict | np.ndarray)


def _labelled(rows: Rows, group: str) -> Rows:
    """Return the rows with a group for those that name none; unchanged if it is empty."""
    if not group:
        return rows
    found = rows.values("group", "string")
    if not found.null.any():
        return rows
    names = found.named()
    names[found.null] = group
    columns = {name: rows.mixed.get(name, rows.column(name)) for name in rows.table.column_names}
    return Rows.of_columns(columns | {"group": names.tolist()}, rows.numbers)
