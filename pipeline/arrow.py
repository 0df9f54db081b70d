"""Arrow batches to groups and back, on the executors: what `mapInArrow` calls. Needs pyarrow, not Spark."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from evenlag.pipeline.budget import Budget
from evenlag.pipeline.group import OFFSETS, UNKNOWN, GroupRows, Member
from evenlag.pipeline.solving import GroupResult, Options, PlanColumns, Want, solve_group


class Counter(Protocol):
    """What counts groups that are done: Spark's accumulator."""

    def add(self, term: int) -> None:
        """Count `term` more."""


@dataclass(frozen=True)
class Solver:
    """Solves the groups of a task, one row each, and gives them back as rows of `schema` (`schemas.GROUPS`)."""

    options: Options
    budget: Budget
    want: Want
    schema: Any
    done: Counter | None = None

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Solve the groups of one task: small ones first, so that the large get what these leave of the time."""
        rows = [(batch, index) for batch in batches for index in range(batch.num_rows)]
        if not rows:
            return
        rows.sort(key=_size)
        first, index = rows[0]
        end = self.budget.task_end(first.column("task")[index].as_py())
        over = 0.0
        for position, (batch, index) in enumerate(rows):
            limit, late = self.budget.group(end, len(rows) - position, over / max(position, 1))
            started = time.monotonic()
            group = group_rows(batch, index)
            result = solve_group(group, self.options, self.want, time_limit=limit, late=late)
            yield result_batch(result, self.schema)
            over += max(time.monotonic() - started - limit, 0)
            if self.done is not None:
                self.done.add(1)


def _size(row: tuple[Any, int]) -> tuple[int, str, str]:
    batch, index = row
    return len(batch.column("rows")[index]), *(batch.column(name)[index].as_py() for name in ("group", "snapshot_ts"))


def group_rows(batch: Any, index: int) -> GroupRows:
    """Read one group from a batch with `snapshot_ts, group, rows, members` and the counts of `GroupRows`."""

    def scalar(name: str) -> Any:
        return batch.column(name)[index].as_py()

    rows = batch.column("rows")[index].values
    topics = rows.field("topic").dictionary_encode()
    members = scalar("members")
    return GroupRows.sort(
        (scalar("snapshot_ts"), scalar("group")),
        topics.dictionary.to_pylist(),
        topics.indices.to_numpy(),
        rows.field("partition").to_numpy().astype(np.int64),
        rows.field("lag").to_numpy(),
        rows.field("consumer_id").to_pylist(),
        offsets=_offsets(rows),
        members=None if members is None else tuple(Member(**each) for each in members),
        beyond_end=scalar("beyond_end"),
        before_start=scalar("before_start"),
        rejected_rows=scalar("rejected_rows"),
        predicted=scalar("predicted"),
        unrated=scalar("unrated"),
    )


def _offsets(rows: Any) -> Any:
    """Read the offsets, where they were asked for; see `GroupRows.offsets`."""
    if rows.type.get_field_index(OFFSETS[0]) < 0:
        return None
    return np.stack([rows.field(name).fill_null(UNKNOWN).to_numpy() for name in OFFSETS])


def result_batch(result: GroupResult, schema: Any) -> Any:
    """Write what became of a group as a batch of one row."""
    rows = result.rows
    plan_type = schema.field("plan").type
    values = {
        "snapshot_ts": rows.snapshot_ts,
        "group": rows.group,
        "status": result.status,
        "method": result.method,
        "seconds": result.seconds,
        "error": result.error,
        "warnings": list(result.warnings),
        "beyond_end": rows.beyond_end,
        "before_start": rows.before_start,
        "rejected_rows": rows.rejected_rows,
        "audit": result.audit,
    }
    arrays = [
        _plan_array(result.plan, plan_type) if field.name == "plan" else pa.array([values[field.name]], field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _plan_array(plan: PlanColumns, kind: Any) -> Any:
    """Column by column: a group can have a million rows."""
    fields = list(kind.value_type)
    columns = [pa.array(getattr(plan, field.name), field.type) for field in fields]
    structs = pa.StructArray.from_arrays(columns, fields=fields)
    return pa.ListArray.from_arrays(pa.array([0, len(structs)], pa.int32()), structs, type=kind)
