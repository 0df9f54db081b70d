"""The function that `mapInArrow` calls on executors: it solves groups and returns Arrow batches (no Spark import)."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain, groupby
from multiprocessing.connection import Connection
from typing import Any, Protocol, TypeVar
from zipimport import zipimporter

import pyarrow as pa

from evenlag.errors import EvenlagError
from evenlag.model.backends import PACKAGES_OF
from evenlag.model.pair_costs import PAIR_COSTS
from evenlag.model.result import Result
from evenlag.search.cache import Caches
from evenlag.search.options import SolveOptions
from evenlag.spark.worker.arrow_groups import group_rows
from evenlag.spark.worker.one_group import Effort, GroupResult, PlanColumns, Want, decided, solve_group
from evenlag.spark.worker.turns import Budget, take_turns
from evenlag.tables.fleet_data import NO_FLEET_DATA, FleetData
from evenlag.tables.group import GroupRows
from evenlag.tables.past import Past

UNREACHED = "not solved before the call's time limit: set a longer time limit, or use more executors"
FIRST_TURNS = (Effort.LEAST, Effort.FIRST)
NO_PLAN = PlanColumns((), (), (), (), (), ())
NO_PASTS: Mapping[str, Past] = {}
_OF_RESULT = ("method", "bound_by", "gap", "pays")  # columns with the names of a result's attributes
ROWS_PER_BATCH = 20_000  # partitions of the groups returned to Spark in one batch


PACKAGES = ("numpy", "ortools", "pyarrow")
"""Packages that tasks import in addition to evenlag; their modules have the same names."""

T = TypeVar("T")


class ProcessDiedError(EvenlagError):
    """Error for a process that ended without an answer."""


class Counter(Protocol):
    """Interface of a counter of groups, such as Spark's accumulator."""

    def add(self, term: int) -> None:
        """Add `term` to the count."""


@dataclass(frozen=True)
class Solver:
    """Solver of a task's groups, which returns one row of `schema` for each (`outputs.SOLVED`).

    `turns.take_turns` divides the time among the groups. `attempt` returns the task's number and its failed attempts.
    After one failed attempt, each turn except the first plans runs in a separate process, so that a group that kills
    the process does not affect the others. First plans hardly ever do, and there are many, so they run in separate
    processes only after two failed attempts.

    With `recorded`, the task has all snapshots of its groups with offsets, and uses the earlier ones. With `foresee`,
    plans are made for the forecast from these (horizon `auto`).
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
    data: FleetData = NO_FLEET_DATA
    solve: Callable[..., GroupResult] = solve_group

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Solve the groups of one task, from their rows (`outputs.ROWS`)."""
        task, failures = self.attempt()
        groups = group_rows(batches)
        pasts = self._pasts(groups) if self.recorded else NO_PASTS
        budget = self.budget.for_rows(sum(len(group.lags) for group in groups))
        here = partial(self._turn, pasts=pasts, caches=Caches(), last=budget.last)

        def turn(rows: GroupRows, limit: float, effort: Effort, late: bool, earlier: GroupResult | None) -> GroupResult:
            if failures > (effort in FIRST_TURNS):
                return self._isolated(partial(here, rows, limit, effort, late, earlier), rows, late, earlier)
            return here(rows, limit, effort, late, earlier)

        solved: list[GroupResult] = []
        held = 0  # number of their rows
        for result in take_turns(groups, budget, task, self.options.gap, turn):
            pause = float(self.data.past.pause_of(result.rows.group, self.options.pause)[0])
            solved.append(decided(result, replace(self.options, pause=pause)))
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

    @staticmethod
    def _pasts(groups: Sequence[GroupRows]) -> dict[str, Past]:
        """Return the past of each group with several snapshots, or with log ends before its only one."""
        histories = [(group, list(rows)) for group, rows in groupby(groups, key=lambda rows: rows.group)]
        return {group: Past(rows) for group, rows in histories if len(rows) > 1 or rows[0].past}

    def _turn(
        self, rows: GroupRows, time_limit: float, effort: Effort, late: bool, earlier: GroupResult | None,
        pasts: Mapping[str, Past] = NO_PASTS, caches: Caches | None = None, last: float | None = None,
    ) -> GroupResult:  # fmt: skip
        if last is not None and earlier is None and time.time() >= last:
            return GroupResult(rows, self.want, self.options.balance, late=True, error=UNREACHED)
        return self.solve(
            rows, self.options, self.want, time_limit=time_limit, effort=effort, late=late, earlier=earlier,
            past=pasts.get(rows.group), foresee=self.foresee, caches=caches, data=self.data,
        )  # fmt: skip

    def _isolated(
        self, turn: Callable[[], GroupResult], rows: GroupRows, late: bool, earlier: GroupResult | None
    ) -> GroupResult:
        started = time.monotonic()
        try:
            return in_own_process(turn)
        except ProcessDiedError as error:
            before = earlier or GroupResult(rows, self.want, self.options.balance, late=late)
            return replace(before.failed(str(error)), seconds=before.seconds + time.monotonic() - started)


def result_batch(results: Sequence[GroupResult], schema: Any, failures: int = 0) -> Any:
    """Return the results of groups as a batch, one row each; `failures` attempts at their task failed before."""
    values = {
        "snapshot_ts": [result.rows.snapshot_ts for result in results],
        "group": [result.rows.group for result in results],
        "status": [result.status for result in results],
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


def _traffic(result: Result) -> int | None:
    """Return the traffic of all partitions; None if unknown."""
    traffic = result.plan.problem.pairs.traffic
    return None if traffic is None else int(traffic.sum())


def _plan_array(results: Sequence[GroupResult], kind: Any) -> Any:
    """Return the column of plans, built column by column for large groups; null for groups that were not solved."""
    # Returning the rows of such groups would take about as long as planning them, and the source has them.
    missing = [result.error == UNREACHED and result.want != Want.AUDIT for result in results]
    fields = list(kind.value_type)
    plans = [NO_PLAN if absent else result.plan for absent, result in zip(missing, results, strict=True)]
    columns = [
        pa.array(list(chain.from_iterable(getattr(plan, field.name) for plan in plans)), field.type) for field in fields
    ]
    structs = pa.StructArray.from_arrays(columns, fields=fields)
    ends = list(accumulate((len(plan.topic) for plan in plans), initial=0))
    starts = [None if absent else end for absent, end in zip(missing, ends[:-1], strict=True)]  # null: no list
    return pa.ListArray.from_arrays(pa.array([*starts, ends[-1]], pa.int32()), structs, type=kind)


def forget_archives() -> None:
    """Drop cached importers of archives on Python's path, which Spark would refresh before each task (0.05 s)."""
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]


def in_own_process(call: Callable[[], T]) -> T:
    """Call a function in a forked process, and return its result.

    Raises
    ------
    ProcessDiedError
        The process ended without a result: killed, out of memory, or crashed in native code.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, call))
    process.start()
    sender.close()
    try:
        answer: T = receiver.recv()
    except EOFError:
        process.join()
        code = process.exitcode or 0
        how = f"signal {-code}" if code < 0 else f"status {code}"
        raise ProcessDiedError(f"its process ended with {how}: out of memory, or a crash") from None
    finally:
        receiver.close()
    process.join()
    return answer


def _answer(sender: Connection, call: Callable[[], T]) -> None:
    sender.send(call())
    sender.close()


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
    wanted = ("evenlag", *PACKAGES, *PACKAGES_OF.get(method, ()))

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
                import_module("evenlag.spark.worker.task")
            except ModuleNotFoundError as error:
                missing = [str(error.name)]
            except Exception as error:  # such as a missing system library or an incompatible version
                found["broken"] = f"{type(error).__name__}: {error}"
        return json.dumps(found | {"missing": missing, "writes": folder is None or os.access(folder, os.W_OK)})

    return look
