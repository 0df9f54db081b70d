"""The function that `mapInArrow` calls on executors: it solves groups and returns Arrow batches (no Spark import)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Any, Protocol, TypeVar
from zipimport import zipimporter

import numpy as np
import pyarrow as pa

from evenlag.compare.diagnosis import Summary
from evenlag.model.backends import BACKENDS, packages_of
from evenlag.model.pair_costs import PAIR_COSTS
from evenlag.model.processes import ProcessDiedError, in_own_process
from evenlag.model.result import Result
from evenlag.search.cache import Caches
from evenlag.search.options import SolveOptions
from evenlag.spark.worker.group_work import Effort, GroupResult, Turn, Want, decided, solve_group
from evenlag.spark.worker.packed_plans import MOVE_WORDS, named, packed
from evenlag.spark.worker.rows_of_task import ROWS_PER_BATCH, CheckedTables, TableRules
from evenlag.spark.worker.turns import Budget, TaskGroups, take_turns
from evenlag.tables.fleet_data import NO_FLEET_DATA, FleetData
from evenlag.tables.outputs import SOLVED

FIRST_TURNS = (Effort.LEAST, Effort.FIRST)
# Columns with the names of attributes of a group's rows, of its work and of its main result.
_OF_ROWS = ("snapshot_ts", "group", "beyond_end", "before_start", "rejected_rows")
_OF_WORK = ("status", "late", "seconds", "error", "warnings", "audit")
_OF_RESULT = ("method", "bound_by", "gap", "pays")
_OF_TASKS = SOLVED.names[SOLVED.names.index("task") + 1 :]  # columns that have values in rows without a group
PACKAGES = ("numpy", "ortools", "pyarrow")
"""Packages that tasks import in addition to evenlag; their modules have the same names."""

T = TypeVar("T")


class Counter(Protocol):
    """Interface of a counter of groups, such as Spark's accumulator."""

    def add(self, term: int) -> None:
        """Add `term` to the count."""


@dataclass(frozen=True)
class Solver:
    """Solver of a task's groups from the rows that Spark moves to it; it returns rows of `schema` (`outputs.SOLVED`).

    First come the task's own rows, with its rejected rows, then one row for each group. `turns.take_turns` divides the
    time among the groups. `attempt` returns the task's number and its failed attempts. After one failed attempt, each
    turn except the first plans runs in a separate process, so that a group that kills the process does not affect the
    others. First plans hardly ever do, and there are many, so they run in separate processes only after two failed
    attempts.

    With `recorded`, the task has all snapshots of its groups, and uses the earlier ones. With `foresee`, plans are made
    for the forecast from these (horizon `auto`).
    """

    rules: TableRules
    options: SolveOptions
    budget: Budget
    want: Want
    schema: Any
    attempt: Callable[[], tuple[int, int]] = lambda: (0, 0)
    done: Counter | None = None
    failed: Counter | None = None
    recorded: bool = False
    foresee: bool = False
    data: FleetData = NO_FLEET_DATA
    solve: Callable[..., GroupResult] = solve_group

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Solve the groups of one task, from rows of the input tables (`rows_of_task`)."""
        task, failures = self.attempt()
        checked = self.rules.checked(batches)
        yield from self._own_rows(task, checked)
        if checked is not None:
            yield from self._groups(task, failures, checked)
        forget_archives()

    def _own_rows(self, task: int, checked: CheckedTables | None) -> Iterator[Any]:
        """Yield the rows of the task itself: what it read, and what it rejected."""
        rejects = iter(()) if checked is None else checked.rejects()
        read = {"offsets": 0, "members": 0, "log_ends": 0} if checked is None else checked.read
        row: dict[str, Any] = {"task": task, **read}
        while (some := list(islice(rejects, ROWS_PER_BATCH))) or row:
            yield pa.RecordBatch.from_pylist([{"task": task, **row, "rejects": some}], schema=self.schema)
            row = {}

    def _groups(self, task: int, failures: int, checked: CheckedTables) -> Iterator[Any]:
        table = checked.groups()
        budget = self.budget.for_rows(len(table.lags))
        groups = TaskGroups(table, self.options, self.want, self.data, self.recorded, self.foresee)
        turn = partial(self._turn, failures=failures, groups=groups, caches=Caches())
        solved: list[GroupResult] = []
        held = 0  # number of their rows
        for result in take_turns(groups, budget, task, turn):
            if not isinstance(result, GroupResult):
                self._count(len(result.chosen), 0)
                yield from result.batches(self.schema, ROWS_PER_BATCH, task, failures)
                continue
            self._count(1, result.error is not None)
            pause = float(self.data.past.pause_of(result.rows.group, self.options.pause)[0])
            solved.append(decided(result, replace(self.options, pause=pause)))
            held += len(result.rows.lags)
            if held >= ROWS_PER_BATCH:
                yield from self._batches(solved, task, failures)
                solved, held = [], 0
        if solved:
            yield from self._batches(solved, task, failures)

    def _batches(self, solved: Sequence[GroupResult], task: int, failures: int) -> Iterator[Any]:
        yield result_batch(solved, self.schema, task, failures)
        if self.want != Want.AUDIT:
            yield packed(plan_columns(solved), self.schema, task)

    def _count(self, done: int, failed: int) -> None:
        if self.done is not None:
            self.done.add(done)
        if self.failed is not None and failed:
            self.failed.add(failed)

    def _turn(self, turn: Turn, *, failures: int, groups: TaskGroups, caches: Caches) -> GroupResult:
        call = partial(
            self.solve, turn, self.options, self.want, past=groups.past(turn.rows.group), foresee=self.foresee,
            caches=caches, data=self.data,
        )  # fmt: skip
        if failures <= (turn.effort in FIRST_TURNS):
            return call()
        started = time.monotonic()
        try:
            return in_own_process(lambda: replace(call(), cache=None))  # no process can send a cache's solvers
        except ProcessDiedError as error:
            before = turn.begun(self.want, self.options.balance)
            return replace(before.failed(str(error)), seconds=before.seconds + time.monotonic() - started)


def result_batch(results: Sequence[GroupResult], schema: Any, task: int = 0, failures: int = 0) -> Any:
    """Return the results of a task's groups as a batch, one row each; `failures` attempts at it failed before."""
    diagnoses = [None if result.diagnosis is None else result.diagnosis.to_dict() for result in results]
    values = {
        **{name: [getattr(result.rows, name) for result in results] for name in _OF_ROWS},
        **{name: [getattr(result, name) for result in results] for name in _OF_WORK},
        **{name: [getattr(result.main, name, None) for result in results] for name in _OF_RESULT},
        **{
            name: [None if result.main is None else result.main.costs.get(name) for result in results]
            for name in PAIR_COSTS
        },
        "traffic": [None if result.main is None else _traffic(result.main) for result in results],
        **{
            name: [None if result.main is None else float(getattr(result.main, name)) for result in results]
            for name in ("objective", "bound")
        },
        **{
            name: [None if each is None else each[name] for each in diagnoses]
            for name in Summary._fields  # the columns have the names of its fields
        },
        "attempt": [failures] * len(results),
        "task": [task] * len(results),
        **dict.fromkeys(_OF_TASKS, [None] * len(results)),
    }
    arrays = [pa.array(values[field.name], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _traffic(result: Result) -> int | None:
    """Return the traffic of all partitions; None if unknown."""
    traffic = result.plan.problem.pairs.traffic
    return None if traffic is None else int(traffic.sum())


def plan_columns(results: Sequence[GroupResult]) -> list[Any]:
    """Return the columns of the plans of groups (`outputs.PLANS`)."""
    sizes = [len(result.rows.lags) for result in results]
    keys = [(result.rows.snapshot_ts, result.rows.group) for result in results]
    topics = [np.array(result.rows.topics, dtype=object)[result.rows.topic_of] for result in results]
    return [
        *(
            pa.array(np.repeat(np.array(values, dtype=object), sizes), pa.string())
            for values in zip(*keys, strict=True)
        ),
        pa.array(np.concatenate(topics), pa.string()),
        pa.array(np.concatenate([result.rows.partition_ids for result in results]).astype(np.int32)),
        pa.array(np.concatenate([result.rows.lags for result in results])),
        *(
            pa.array(list(chain.from_iterable(values)), pa.string())
            for values in ([r.rows.owners for r in results], [r.consumers for r in results])
        ),
        named(np.concatenate([result.moves for result in results]), pa.array(MOVE_WORDS)),
    ]


def forget_archives() -> None:
    """Drop cached importers of archives on Python's path, which Spark would refresh before each task (0.05 s)."""
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]


def look_around(method: str = "auto", folder: str | None = None) -> Callable[[int], str]:
    """Return a function with which a task checks that all packages for solving by a method can be loaded.

    It is a nested function with its own imports, so that Spark can send it to executors without evenlag.

    Parameters
    ----------
    method : str
        As in `evenlag.solve`.
    folder : str, optional
        Path of a local folder, to check if it can be written.

    Returns
    -------
    callable
        Takes a number, which is ignored, and returns a JSON object: `python` (version) and `executable`, `missing`
        (names of packages), `broken` (why an installed package cannot be loaded, or null), `evenlag` (version, or null)
        and `writes`.
    """
    wanted = tuple(dict.fromkeys(("evenlag", *PACKAGES, *(packages_of(method) if method in BACKENDS else ()))))

    def look(_: int) -> str:
        import json
        import os
        import platform
        import sys
        from importlib import import_module
        from importlib.util import find_spec

        found = {"python": platform.python_version(), "executable": sys.executable, "evenlag": None, "broken": None}
        missing = [name for name in wanted if find_spec(name) is None]
        if not missing:
            try:
                found["evenlag"] = getattr(import_module("evenlag"), "__version__", "of unknown version")
                import_module("evenlag.spark.worker.arrow_task")
            except ModuleNotFoundError as error:
                missing = [str(error.name)]
            except Exception as error:  # such as a missing system library or an incompatible version
                found["broken"] = f"{type(error).__name__}: {error}"
        return json.dumps(found | {"missing": missing, "writes": folder is None or os.access(folder, os.W_OK)})

    return look
