"""The rows that Spark moves to a task, unchanged, and their check there (no Spark import)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evenlag.tables.call_defaults import AUTO_OFFSET_RESET
from evenlag.tables.columns import TableKind
from evenlag.tables.group_table import GroupTable
from evenlag.tables.growth import predict_lags
from evenlag.tables.outputs import REJECTS
from evenlag.tables.rules import USABLE, CheckedRows, check_rows

ROWS_PER_BATCH = 20_000  # rows returned to Spark in one batch
MOST_PARTITION = 2**31  # the column `partition` of rejects is an INT


@dataclass(frozen=True)
class TableRules:
    """Parameters of a task for the check of the rows of both tables.

    Attributes
    ----------
    offsets, members : mapping of column to heading
        As `column_names.matched` returns; `members` is None without a members table.
    auto_offset_reset : str
        The reset rule for rows that name none.
    ahead : int
        Microseconds for which lags are predicted.
    """

    offsets: Mapping[str, str]
    members: Mapping[str, str] | None = None
    auto_offset_reset: str = AUTO_OFFSET_RESET
    ahead: int = 0

    def checked(self, batches: Iterable[Any]) -> CheckedTables | None:
        """Check the rows of a task; None if it has no rows."""
        kinds: tuple[TableKind, ...] = ("offsets",) if self.members is None else ("offsets", "members")
        tables = raw_tables(batches, kinds)
        if tables is None:
            return None
        offsets = check_rows(tables[0], self.offsets, "offsets", self.auto_offset_reset)
        if self.ahead:
            predict_lags(offsets, self.ahead)
        members = None if self.members is None else check_rows(tables[1], self.members, "members")
        return CheckedTables(offsets, members)


@dataclass(frozen=True, eq=False)
class CheckedTables:
    """The checked rows of a task."""

    offsets: CheckedRows
    members: CheckedRows | None

    def groups(self) -> GroupTable:
        """Return the groups of the rows."""
        return GroupTable(self.offsets, self.members)

    @property
    def read(self) -> dict[str, int]:
        """The number of rows of each table, and of those with log ends alone that can be used."""
        log_ends = int((self.offsets.log_only & self.offsets.usable).sum())
        members = 0 if self.members is None else len(self.members)
        return {"offsets": len(self.offsets), "members": members, "log_ends": log_ends}

    def rejects(self) -> Iterator[dict[str, Any]]:
        """Yield the rows that cannot be used (`outputs.REJECTS`)."""
        for checked in (self.offsets, self.members):
            if checked is not None:
                yield from _rejects(checked)


@dataclass(frozen=True)
class Rejecter:
    """Task function that returns the rows that cannot be used, in batches of `schema` (`outputs.REJECTS`)."""

    rules: TableRules
    schema: Any

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Check the rows of one task."""
        checked = self.rules.checked(batches)
        rejects = iter(()) if checked is None else checked.rejects()
        while some := list(islice(rejects, ROWS_PER_BATCH)):
            yield pa.RecordBatch.from_pylist(some, schema=self.schema)


def raw_tables(batches: Iterable[Any], kinds: Sequence[TableKind]) -> list[Any] | None:
    """Return the rows of each input table as they came, with texts dictionary-encoded to save memory.

    None without any row. The batches have one column of structs per table, null in rows of the other table, or one
    column of lists of structs per table.
    """
    parts: list[list[Any]] = [[] for _ in kinds]
    for batch in batches:
        for part, kind in zip(parts, kinds, strict=True):
            rows = batch.column(batch.schema.get_field_index(kind))
            if pa.types.is_list(rows.type):
                rows = rows.flatten()
            elif len(kinds) > 1:
                rows = rows.filter(rows.is_valid())
            table = pa.RecordBatch.from_struct_array(rows)
            encoded = [
                column.dictionary_encode() if pa.types.is_string(column.type) else column for column in table.columns
            ]
            part.append(pa.RecordBatch.from_arrays(encoded, names=table.schema.names))
    if not parts[0]:
        return None
    return [pa.Table.from_batches(part) for part in parts]


def _rejects(checked: CheckedRows) -> Iterator[dict[str, Any]]:
    rows = np.flatnonzero(checked.reason_of != USABLE)
    if not len(rows):
        return
    columns: dict[str, Sequence[Any]] = {
        "source": [checked.kind] * len(rows),
        "reason": [checked.reasons[code] for code in checked.reason_of[rows].tolist()],
        "row": checked.texts(rows),
        "partition": _partitions(checked, rows),
    }
    for name in ("snapshot_ts", "group", "topic", "consumer_id"):
        if name in checked.values:
            columns[name] = checked.values[name].take(rows).named().tolist()
    absent = [None] * len(rows)
    for values in zip(*(columns.get(name, absent) for name in REJECTS.names), strict=True):
        yield dict(zip(REJECTS.names, values, strict=True))


def _partitions(checked: CheckedRows, rows: NDArray[Any]) -> list[int | None]:
    if "partition" not in checked.values:
        return [None] * len(rows)
    numbers = checked.values["partition"].take(rows).known(MOST_PARTITION).tolist()
    return [number if -MOST_PARTITION <= number < MOST_PARTITION else None for number in numbers]
