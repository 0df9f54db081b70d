"""The function that `mapInArrow` calls on executors to read files of Kafka's text (needs pyarrow, not Spark)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from evenlag.errors import SourceError
from evenlag.tables.columns import LINE, MALFORMED, TABLES, TableKind
from evenlag.tables.formats.describe import described_lines
from evenlag.tables.times_of_names import time_in_name

LONE = "snapshot"  # the time of a single file without a time in its name

_ROWS_PER_BATCH = 50_000


def names(kind: TableKind) -> list[str]:
    """Return the names of the columns read from a text, all of type STRING."""
    return [LINE, *(column.name for column in TABLES[kind]), MALFORMED]


@dataclass(frozen=True)
class Describe:
    """Task function that reads texts of `kafka-consumer-groups --describe` from batches with `path, value`.

    A line that is not a row, or does not fit its header, becomes a row with its text in `_corrupt_record`. Blank lines,
    headers and Kafka's own messages are skipped.

    Attributes
    ----------
    kind : {"offsets", "members"}
    lone : bool
        True for a single file.
    """

    kind: TableKind
    lone: bool

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Read the files of a task."""
        columns = names(self.kind)
        schema = pa.schema([(name, pa.string()) for name in columns])
        for batch in batches:
            for path, text in zip(*(batch.column(name).to_pylist() for name in ("path", "value")), strict=True):
                rows = list(self._rows(unquote(path), text))
                for start in range(0, len(rows), _ROWS_PER_BATCH):
                    part = rows[start : start + _ROWS_PER_BATCH]
                    arrays = [pa.array([row.get(name) for row in part], pa.string()) for name in columns]
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _rows(self, path: str, text: str) -> Iterator[dict[str, str | None]]:
        stem = PurePosixPath(path).name.removesuffix(".gz").removesuffix(".txt")
        if "\x00" in text:
            raise SourceError(f"{path}: is not UTF-8 text (UTF-16, as PowerShell writes?); convert it")
        time = time_in_name(stem) or (LONE if self.lone else stem)
        for line, row in described_lines(text, self.kind, source=path, group=stem):
            of_line: dict[str, str | None] = {LINE: line, MALFORMED: line}
            if row is not None:
                of_line = row | {LINE: line, "snapshot_ts": row.get("snapshot_ts") or time}
            yield of_line
