"""The Spark job that solves the groups of a fleet, with the options, limits and clock of a call."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from evenlag.compare.foresight import AUTO
from evenlag.errors import SourceError
from evenlag.heuristics import HEURISTICS
from evenlag.heuristics.by_columns import BY_COLUMNS
from evenlag.spark.driver.choice import driver_of
from evenlag.spark.driver.executors import check_executors
from evenlag.spark.driver.kept import LOOK, Running, within
from evenlag.spark.driver.protocol import Place, described, report_end
from evenlag.spark.driver.task_context import attempt
from evenlag.spark.jobs.fleet import EACH, FEW, HASTE, TASKS_PER_SLOT, Fleet, check_tables, check_topics
from evenlag.spark.jobs.fleet_options import FleetOptions
from evenlag.spark.jobs.solved_tables import of_groups
from evenlag.spark.worker.arrow_task import Solver
from evenlag.spark.worker.group_work import Want
from evenlag.spark.worker.turns import RESERVE, SPARE, Budget
from evenlag.tables.outputs import SOLVED

GRACE = 0.85  # seconds after the time limit for cancelling jobs
BEYOND = 0.05  # share of the limit that is added to it
COUNTING = 0.25  # share of the time left after which groups are placed without their counts
PATIENCE = 60.0  # seconds in which results that are read are waited for, after the limit
WRITING = 0.2  # minimum share of the time limit reserved for writing and summing up tables after the last plan
WRITING_TO_READING = 1.75  # seconds for that, to those for reading and counting: both are mostly a cold Java
MOST_WRITING = 0.8  # maximum share of the remaining time reserved for that


class Solved:
    """The results of a fleet (`outputs.SOLVED`), which may still be on their way when the call's time is up.

    Parameters
    ----------
    running : Running
        The job that writes them.
    planned_late : callable (DataFrame) -> DataFrame
        Returns first plans of the groups that are not among given results; they are made when the table is used.

    Attributes
    ----------
    late : DataFrame or None
        First plans for the groups of tasks that `table` lacks; None if it has all.
    """

    def __init__(self, running: Running[None], place: Place, planned_late: Callable[[DataFrame], DataFrame]) -> None:
        self._running, self._place, self._planned_late = running, place, planned_late
        self._whole: DataFrame | None = None
        self.late: DataFrame | None = None

    def table(self, patience: float) -> DataFrame:
        """Return the results that tasks have returned; wait for their job, and after `patience` seconds cancel it."""
        if self._whole is None:
            if self._running.ends(time.time() + patience):
                self._running.result()
            elif not self._running.cancel():
                done = self._place.read()
                self._whole, self.late = done, self._planned_late(done)
                return done
            self._whole = self._place.read()
        return self._whole

    def all(self, patience: float = PATIENCE) -> DataFrame:
        """Return `table` and `late`."""
        table = self.table(patience)
        return table if self.late is None else table.unionByName(self.late)


class FleetSolver:
    """Solver of a fleet's groups within a time limit, which starts when the object is created (`started`, epoch).

    Parameters
    ----------
    part : bool
        True if the tables are a part of the fleet, which need not have every topic named in the call.
    """

    def __init__(self, options: FleetOptions, *, part: bool = False) -> None:
        self.started = time.time()
        self.options, self.part = options, part

    def check(self, offsets_df: DataFrame, members_df: DataFrame | None) -> Fleet:
        """Check both tables of the call, and the topics named in it."""
        now = time.time()
        fleet = check_tables(
            offsets_df, members_df, self.options, whole=self.options.recorded,
            until=None if self.until is None else now + COUNTING * (self.until - now),
            per_slot=self._per_slot, count=not self._hurried(offsets_df),
        )  # fmt: skip
        if not self.part:
            check_topics(fleet.tables, self.options.data, self.until)
        return fleet

    def _hurried(self, offsets_df: DataFrame) -> bool:
        """Return whether to skip counting the groups: the table is small, and time is short or plans are quick."""
        driver, limit = driver_of(offsets_df.sparkSession), self.options.time_limit
        cold = driver.is_cold()
        short = limit is not None and limit < HASTE and (cold or limit < HASTE / 2)
        quick = self.options.solving.method in BY_COLUMNS and self.options.want == Want.PLAN
        wanted = self.options.progress is not None or self.options.solving.deterministic
        return (short or quick) and not wanted and driver.is_small(offsets_df)

    @property
    def _per_slot(self) -> tuple[int, int]:
        """The smallest and largest number of tasks per slot."""
        solving, limit = self.options.solving, self.options.time_limit
        if solving.method in HEURISTICS and self.options.want == Want.PLAN:
            return FEW
        if limit is None or solving.deterministic:
            return TASKS_PER_SLOT
        several = min(max(int(limit / EACH), 1), TASKS_PER_SLOT[1])
        return several, several

    @property
    def until(self) -> float | None:
        """The time (epoch) at which running jobs are cancelled; tasks that got to start end earlier."""
        limit = self.options.time_limit
        return None if limit is None else self.started + limit * (1 + BEYOND) + GRACE

    def run(self, fleet: Fleet, place: Place) -> Solved:
        """Solve all groups once, and keep the results (`outputs.SOLVED`) in a place.

        Raises
        ------
        SourceError
            Executors lack packages that tasks need, or share no place with the driver.
        """
        spark, packing, options = fleet.tables.offsets.sparkSession, fleet.packing, self.options
        check_executors(spark, place, options.solving.method, self.until)
        driver = driver_of(spark)
        spare = SPARE if options.want == Want.PLAN else 0.0
        budget = Budget(
            options.group_time_limit, None, packing.costs, fleet.slots, options.solving.deterministic
        ).within(options.time_limit, started=self.started, reserve=self._reserve(), spare=spare)
        schema = SOLVED.arrow()
        total = fleet.groups or 0  # unknown only without progress reports
        solver = Solver(
            fleet.rules, replace(options.solving, threads=driver.task_cpus()), budget, options.want, schema, attempt,
            recorded=fleet.recorded, foresee=options.horizon == AUTO, data=options.data,
        )  # fmt: skip
        named = described(spark, f"solving {total:,} groups" if total else "solving all groups")
        watched = driver.reporting(options.progress, total, packing.tasks)
        with named, watched as (done, failed), driver.batches_by_rows():
            solving = fleet.dealt().mapInArrow(replace(solver, done=done, failed=failed), SOLVED.ddl)
            running = Running(spark, lambda: place.write(solving))
            try:
                ended = running.ends(self.until)
            except BaseException:
                running.cancel()
                raise
        late = replace(solver, budget=replace(budget, deadline=self.started), done=None, failed=None)

        def planned_late(found: DataFrame) -> DataFrame:
            return fleet.others(found.select("task").distinct()).mapInArrow(late, SOLVED.ddl).persist()

        solved = Solved(running, place, planned_late)
        if not ended:
            self._report_cut(spark, place, total)
        else:
            table = solved.table(0.0)
            if place.hint and table.select("task").distinct().count() != packing.tasks:
                raise SourceError(place.hint)
            report_end(options.progress, total, (done, failed))
        return solved

    def _reserve(self) -> float:
        """Return the share of the time limit for the work after the last plan, from the time taken so far."""
        limit = self.options.time_limit
        if limit is None or self.options.want != Want.BOTH:
            return RESERVE
        taken = time.time() - self.started
        return max(WRITING, min(WRITING_TO_READING * taken, MOST_WRITING * (limit - taken)) / limit)

    def _report_cut(self, spark: SparkSession, place: Place, total: int) -> None:
        """Report the progress of a running job, as rows of completed tasks, if they can be counted quickly."""
        if self.options.progress is None:
            return
        counts = of_groups(place.read()).agg(sf.count("*"), sf.count("error"))
        for done, failed in within(spark, time.time() + LOOK, counts.collect) or ():
            self.options.progress(done, total, failed)
