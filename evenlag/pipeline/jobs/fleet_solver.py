"""One call's options, limits and clock, and the Spark job that solves the groups of a fleet under them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar, cast

from pyspark import TaskContext
from pyspark.sql import DataFrame, types
from pyspark.sql.pandas.types import to_arrow_schema

from evenlag.pipeline.columns.task_rows import task_rows
from evenlag.pipeline.jobs.fleet import Fleet
from evenlag.pipeline.spark.batches import filled_by_rows
from evenlag.pipeline.spark.progress import Progress, reporting
from evenlag.pipeline.spark.session import task_cpus
from evenlag.pipeline.tables.schemas import GROUPS
from evenlag.pipeline.tasks.budget import RESERVE, Budget
from evenlag.pipeline.tasks.solving import Want
from evenlag.pipeline.tasks.worker import Solver
from evenlag.search.options import SolveOptions, check_seconds

WRITING = 0.2  # share of the time limit that is kept where tables are sorted and written after the last plan

T = TypeVar("T")


class FleetSolver:
    """Solves the groups of a fleet within a time limit, whose clock starts when this is made.

    Parameters
    ----------
    options : SolveOptions
    want : {"plan", "audit", "both"}
    time_limit : float or None
        Seconds for the whole call.
    group_time_limit : float
        Seconds, the most that one group gets.
    progress : callable, optional
        As in `plans`.

    Raises
    ------
    InvalidProblemError
        A limit that is none.
    """

    def __init__(
        self,
        options: SolveOptions,
        want: Want,
        time_limit: float | None,
        group_time_limit: float,
        progress: Progress | None,
    ) -> None:
        self._started = time.time()
        if time_limit is not None:
            check_seconds("time_limit", time_limit)
        check_seconds("group_time_limit", group_time_limit)
        self._options, self._want, self._progress = options, want, progress
        self._limits = (time_limit, group_time_limit)

    def run(self, fleet: Fleet, finish: Callable[[DataFrame], T]) -> T:
        """Solve all groups; `finish` gets them (`schemas.GROUPS`) and makes Spark do the work."""
        context = fleet.offsets.sparkSession.sparkContext
        budget = Budget.share(
            *self._limits,
            started=self._started,
            tasks=fleet.packing.tasks,
            slots=fleet.slots,
            deterministic=self._options.deterministic,
            reserve=WRITING if self._want == "both" else RESERVE,
        )
        options = replace(self._options, threads=task_cpus(context))
        watched = self._progress is not None
        done, failed = (context.accumulator(0), context.accumulator(0)) if watched else (None, None)
        schema = to_arrow_schema(cast(types.StructType, types.StructType.fromDDL(GROUPS)))
        solver = Solver(options, budget, self._want, schema, attempt, done, failed)
        rows = fleet.packing.repartition(task_rows(fleet.offsets, fleet.members))
        with reporting(self._progress, done, failed, fleet.groups), filled_by_rows(context):
            return finish(rows.mapInArrow(solver, GROUPS))


def attempt() -> tuple[int, bool]:
    """Return the number of this executor's task, and whether an earlier attempt at it failed."""
    context = TaskContext.get()
    return (0, False) if context is None else (context.partitionId(), context.attemptNumber() > 0)
