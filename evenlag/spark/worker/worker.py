"""Groups solved, and their results as Arrow batches, on the executors: what `mapInArrow` calls. Needs no Spark."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, groupby
from typing import Any, Protocol
from zipimport import zipimporter

import pyarrow as pa

from evenlag.search.options import SolveOptions
from evenlag.spark.worker.budget import Budget
from evenlag.spark.worker.grouping import group_rows
from evenlag.spark.worker.isolation import ProcessDiedError, in_own_process
from evenlag.spark.worker.solving import GroupResult, Want, decided, solve_group
from evenlag.spark.worker.turns import take_turns
from evenlag.tables.group import GroupRows
from evenlag.tables.past import Past

UNREACHED = "the time limit of the whole call was reached before a task for it could start"
NO_PASTS: Mapping[str, Past] = {}
ROWS_PER_BATCH = 20_000  # partitions of the groups that go back to Spark together


class Counter(Protocol):
    """What counts groups that are done: Spark's accumulator."""

    def add(self, term: int) -> None:
        """Count `term` more."""


@dataclass(frozen=True)
class Solver:
    """Solves the groups of a task, one row each, and gives them back as rows of `schema` (`schemas.SOLVED`).

    `turns.take_turns` says which group gets how much time. `attempt` gives the number of the task, and how many
    attempts at it failed before: after one each turn is taken in a process of its own, so that a group that kills it
    costs nobody else anything.

    With `recorded` the task has its groups with all their snapshots and offsets, and knows what earlier ones tell; with
    `foresee` plans are for what these let expect (horizon `auto`).
    """

    options: SolveOptions
    budget: Budget
    want: Want
    schema: Any
    attempt: Callable[[], tuple[int, int]] = lambda: (0, 0)
    done: Counter | None = None
    failed: Counter | None = None
    recorded: bool = False
    foresee: bool = False
    solve: Callable[..., GroupResult] = solve_group

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Solve the groups of one task, from their rows (`schemas.ROWS`)."""
        task, failures = self.attempt()
        groups = group_rows(batches)
        histories = groupby(groups, key=lambda rows: rows.group) if self.recorded else ()
        pasts = {group: Past(list(rows)) for group, rows in histories}
        turn = partial(self._isolated if failures else self._turn, pasts=pasts)
        solved: list[GroupResult] = []
        held = 0  # rows of those
        for result in take_turns(groups, self.budget, task, self.options.gap, turn):
            solved.append(decided(result, self.options))
            if self.done is not None:
                self.done.add(1)
            if self.failed is not None and result.error is not None:
                self.failed.add(1)
            held += len(result.rows.lags)
            if held >= ROWS_PER_BATCH:
                yield result_batch(solved, self.schema, failures)
                solved, held = [], 0
        if solved:
            yield result_batch(solved, self.schema, failures)
        forget_archives()

    def _turn(
        self, rows: GroupRows, time_limit: float, quick: bool, late: bool, earlier: GroupResult | None,
        pasts: Mapping[str, Past] = NO_PASTS,
    ) -> GroupResult:  # fmt: skip
        return self.solve(
            rows, self.options, self.want, time_limit=time_limit, quick=quick, late=late, earlier=earlier,
            past=pasts.get(rows.group), foresee=self.foresee,
        )  # fmt: skip

    def _isolated(
        self, rows: GroupRows, time_limit: float, quick: bool, late: bool, earlier: GroupResult | None,
        pasts: Mapping[str, Past] = NO_PASTS,
    ) -> GroupResult:  # fmt: skip
        started = time.monotonic()
        try:
            return in_own_process(lambda: self._turn(rows, time_limit, quick, late, earlier, pasts))
        except ProcessDiedError as error:
            before = earlier or GroupResult(rows, self.want, self.options.balance, late=late)
            return replace(before.failed(str(error)), seconds=before.seconds + time.monotonic() - started)


@dataclass(frozen=True)
class Unreached:
    """Gives the groups of a task, of which none is solved, as rows of `schema` (`schemas.SOLVED`)."""

    want: Want
    balance: str
    schema: Any

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Take the rows of a task (`schemas.ROWS`)."""
        for group in group_rows(batches):
            yield result_batch([GroupResult(group, self.want, self.balance, late=True, error=UNREACHED)], self.schema)


def result_batch(results: Sequence[GroupResult], schema: Any, failures: int = 0) -> Any:
    """Write what became of some groups as a batch, a row for each; so many attempts at their task failed before."""
    values = {
        "snapshot_ts": [result.rows.snapshot_ts for result in results],
        "group": [result.rows.group for result in results],
        "status": [result.status for result in results],
        **{name: [getattr(result.main, name, None) for result in results] for name in ("method", "gap", "pays")},
        **{
            name: [None if result.main is None else float(getattr(result.main, name)) for result in results]
            for name in ("objective", "bound")
        },
        "late": [result.late for result in results],
        "attempt": [failures] * len(results),
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
    fields, plans = list(kind.value_type), [result.plan for result in results]
    columns = [
        pa.concat_arrays([pa.array(getattr(plan, field.name), field.type) for plan in plans]) for field in fields
    ]
    structs = pa.StructArray.from_arrays(columns, fields=fields)
    ends = accumulate((len(plan.topic) for plan in plans), initial=0)
    return pa.ListArray.from_arrays(pa.array(list(ends), pa.int32()), structs, type=kind)


def forget_archives() -> None:
    """Leave Spark no archives on Python's path whose directories it would read again before each task: 0.05 s."""
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]
