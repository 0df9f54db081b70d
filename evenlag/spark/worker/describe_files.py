"""Files of Kafka's own text to rows, on the executors: what `mapInArrow` calls. Needs pyarrow, not Spark."""

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

LONE = "snapshot"  # the snapshot of a single file whose name is no time

_ROWS_PER_BATCH = 50_000


def names(kind: TableKind) -> list[str]:
    """Return the columns that come of a text; all of them are text."""
    return [LINE, *(column.name for column in TABLES[kind]), MALFORMED]


@dataclass(frozen=True)
class Describe:
    """Reads texts of `kafka-consumer-groups --describe`, a file each: batches with `path, value` in, rows out.

    A line that is no row, or may be one and does not fit its header, is a row with its text in `_corrupt_record`. Blank
    lines, headers and what Kafka itself says of groups are none.

    Attributes
    ----------
    kind : {"offsets", "members"}
    lone : bool
        There is a single file.
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
            yield {LINE: line, MALFORMED: line} if row is None else row | {LINE: line, "snapshot_ts": time}
