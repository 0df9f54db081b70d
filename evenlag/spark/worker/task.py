"""Groups solved, and their results as Arrow batches, on the executors: what `mapInArrow` calls. Needs no Spark."""

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

UNREACHED = "the time limit of the whole call was reached before its turn: give it more time, or more tasks at once"
FIRST_TURNS = (Effort.LEAST, Effort.FIRST)
NO_PLAN = PlanColumns((), (), (), (), (), ())
NO_PASTS: Mapping[str, Past] = {}
_OF_RESULT = ("method", "bound_by", "gap", "pays")  # columns that are attributes of a result
ROWS_PER_BATCH = 20_000  # partitions of the groups that go back to Spark together


PACKAGES = ("numpy", "ortools", "pyarrow")
"""What tasks import beside evenlag, under the names of the packages, which are those of their modules too."""

T = TypeVar("T")


class ProcessDiedError(EvenlagError):
    """The process of a call ended without an answer."""


class Counter(Protocol):
    """What counts groups that are done: Spark's accumulator."""

    def add(self, term: int) -> None:
        """Count `term` more."""


@dataclass(frozen=True)
class Solver:
    """Solves the groups of a task, one row each, and gives them back as rows of `schema` (`outputs.SOLVED`).

    `turns.take_turns` says which group gets how much time. `attempt` gives the number of the task, and how many
    attempts at it failed before: after one each turn is taken in a process of its own, so that a group that kills it
    costs nobody else anything. First plans kill nobody, or hardly, and are so many that they are only after two.

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
        held = 0  # rows of those
        for result in take_turns(groups, budget, task, self.options.gap, turn):
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

    @staticmethod
    def _pasts(groups: Sequence[GroupRows]) -> dict[str, Past]:
        """Return what is recorded of each group that has several snapshots."""
        histories = [(group, list(rows)) for group, rows in groupby(groups, key=lambda rows: rows.group)]
        return {group: Past(rows) for group, rows in histories if len(rows) > 1}

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
    """Write what became of some groups as a batch, a row for each; so many attempts at their task failed before."""
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
    """Return the traffic of all partitions, or None where it is not known."""
    traffic = result.plan.problem.pairs.traffic
    return None if traffic is None else int(traffic.sum())


def _plan_array(results: Sequence[GroupResult], kind: Any) -> Any:
    """Column by column: a group can have a million rows. Null where it came too late."""
    # To hand such rows on takes about as long as to plan them, and their source has them.
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
    """Leave Spark no archives on Python's path whose directories it would read again before each task: 0.05 s."""
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]


def in_own_process(call: Callable[[], T]) -> T:
    """Return what a call returns, made in a forked process.

    Raises
    ------
    ProcessDiedError
        The process ended before: killed, out of memory, or a crash in native code.
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
    """Return what a task does to load all that solving by a method needs, and to say what it has.

    It is a function within a function, and imports for itself, so that it travels whole: there may be no evenlag where
    it runs.

    Parameters
    ----------
    method : str
        As in `evenlag.solve`.
    folder : str, optional
        Path of a local folder; whether it may be written to is said too.

    Returns
    -------
    callable
        Takes a number that means nothing, and gives a JSON object: `python` and `executable`, `missing` (the names of
        packages), `broken` (why something that is there cannot be loaded, or null), `evenlag` (its version, or null)
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

        said = {"python": platform.python_version(), "executable": sys.executable, "evenlag": None, "broken": None}
        missing = [name for name in wanted if find_spec(name) is None]
        if not missing:
            try:
                said["evenlag"] = getattr(import_module("evenlag"), "__version__", "of unknown version")
                import_module("evenlag.spark.worker.task")
            except ModuleNotFoundError as error:
                missing = [str(error.name)]
            except Exception as error:  # a library of the system that is not there, an older interface, …
                said["broken"] = f"{type(error).__name__}: {error}"
        return json.dumps(said | {"missing": missing, "writes": folder is None or os.access(folder, os.W_OK)})

    return look
