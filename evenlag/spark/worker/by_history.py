"""A row for each group of a task, from all its snapshots: what `mapInArrow` calls. Needs pyarrow, not Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa

from evenlag.spark.worker.grouping import group_rows
from evenlag.spark.worker.worker import Counter
from evenlag.tables.group import GroupRows

Row = dict[str, Any]


@dataclass(frozen=True)
class ByHistory:
    """Makes a row of `schema` of each group of a task.

    Attributes
    ----------
    work : callable
        The row of a group, from its rows at all times, in order of `snapshot_ts`.
    failure : callable
        The row of a group for which that went wrong: from its name, how many snapshots it has, and what was wrong.
    """

    work: Callable[[Sequence[GroupRows]], Row]
    failure: Callable[[str, int, str], Row]
    schema: Any
    done: Counter | None = None
    failed: Counter | None = None

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Go through the groups of one task, from their rows (`schemas.ROWS`)."""
        for group, each in groupby(group_rows(batches), key=lambda rows: rows.group):
            history, failed = list(each), False
            try:
                row = self.work(history)
            except Exception as error:  # whatever one group does must not cost the others their rows
                row, failed = self.failure(group, len(history), f"{type(error).__name__}: {error}"), True
            yield pa.RecordBatch.from_pylist([row], schema=self.schema)
            if self.done is not None:
                self.done.add(1)
            if self.failed is not None and failed:
                self.failed.add(1)
