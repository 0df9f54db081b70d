"""The Spark job that solves the groups of a fleet, with the options, limits and clock of a call."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from evenlag.compare.foresight import AUTO
from evenlag.errors import InvalidProblemError, SourceError
from evenlag.heuristics import HEURISTICS
from evenlag.heuristics.by_columns import BY_COLUMNS
from evenlag.search.options import SolveKeywords, SolveOptions, TermKeywords, check_seconds, solving_options
from evenlag.spark.driver.choice import driver_of
from evenlag.spark.driver.executors import check_executors
from evenlag.spark.driver.kept import LOOK, Running, within
from evenlag.spark.driver.protocol import Place, Progress, described, report_end
from evenlag.spark.driver.task_context import attempt
from evenlag.spark.jobs.fleet import EACH, FEW, HASTE, TASKS_PER_SLOT, Fleet, check_tables, check_topics
from evenlag.spark.jobs.solved_tables import of_groups
from evenlag.spark.worker.arrow_task import Solver
from evenlag.spark.worker.group_work import Want
from evenlag.spark.worker.turns import RESERVE, SPARE, Budget
from evenlag.tables.fleet_data import NO_FLEET_DATA, DataKeywords, FleetData
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
    place : Place
    planned_late : callable (DataFrame) -> DataFrame
        Returns first plans of the groups that are not among given results; they are made when the table is used.
    """

    def __init__(self, running: Running[None], place: Place, planned_late: Callable[[DataFrame], DataFrame]) -> None:
        self._running, self._place, self._planned_late = running, place, planned_late
        self._whole: DataFrame | None = None
        self._late: DataFrame | None = None

    def table(self, patience: float) -> DataFrame:
        """Return the results that tasks have returned; wait for their job, and after `patience` seconds cancel it."""
        if self._whole is None:
            if self._running.ends(time.time() + patience):
                self._running.result()
            elif not self._running.cancel():
                done = self._place.read()
                self._whole, self._late = done, self._planned_late(done)
                return done
            self._whole = self._place.read()
        return self._whole

    @property
    def late(self) -> DataFrame | None:
        """First plans for the groups of tasks that `table` lacks; None if it has all."""
        return self._late

    def all(self, patience: float = PATIENCE) -> DataFrame:
        """Return `table` and `late`."""
        table = self.table(patience)
        return table if self._late is None else table.unionByName(self._late)


class PlanKeywords(SolveKeywords, DataKeywords, total=False):
    """Parameters passed on by every call that plans the groups of a fleet."""


class AuditKeywords(TermKeywords, DataKeywords, total=False):
    """Parameters passed on by an audit of a fleet."""


def fleet_options(
    call: str, keywords: PlanKeywords | AuditKeywords, function: Callable[..., Any], known: type = PlanKeywords
) -> tuple[SolveOptions, FleetData]:
    """Return the options and the data in the keywords of a call; `known` declares the allowed keywords.

    Raises
    ------
    TypeError
        A keyword is unknown.
    InvalidProblemError
        A parameter has an invalid value.
    SourceError
        A file cannot be read.
    """
    data: Any = {name: value for name, value in keywords.items() if name in DataKeywords.__annotations__}
    others: Any = {name: value for name, value in keywords.items() if name not in data}
    checked, of_fleet = solving_options(call, others, function, known=known), FleetData.of(**data)
    if checked.max_load is not None and of_fleet.draining is not None:
        raise InvalidProblemError("drain_seconds sets max_load; give only one of them")
    return checked, of_fleet


class FleetSolver:
    """Solver of a fleet's groups within a time limit, which starts when the object is created.

    Parameters
    ----------
    options : SolveOptions
    want : {"plan", "audit", "both"}
    time_limit : float or None
        Seconds for the whole call.
    group_time_limit : float
        Time limit of one group, in seconds.
    horizon : float or str
        As in `plans`.
    progress : callable, optional
        As in `plans`.
    data : FleetData
        Sizes, traffic and units in addition to those in the tables, and the drain time.
    whole : bool
        True if the tables hold the whole fleet, so that they must have every topic named in the call.

    Raises
    ------
    InvalidProblemError
        `want` or a limit has an invalid value.
    """

    def __init__(
        self,
        options: SolveOptions,
        want: str,
        time_limit: float | None,
        group_time_limit: float,
        horizon: float | str,
        progress: Progress | None,
        data: FleetData = NO_FLEET_DATA,
        whole: bool = True,
    ) -> None:
        self._started = time.time()
        if time_limit is not None:
            check_seconds("time_limit", time_limit)
        check_seconds("group_time_limit", group_time_limit)
        self._options, self._want = options, Want.of(want, "want")
        self._horizon, self._progress = horizon, progress
        self._data, self._whole = data, whole
        self._limits = (time_limit, group_time_limit)

    def check(
        self, offsets_df: DataFrame, members_df: DataFrame | None, auto_offset_reset: str, tasks: int | None
    ) -> Fleet:
        """Check both tables of the call, and the topics named in it; parameters are those of `check_tables`."""
        priced = self._options.only_if_better is not None and self._options.pause > 0
        recorded = priced or self._horizon == AUTO or self._data.by_record
        now = time.time()
        fleet = check_tables(
            offsets_df, members_df, auto_offset_reset, tasks, self._horizon, whole=recorded,
            until=None if self.until is None else now + COUNTING * (self.until - now),
            per_slot=self._per_slot, count=not self._hurried(offsets_df),
        )  # fmt: skip
        if self._whole:
            check_topics(offsets_df, self._data, self.until)
        return fleet

    def _hurried(self, offsets_df: DataFrame) -> bool:
        """Return whether to skip counting the groups: the table is small, and time is short or plans are quick."""
        driver, (limit, _) = driver_of(offsets_df.sparkSession), self._limits
        cold = driver.is_cold()
        short = limit is not None and limit < HASTE and (cold or limit < HASTE / 2)
        quick = self._options.method in BY_COLUMNS and self._want == Want.PLAN
        wanted = self._progress is not None or self._options.deterministic
        return (short or quick) and not wanted and driver.is_small(offsets_df)

    @property
    def balance(self) -> str:
        """The balance of the plans."""
        return self._options.balance

    @property
    def _per_slot(self) -> tuple[int, int]:
        """The smallest and largest number of tasks per slot."""
        if self._options.method in HEURISTICS and self._want == Want.PLAN:
            return FEW
        limit, _ = self._limits
        if limit is None or self._options.deterministic:
            return TASKS_PER_SLOT
        several = min(max(int(limit / EACH), 1), TASKS_PER_SLOT[1])
        return several, several

    @property
    def time_limit(self) -> float | None:
        """The time limit of the call in seconds."""
        return self._limits[0]

    @property
    def until(self) -> float | None:
        """The time (epoch) at which running jobs are cancelled; tasks that got to start end earlier."""
        limit, _ = self._limits
        return None if limit is None else self._started + limit * (1 + BEYOND) + GRACE

    @property
    def over(self) -> bool:
        """True if running jobs are cancelled by now."""
        return self.until is not None and time.time() >= self.until

    def run(self, fleet: Fleet, place: Place) -> Solved:
        """Solve all groups once, and keep the results (`outputs.SOLVED`) in a place.

        Raises
        ------
        SourceError
            Executors lack packages that tasks need, or share no place with the driver.
        """
        spark, packing = fleet.tables.offsets.sparkSession, fleet.packing
        check_executors(spark, place, self._options.method, self.until)
        driver = driver_of(spark)
        budget = Budget.share(
            *self._limits,
            started=self._started,
            costs=packing.costs,
            slots=fleet.slots,
            deterministic=self._options.deterministic,
            reserve=self._reserve(),
            spare=SPARE if self._want == Want.PLAN else 0.0,
        )
        schema = SOLVED.arrow()
        total = fleet.groups or 0  # unknown only without progress reports
        solver = Solver(
            fleet.rules, replace(self._options, threads=driver.task_cpus()), budget, self._want, schema, attempt,
            recorded=fleet.recorded, foresee=self._horizon == AUTO, data=self._data,
        )  # fmt: skip
        named = described(spark, f"solving {total:,} groups" if total else "solving all groups")
        watched = driver.reporting(self._progress, total, packing.tasks)
        with named, watched as (done, failed), driver.batches_by_rows():
            solving = fleet.dealt().mapInArrow(replace(solver, done=done, failed=failed), SOLVED.ddl)
            running = Running(spark, lambda: place.write(solving))
            try:
                ended = running.ends(self.until)
            except BaseException:
                running.cancel()
                raise
        late = replace(solver, budget=replace(budget, deadline=self._started), done=None, failed=None)

        def planned_late(found: DataFrame) -> DataFrame:
            return fleet.others(found.select("task").distinct()).mapInArrow(late, SOLVED.ddl).persist()

        solved = Solved(running, place, planned_late)
        if not ended:
            self._report_cut(spark, place, total)
        else:
            table = solved.table(0.0)
            if place.hint and table.select("task").distinct().count() != packing.tasks:
                raise SourceError(place.hint)
            report_end(self._progress, total, (done, failed))
        return solved

    def _reserve(self) -> float:
        """Return the share of the time limit for the work after the last plan, from the time taken so far."""
        limit, _ = self._limits
        if limit is None or self._want != Want.BOTH:
            return RESERVE
        taken = time.time() - self._started
        return max(WRITING, min(WRITING_TO_READING * taken, MOST_WRITING * (limit - taken)) / limit)

    def _report_cut(self, spark: SparkSession, place: Place, total: int) -> None:
        """Report the progress of a running job, as rows of completed tasks, if they can be counted quickly."""
        if self._progress is None:
            return
        counts = of_groups(place.read()).agg(sf.count("*"), sf.count("error"))
        for done, failed in within(spark, time.time() + LOOK, counts.collect) or ():
            self._progress(done, total, failed)
