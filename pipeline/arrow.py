"""Arrow batches to groups and back, on the executors: what `mapInArrow` calls. Needs pyarrow, not Spark."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any, Protocol
from zipimport import zipimporter

import numpy as np
import pyarrow as pa

from evenlag.pipeline.budget import Budget, least_effort, recoverable
from evenlag.pipeline.group import OFFSETS, UNKNOWN, GroupRows, Member
from evenlag.pipeline.guarded import ProcessDiedError, in_own_process
from evenlag.pipeline.solving import GroupResult, Options, Want, failed, solve_group

ROWS_PER_BATCH = 20_000  # partitions of the groups that go back to Spark together


class Counter(Protocol):
    """What counts groups that are done: Spark's accumulator."""

    def add(self, term: int) -> None:
        """Count `term` more."""


@dataclass(frozen=True)
class Solver:
    """Solves the groups of a task, one row each, and gives them back as rows of `schema` (`schemas.GROUPS`).

    Groups from which most spread may be recovered come first and get up to the limit of a group; what the others need
    for the plan of least effort is kept back for them. Where `retried` says that an earlier attempt at the task died,
    each group is solved in a process of its own, so that the one that kills it costs nobody else anything.
    """

    options: Options
    budget: Budget
    want: Want
    schema: Any
    done: Counter | None = None
    failed: Counter | None = None
    retried: Callable[[], bool] | None = None
    solve: Callable[..., GroupResult] = solve_group

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Solve the groups of one task."""
        rows = [_Waiting.of(batch, index) for batch in batches for index in range(batch.num_rows)]
        if not rows:
            return
        rows.sort(key=lambda waiting: (-waiting.gain, waiting.key))
        end = self.budget.task_end(rows[0].batch.column("task")[rows[0].index].as_py())
        reserved = sum(least_effort(waiting.size) for waiting in rows)
        over = 0.0
        solved: list[GroupResult] = []
        held = 0  # rows of those
        careful = self.retried is not None and self.retried()
        for position, waiting in enumerate(rows):
            reserved -= least_effort(waiting.size)
            late_over = over / max(position, 1) * (len(rows) - position)
            limit, late = self.budget.group(end, reserved + late_over)
            started = time.monotonic()
            group = group_rows(waiting.batch, waiting.index)
            solve = partial(self.solve, group, self.options, self.want, time_limit=limit, late=late)
            solved.append(self._guarded(group, solve) if careful else solve())
            over += max(time.monotonic() - started - limit, 0)
            if self.done is not None:
                self.done.add(1)
            if self.failed is not None and solved[-1].error is not None:
                self.failed.add(1)
            held += waiting.size
            if held >= ROWS_PER_BATCH:
                yield result_batch(solved, self.schema)
                solved, held = [], 0
        if solved:
            yield result_batch(solved, self.schema)
        _forget_archives()

    def _guarded(self, group: GroupRows, solve: Callable[[], GroupResult]) -> GroupResult:
        try:
            return in_own_process(solve)
        except ProcessDiedError as error:
            return failed(group, self.options, self.want, str(error))


@dataclass(frozen=True)
class _Waiting:
    """A group still to be solved: where it is, its rows, and what spread may be recovered from it."""

    batch: Any
    index: int
    key: tuple[str, str]
    size: int
    gain: float

    @classmethod
    def of(cls, batch: Any, index: int) -> _Waiting:
        rows = batch.column("rows")[index].values
        owners = rows.field("consumer_id").dictionary_encode()
        holders = owners.indices.fill_null(-1).to_numpy().astype(np.int64)
        members = batch.column("members")[index]
        count = len(members) if members.is_valid else 0
        gain = recoverable(rows.field("lag").to_numpy(), holders, max(count, len(owners.dictionary)))
        key = (batch.column("group")[index].as_py(), batch.column("snapshot_ts")[index].as_py())
        return cls(batch, index, key, len(rows), gain)


def unchanged(batches: Iterable[Any]) -> Iterable[Any]:
    """Give back what came: all that a worker does for it is to import this module."""
    return batches


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


def result_batch(results: Sequence[GroupResult], schema: Any) -> Any:
    """Write what became of some groups as a batch, a row for each."""
    values = {
        "snapshot_ts": [result.rows.snapshot_ts for result in results],
        "group": [result.rows.group for result in results],
        "status": [result.status for result in results],
        "method": [result.method for result in results],
        "seconds": [result.seconds for result in results],
        "error": [result.error for result in results],
        "warnings": [result.warnings for result in results],
        "beyond_end": [result.rows.beyond_end for result in results],
        "before_start": [result.rows.before_start for result in results],
        "rejected_rows": [result.rows.rejected_rows for result in results],
        "audit": [result.audit for result in results],
    }
    arrays = [
        _plan_array(results, field.type) if field.name == "plan" else pa.array(values[field.name], field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _plan_array(results: Sequence[GroupResult], kind: Any) -> Any:
    """Column by column: a group can have a million rows."""
    fields = list(kind.value_type)
    columns = [
        pa.concat_arrays([pa.array(getattr(result.plan, field.name), field.type) for result in results])
        for field in fields
    ]
    structs = pa.StructArray.from_arrays(columns, fields=fields)
    ends = accumulate((len(result.plan.topic) for result in results), initial=0)
    return pa.ListArray.from_arrays(pa.array(list(ends), pa.int32()), structs, type=kind)


def _forget_archives() -> None:
    """Leave Spark no archives on Python's path whose directories it would read again before each task: 0.05 s."""
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]
