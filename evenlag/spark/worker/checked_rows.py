"""Task functions that return rows of the input tables with their values, reasons and rates (no Spark import)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from evenlag.spark.worker.rows_of_task import raw_tables
from evenlag.tables.arrow_values import Values
from evenlag.tables.columns import TableKind
from evenlag.tables.growth import rates
from evenlag.tables.rules import USABLE, CheckedRows, check_rows

CLAMPED = (None, "beyond_end", "before_start", "below_zero")


@dataclass(frozen=True)
class Checker:
    """Task function that returns each row of a table in the types of its columns, with the reason if it has a fault.

    Attributes
    ----------
    names : mapping of column to heading
        As `column_names.matched` returns.
    kind : {"offsets", "members"}
    auto_offset_reset : str
        The reset rule for rows that name none.
    schema : pyarrow.Schema
        Columns of the table, and `clamped`, `reason` and `row`.
    """

    names: Mapping[str, str]
    kind: TableKind
    auto_offset_reset: str
    schema: Any

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Check the rows of one task."""
        found = raw_tables(batches, (self.kind,))
        if found is not None:
            checked = check_rows(found[0], self.names, self.kind, self.auto_offset_reset)
            columns = [self._column(checked, field) for field in self.schema]
            yield from pa.Table.from_arrays(columns, schema=self.schema).to_batches()

    def _column(self, checked: CheckedRows, field: Any) -> Any:
        wrong = np.flatnonzero(checked.reason_of != USABLE)
        if field.name == "reason":
            reasons = [*checked.reasons, None]  # index −1, for usable rows, is the last entry
            return pa.array([reasons[code] for code in checked.reason_of.tolist()], field.type)
        if field.name == "row":
            texts = np.full(len(checked), None, dtype=object)
            texts[wrong] = checked.texts(wrong)
            return pa.array(texts, field.type)
        if field.name == "clamped":
            return pa.array([CLAMPED[code] for code in checked.clamped.tolist()], field.type)
        return arrow_column(checked.values[field.name], field.type)


def arrow_column(values: Values, kind: Any) -> Any:
    """Return values as an Arrow array."""
    if values.silent:
        return pa.nulls(len(values.data), kind)
    if values.names:
        return pa.array(values.named().tolist(), kind)
    return pa.array(values.data, mask=values.null | values.wrong).cast(kind, safe=False)


@dataclass(frozen=True)
class Rater:
    """Task function that adds rates to the rows of a table with snapshots; rows with a `reason` get none."""

    names: Mapping[str, str]
    schema: Any

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Rate the rows of one task."""
        found = raw_tables(batches, ("offsets",))
        if found is None:
            return
        table = found[0]
        checked = check_rows(table, self.names, "offsets", copies=False)
        if "reason" in table.column_names:
            faulty = np.asarray(table.column("reason").is_valid().to_numpy(), dtype=bool)
            checked.reject("has a reason", "reason", faulty)
        added = rates(checked)
        columns = [
            arrow_column(added[name], kind) if name in added else table.column(name).cast(kind)
            for name, kind in zip(self.schema.names, self.schema.types, strict=True)
        ]
        yield from pa.Table.from_arrays(columns, schema=self.schema).to_batches()
