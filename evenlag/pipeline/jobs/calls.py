"""Whole tables in, whole tables out: the calls for any Spark driver, and the steps they are made of."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from pyspark import SparkContext, TaskContext, inheritable_thread_target
from pyspark.sql import DataFrame, types
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema

from evenlag.errors import InvalidProblemError, SourceError
from evenlag.model.rates import horizon_micros
from evenlag.pipeline.columns import checks
from evenlag.pipeline.columns.rates import with_predicted_lags
from evenlag.pipeline.jobs.task_packing import MOST_PACKED, Key, Placing
from evenlag.pipeline.spark.progress import Progress, reporting
from evenlag.pipeline.spark.session import task_cpus, task_slots, use_own_python, wake_workers
from evenlag.pipeline.tables.schemas import AUDIT, GROUPS, PLANS, columns
from evenlag.pipeline.tables.schemas import KEY_COLUMNS as KEY
from evenlag.pipeline.tasks.budget import RESERVE, Budget
from evenlag.pipeline.tasks.group import MEMBER
from evenlag.pipeline.tasks.solving import Options, Want
from evenlag.pipeline.tasks.worker import Solver

GROUPS_PER_TASK = 8  # few, so that progress is seen and tasks come out even
TASKS_PER_SLOT = (2, 16)  # at least and at most; a task alone takes up to 0.1 s
WRITING = 0.2  # share of the time limit that is kept where tables are sorted and written after the last plan

BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
TIMES = (types.DateType, types.TimestampType, types.TimestampNTZType)
T = TypeVar("T")


def plans(
    offsets_df: DataFrame,
    members_df: DataFrame | None = None,
    *,
    balance: str = "both",
    stickiness: float | str = "0.1%",
    max_moves: int | None = None,
    slack: int = 0,
    objective: str = "spread",
    method: str = "auto",
    time_limit: float | None = 60.0,
    group_time_limit: float = 2.0,
    gap: float = 0.0,
    seed: int = 0,
    deterministic: bool = False,
    auto_offset_reset: str = "latest",
    horizon: float | str = 0,
    tasks: int | None = None,
    progress: Progress | None = None,
) -> DataFrame:
    """Plan every group of a fleet on the executors.

    The work is done within the call, and its result is cached: call `unpersist` on it when you are done. Rows that
    cannot be used are left out here; `rejects` gives them with their reasons.

    Parameters
    ----------
    offsets_df : DataFrame
        An offsets table (docs/formats.md), its columns text or typed; many groups, many snapshots.
    members_df : DataFrame, optional
        A members table. Without one the members are the owners seen.
    balance, stickiness, max_moves, slack, objective, method, gap, seed, deterministic
        As in `evenlag.solve`, for every group.
    time_limit : float or None
        Seconds for the whole call. Groups whose turn comes too late get the plan that takes the least effort.
    group_time_limit : float
        Seconds, the most that one group gets.
    auto_offset_reset : str
        What a group that never committed will read, where a row does not say: `latest`, nothing; else the whole log.
    horizon : float or str
        Seconds, or text such as "10m": balance the lag predicted for then, lag + produce rate · horizon, rounded up.
        The rate is that since the partition's snapshot before; without one today's lag is taken. 0: today's lag.
    tasks : int, optional
        Spark tasks to spread the groups over; by default from the number of groups and of cores.
    progress : callable, optional
        Called from a thread of the driver with the groups done, their total and how many failed; `progress_bar`
        gives one.

    Returns
    -------
    DataFrame
        As `evenlag.pipeline.tables.schemas.PLANS` says; `snapshot_ts` in the type it came with.

    Raises
    ------
    InvalidProblemError
        An option that is no such thing.
    SourceError
        A table lacks a required column.
    """
    options = Options(balance, stickiness, max_moves, slack, objective, method, gap, seed, deterministic)
    call = Call(options, "plan", time_limit, group_time_limit, progress)
    fleet = check_tables(offsets_df, members_df, auto_offset_reset, tasks, horizon)
    return call.run(fleet, lambda solved: _kept(fleet.dated(plan_rows(solved))))


def audit(
    offsets_df: DataFrame,
    members_df: DataFrame | None = None,
    *,
    time_limit: float | None = 60.0,
    group_time_limit: float = 2.0,
    gap: float = 0.0,
    seed: int = 0,
    deterministic: bool = False,
    auto_offset_reset: str = "latest",
    horizon: float | str = 0,
    tasks: int | None = None,
    progress: Progress | None = None,
) -> DataFrame:
    """Hold every strategy to the optimum, for every group of a fleet; see `evenlag.compare.audit` and `plans`.

    Returns
    -------
    DataFrame
        As `evenlag.pipeline.tables.schemas.AUDIT` says; cached, like that of `plans`.

    Raises
    ------
    InvalidProblemError, SourceError
        As `plans`.
    """
    options = Options(gap=gap, seed=seed, deterministic=deterministic)
    call = Call(options, "audit", time_limit, group_time_limit, progress)
    fleet = check_tables(offsets_df, members_df, auto_offset_reset, tasks, horizon)
    return call.run(fleet, lambda solved: _kept(fleet.dated(audit_rows(solved))))


def rejects(
    offsets_df: DataFrame, members_df: DataFrame | None = None, *, auto_offset_reset: str = "latest"
) -> DataFrame:
    """Give the rows that `plans` and `audit` cannot use, as they came, each with its reason.

    Returns
    -------
    DataFrame
        As `evenlag.pipeline.tables.schemas.REJECTS` says; not cached.

    Raises
    ------
    SourceError
        A table lacks a required column.
    """
    members = None if members_df is None else checks.check_members(members_df)
    return checks.rejects(checks.check_offsets(offsets_df, auto_offset_reset), members)


@dataclass(frozen=True)
class Fleet:
    """The checked tables of a call, and which tasks solve their groups.

    Attributes
    ----------
    offsets, members : DataFrame
        As `checks.check_offsets` and `check_members` give them, or `typed_offsets` and `typed_members`.
    groups : int
        Groups, one for each snapshot they are in.
    placing : Placing
    slots : int
        How many tasks the cluster runs at once.
    snapshot_type : DataType
        What `snapshot_ts` came as.
    """

    offsets: DataFrame
    members: DataFrame | None
    groups: int
    placing: Placing
    slots: int
    snapshot_type: types.DataType

    def dated(self, df: DataFrame) -> DataFrame:
        """Give `snapshot_ts` back in the type it came with."""
        if isinstance(self.snapshot_type, types.StringType):
            return df
        return df.withColumn("snapshot_ts", sf.col("snapshot_ts").try_cast(self.snapshot_type))


def check_tables(
    offsets_df: DataFrame,
    members_df: DataFrame | None,
    auto_offset_reset: str,
    tasks: int | None,
    horizon: float | str = 0,
    *,
    copies: bool = False,
) -> Fleet:
    """Check both tables, predict lags where a horizon is given, and say which tasks are to solve their groups.

    Copies are found by the tasks that get them, or here if `copies` is set: then the tables know every reject.
    """
    ahead = horizon_micros(horizon)
    checks.require_columns(offsets_df, "offsets")
    if members_df is not None:
        checks.require_columns(members_df, "members")
        _same_times(offsets_df, members_df)
    context = offsets_df.sparkSession.sparkContext
    use_own_python(context)
    slots = task_slots(context)
    wake_workers(offsets_df.sparkSession)
    with ThreadPoolExecutor(1) as pool:  # Spark counts while the driver plans what comes after
        counted = pool.submit(inheritable_thread_target(offsets_df.sparkSession)(_largest_groups), offsets_df)
        check_offsets = checks.check_offsets if copies or ahead else checks.typed_offsets
        check_members = checks.check_members if copies else checks.typed_members
        offsets = check_offsets(offsets_df, auto_offset_reset)
        offsets = with_predicted_lags(offsets, horizon) if ahead else offsets
        members = None if members_df is None else check_members(members_df)
        groups, largest = counted.result()
    least, most = (slots * each for each in TASKS_PER_SLOT)
    tasks = tasks or min(max(-(-groups // GROUPS_PER_TASK), least), most)
    return Fleet(offsets, members, groups, Placing.pack(largest, tasks), slots, _snapshot_type(offsets_df))


def _largest_groups(offsets_df: DataFrame) -> tuple[int, list[tuple[Key, int]]]:
    """Count the groups of an offsets table, and the rows of those with most."""
    sizes = checks.group_sizes(offsets_df)
    rows = sizes.orderBy(sf.desc("rows"), *KEY).take(MOST_PACKED + 1)
    groups = len(rows) if len(rows) <= MOST_PACKED else sizes.count()
    return groups, [((row["snapshot_ts"], row["group"]), row["rows"]) for row in rows[:MOST_PACKED]]


class Call:
    """One call with its options and limits; the clock of `time_limit` starts when it is made."""

    def __init__(
        self, options: Options, want: Want, time_limit: float | None, group_time_limit: float, progress: Progress | None
    ) -> None:
        self._started = time.time()
        for name, limit in (("time_limit", time_limit), ("group_time_limit", group_time_limit)):
            if limit is not None and not limit > 0:
                raise InvalidProblemError(f"{name} must be a number of seconds > 0, not {limit!r}")
        options.check()
        self._options, self._want, self._progress = options, want, progress
        self._limits = (time_limit, group_time_limit)

    def run(self, fleet: Fleet, finish: Callable[[DataFrame], T]) -> T:
        """Solve all groups; `finish` gets them (`schemas.GROUPS`) and makes Spark do the work."""
        context = fleet.offsets.sparkSession.sparkContext
        budget = Budget.share(
            *self._limits,
            started=self._started,
            tasks=fleet.placing.tasks,
            slots=fleet.slots,
            deterministic=self._options.deterministic,
            reserve=WRITING if self._want == "both" else RESERVE,
        )
        options = replace(self._options, threads=task_cpus(context))
        watched = self._progress is not None
        done, failed = (context.accumulator(0), context.accumulator(0)) if watched else (None, None)
        schema = to_arrow_schema(cast(types.StructType, types.StructType.fromDDL(GROUPS)))
        solver = Solver(options, budget, self._want, schema, attempt, done, failed)
        rows = fleet.placing.spread(group_rows(fleet.offsets, fleet.members))
        with reporting(self._progress, done, failed, fleet.groups), unweighed(context):
            return finish(rows.mapInArrow(solver, GROUPS))


def attempt() -> tuple[int, bool]:
    """Return the number of this executor's task, and whether an earlier attempt at it failed."""
    context = TaskContext.get()
    return (0, False) if context is None else (context.partitionId(), context.attemptNumber() > 0)


def group_rows(
    checked_offsets: DataFrame, checked_members: DataFrame | None = None, *, more: Sequence[str] = ()
) -> DataFrame:
    """Give the rows of groups as the executors take them (`schemas.ROWS`), with `more` columns of the offsets."""
    rows = checked_offsets.filter("snapshot_ts is not null and `group` is not null").select(
        *KEY, "topic", "partition", "lag", "consumer_id", "clamped", sf.col("reason").isNotNull().alias("rejected"),
        *(name for name in ("mark", "predicted") if name in checked_offsets.columns), *more,
    )  # fmt: skip
    if checked_members is None:
        return rows
    usable = checked_members.filter("reason is null")
    members = usable.select(*KEY, "consumer_id", sf.struct(*MEMBER).alias("member"))
    return rows.unionByName(members, allowMissingColumns=True)


@contextmanager
def unweighed(context: SparkContext) -> Iterator[None]:
    """Let batches of rows for Python be full by their number alone, in jobs that this thread starts.

    Spark 4 would add up the bytes of all columns after every row, which takes longer than all else it does with it.
    """
    before = context.getLocalProperty(BATCH_BYTES)
    context.setLocalProperty(BATCH_BYTES, str(2**31 - 1))
    try:
        yield
    finally:
        context.setLocalProperty(BATCH_BYTES, before)  # type: ignore[arg-type]


def plan_rows(solved: DataFrame) -> DataFrame:
    """Give the plans of solved groups (`schemas.PLANS`)."""
    return solved.select(*KEY, sf.inline("plan")).select(*columns(PLANS))


def audit_rows(solved: DataFrame) -> DataFrame:
    """Give the audits of solved groups (`schemas.AUDIT`)."""
    return solved.select(*KEY, sf.inline("audit")).select(*columns(AUDIT))


def _kept(df: DataFrame) -> DataFrame:
    cached = df.persist()
    cached.count()
    return cached


def _snapshot_type(df: DataFrame) -> types.DataType:
    return next(field.dataType for field in df.schema if field.name.lower() == "snapshot_ts")


def _same_times(offsets_df: DataFrame, members_df: DataFrame) -> None:
    """Refuse a time beside a text: they would never meet, and every group would be without members."""
    kinds = [_snapshot_type(df) for df in (offsets_df, members_df)]
    if kinds[0] != kinds[1] and any(isinstance(kind, TIMES) for kind in kinds):
        offsets, members = (kind.simpleString() for kind in kinds)
        raise SourceError(f"snapshot_ts is {offsets} in the offsets table, {members} in the members table; cast one")
