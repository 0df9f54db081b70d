"""Rows of a table in Arrow columns, with the number of each row in its source."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from evenlag.model.arrays import Whole
from evenlag.tables.arrow_values import Values, column_values
from evenlag.tables.columns import Column, Numbered
from evenlag.tables.typed_values import text_of

_UNFIT = (pa.ArrowException, TypeError, ValueError, OverflowError)  # raised if no Arrow type can hold all the values


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a table.

    Attributes
    ----------
    table : pyarrow.Table
        The columns that were found, under their declared names and in any types.
    numbers : int64 array (N,)
        Number of each row in its source, such as the line in a file.
    mixed : mapping of column to sequence
        The values as they came of columns with values of several types, which `table` has as texts.
    """

    table: Any
    numbers: Whole
    mixed: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @classmethod
    def of_columns(cls, columns: Mapping[str, Any], numbers: Sequence[int] | Whole) -> Rows:
        """Make the rows from columns: Arrow arrays, or sequences of Python objects."""
        arrow, mixed = {}, {}
        for name, values in columns.items():
            if isinstance(values, pa.Array | pa.ChunkedArray):
                arrow[name] = values
                continue
            try:
                arrow[name] = pa.array(values, from_pandas=True)
            except _UNFIT:
                arrow[name], mixed[name] = pa.array(map(_text, values), pa.string()), values
        return cls(pa.table(arrow), np.asarray(numbers, dtype=np.int64), mixed)

    @classmethod
    def of_dicts(cls, rows: Sequence[Numbered], columns: Sequence[Column]) -> Rows:
        """Make the rows from mappings of column to value, with the declared columns that any of them has."""
        names = [column.name for column in columns if any(row.get(column.name) is not None for _, row in rows)]
        return cls.of_columns(
            {name: [row.get(name) for _, row in rows] for name in names or ["group"]}, [number for number, _ in rows]
        )

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Put the rows of several sources together; a column that only some of them have is null in the others."""
        if len(parts) == 1:
            return parts[0]
        names = list(dict.fromkeys(name for part in parts for name in part.table.column_names))
        columns: dict[str, Any] = {}
        for name in names:
            found = [part.column(name) for part in parts]
            kinds = {column.type for column in found} - {pa.null()}
            if len(kinds) > 1 or any(name in part.mixed for part in parts):
                columns[name] = [part.value(name, row) for part in parts for row in range(len(part))]
            else:
                kind = kinds.pop() if kinds else pa.null()
                columns[name] = pa.chunked_array([chunk for each in found for chunk in each.cast(kind).chunks], kind)
        numbers = np.concatenate([part.numbers for part in parts]) if parts else np.zeros(0, dtype=np.int64)
        return cls.of_columns(columns, numbers)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.numbers)

    def column(self, name: str) -> Any:
        """Return a column as a chunked Arrow array, all null if it was not found."""
        if name in self.table.column_names:
            return self.table.column(name)
        return pa.chunked_array([pa.nulls(len(self))])

    def value(self, name: str, row: int) -> Any:
        """Return a value as it came; None if its column was not found."""
        return self.mixed[name][row] if name in self.mixed else self.column(name)[row].as_py()

    def values(self, name: str, kind: str) -> Values:
        """Return a column in its type."""
        return column_values(self.column(name), kind)

    def typed(self, columns: Sequence[Column]) -> Iterator[Numbered]:
        """Yield the rows with exactly these columns, in their types; a value of another type stays as it came."""
        found = [(column.name, self.values(column.name, column.kind)) for column in columns]
        lists = [_objects(values) for _, values in found]
        for (name, values), objects in zip(found, lists, strict=True):
            for row in np.flatnonzero(values.wrong).tolist():
                objects[row] = self.value(name, row)
        names = [name for name, _ in found]
        for number, *each in zip(self.numbers.tolist(), *lists, strict=True):
            yield number, dict(zip(names, each, strict=True))

    def raw(self) -> Iterator[Numbered]:
        """Yield the rows with their values as they came."""
        yield from zip(self.numbers.tolist(), self.table.to_pylist(), strict=True)


def _objects(values: Values) -> list[Any]:
    """Return the values of rows as Python objects, lists of texts as lists; None where there is none."""
    if values.names:
        return [list(each) if isinstance(each, tuple) else each for each in values.named().tolist()]
    absent = values.null.tolist()
    return [None if null else value for null, value in zip(absent, values.data.tolist(), strict=True)]


def _text(value: Any) -> str | None:
    """Return a value of a column with several types as text."""
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # JSON may have half a character
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, default=text_of)
    return text_of(value)
