"""What an executor does to size a group from its snapshots. Needs pyarrow, not Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa

from evenlag.compare.size import SizeOptions, run
from evenlag.compare.speeds import speeds
from evenlag.pipeline.tasks.group import GroupRows
from evenlag.pipeline.tasks.grouping import group_rows
from evenlag.pipeline.tasks.history import snapshots
from evenlag.pipeline.tasks.worker import Counter


@dataclass(frozen=True)
class Sizer:
    """Sizes the groups of a task, one row each, and gives them back as rows of `schema` (`schemas.SIZES`)."""

    options: SizeOptions
    schema: Any
    done: Counter | None = None
    failed: Counter | None = None

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Size the groups of one task, from their rows (`schemas.ROWS`)."""
        for group, history in groupby(group_rows(batches), key=lambda rows: rows.group):
            row = size_group(group, list(history), self.options)
            yield pa.RecordBatch.from_pylist([row], schema=self.schema)
            if self.done is not None:
                self.done.add(1)
            if self.failed is not None and row["error"] is not None:
                self.failed.add(1)


def size_group(group: str, rows: Sequence[GroupRows], options: SizeOptions) -> dict[str, Any]:
    """Size one group by its latest snapshot; what goes wrong becomes the row's error (`schemas.SIZES`)."""
    try:
        return {"error": None, "snapshots": len(rows), **_sized(group, rows, options)}
    except Exception as failure:  # whatever one group does must not cost the others their sizes
        error = f"{type(failure).__name__}: {failure}"
        return {"group": group, "snapshots": len(rows), "notes": [], "sizes": [], "error": error}


def _sized(group: str, rows: Sequence[GroupRows], options: SizeOptions) -> dict[str, Any]:
    usable = [snapshot for snapshot in rows if snapshot.topics]
    record = snapshots(usable) if len(usable) > 1 else []
    latest = usable[0] if usable else rows[0]
    problem = record[-1].problem if record else latest.problem()
    given = None if options.capacity is None else float(options.capacity)
    known = speeds(problem, record, given)
    found = run(problem, options, known.capacity.rate, known.rates)
    figures = found.to_dict()
    topic, partition = found.hottest or (None, None)
    return {
        "group": group,
        "snapshot_ts": record[-1].ts if record else latest.snapshot_ts,
        "members": len(problem.members),
        "capacity": float(found.capacity),
        "capacity_source": known.capacity.source,
        "incoming": float(found.incoming),
        "hottest_topic": topic,
        "hottest_partition": partition,
        "notes": [*problem.warnings, *found.notes],
        **{name: figures[name] for name in ("fewest", "proven", "binding_from", "hottest_seconds", "sizes")},
    }
