"""Groups solved, and their results as Arrow batches, on the executors: what `mapInArrow` calls. Needs no Spark."""

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

from evenlag.pipeline.tasks.budget import Budget, least_effort, recoverable
from evenlag.pipeline.tasks.group import GroupRows
from evenlag.pipeline.tasks.grouping import group_rows
from evenlag.pipeline.tasks.isolation import ProcessDiedError, in_own_process
from evenlag.pipeline.tasks.solving import GroupResult, Want, failed, solve_group
from evenlag.search.options import SolveOptions

ROWS_PER_BATCH = 20_000  # partitions of the groups that go back to Spark together


class Counter(Protocol):
    """What counts groups that are done: Spark's accumulator."""

    def add(self, term: int) -> None:
        """Count `term` more."""


@dataclass(frozen=True)
class Solver:
    """Solves the groups of a task, one row each, and gives them back as rows of `schema` (`schemas.GROUPS`).

    Groups from which most spread may be recovered come first and get up to the limit of a group; what the others need
    for the plan of least effort is kept back for them. `attempt` gives the number of the task, and whether an earlier
    attempt at it died: then each group is solved in a process of its own, so that the one that kills it costs nobody
    else anything.
    """

    options: SolveOptions
    budget: Budget
    want: Want
    schema: Any
    attempt: Callable[[], tuple[int, bool]] = lambda: (0, False)
    done: Counter | None = None
    failed: Counter | None = None
    solve: Callable[..., GroupResult] = solve_group

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Solve the groups of one task, from their rows (`schemas.ROWS`)."""
        groups = group_rows(batches)
        groups.sort(key=recoverable_spread, reverse=True)
        task, isolated = self.attempt()
        end = self.budget.task_end(task)
        reserved = sum(least_effort(len(group.lags)) for group in groups)
        over = 0.0
        solved: list[GroupResult] = []
        held = 0  # rows of those
        for position, group in enumerate(groups):
            reserved -= least_effort(len(group.lags))
            late_over = over / max(position, 1) * (len(groups) - position)
            limit, late = self.budget.group(end, reserved + late_over)
            started = time.monotonic()
            solve = partial(self.solve, group, self.options, self.want, time_limit=limit, late=late)
            solved.append(self._isolated(group, solve) if isolated else solve())
            over += max(time.monotonic() - started - limit, 0)
            if self.done is not None:
                self.done.add(1)
            if self.failed is not None and solved[-1].error is not None:
                self.failed.add(1)
            held += len(group.lags)
            if held >= ROWS_PER_BATCH:
                yield result_batch(solved, self.schema)
                solved, held = [], 0
        if solved:
            yield result_batch(solved, self.schema)
        forget_archives()

    def _isolated(self, group: GroupRows, solve: Callable[[], GroupResult]) -> GroupResult:
        try:
            return in_own_process(solve)
        except ProcessDiedError as error:
            return failed(group, self.options, self.want, str(error))


def recoverable_spread(group: GroupRows) -> float:
    """Return how many messages of spread a better plan may save; see `budget.recoverable`."""
    number: dict[str | None, int] = {None: -1}
    holders = np.array([number.setdefault(owner, len(number) - 1) for owner in group.owners], dtype=np.int64)
    return recoverable(group.lags, holders, max(len(group.members or ()), len(number) - 1))


def unchanged(batches: Iterable[Any]) -> Iterable[Any]:
    """Give back what came: all that a worker does for it is to import this module."""
    return batches


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


def forget_archives() -> None:
    """Leave Spark no archives on Python's path whose directories it would read again before each task: 0.05 s."""
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]
