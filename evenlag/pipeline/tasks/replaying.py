"""What an executor does with the history of a group: replay it. Needs pyarrow, not Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa

from evenlag.compare.replay import ReplayOptions, run
from evenlag.compare.replay_result import Replay, ReplaySummary
from evenlag.pipeline.tables.schemas import REPLAY_STEP_FIELDS, REPLAY_SUMMARY_FIELDS, with_doubles
from evenlag.pipeline.tasks.group import GroupRows
from evenlag.pipeline.tasks.grouping import group_rows
from evenlag.pipeline.tasks.history import snapshots
from evenlag.pipeline.tasks.worker import Counter


@dataclass(frozen=True)
class Replayer:
    """Replays the groups of a task, one row each, and gives them back as rows of `schema` (`schemas.REPLAYS`)."""

    options: ReplayOptions
    schema: Any
    done: Counter | None = None
    failed: Counter | None = None

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Replay the groups of one task, from their rows (`schemas.ROWS`)."""
        for group, history in groupby(group_rows(batches), key=lambda rows: rows.group):
            document = replay_group(group, list(history), self.options)
            yield pa.RecordBatch.from_pylist([document], schema=self.schema)
            if self.done is not None:
                self.done.add(1)
            if self.failed is not None and any(row["strategy"] is None for row in document["summary"]):
                self.failed.add(1)


def replay_group(group: str, rows: Sequence[GroupRows], options: ReplayOptions) -> dict[str, Any]:
    """Replay one group; what goes wrong becomes a row with the error (`schemas.REPLAYS`)."""
    try:
        return document(run(snapshots(rows), options))
    except Exception as failure:  # whatever one group does must not cost the others their replay
        failed = {"group": group, "snapshots": len(rows), "notes": [], "steps": []}
        error = ReplaySummary("", error=f"{type(failure).__name__}: {failure}")
        return failed | {"summary": [asdict(error) | {"strategy": None}]}


def document(replayed: Replay) -> dict[str, Any]:
    """Return a replay as plain values, as `schemas.REPLAYS` says."""
    return {
        "group": replayed.group,
        "since": replayed.since,
        "until": replayed.until,
        "snapshots": replayed.snapshots,
        "capacity": float(replayed.capacity.rate),
        "capacity_source": replayed.capacity.source,
        "recorded_lag": float(replayed.recorded_lag),
        "notes": list(replayed.notes),
        "summary": [with_doubles(asdict(row), REPLAY_SUMMARY_FIELDS) for row in replayed.summary],
        "steps": [with_doubles(asdict(row), REPLAY_STEP_FIELDS) for row in replayed.steps],
    }
