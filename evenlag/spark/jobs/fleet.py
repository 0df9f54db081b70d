"""The tables of a call, and the placement of their groups in tasks."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, types
from pyspark.sql import functions as sf

from evenlag.errors import InvalidProblemError
from evenlag.spark.driver.choice import driver_of
from evenlag.spark.driver.kept import within
from evenlag.spark.driver.protocol import described
from evenlag.spark.jobs.fleet_options import FleetOptions
from evenlag.spark.jobs.placement import MOST_PACKED, Key, TaskPacking
from evenlag.spark.jobs.raw_rows import RawTables, gathered
from evenlag.spark.native.typed import column_named
from evenlag.spark.worker.rows_of_task import TableRules
from evenlag.tables.fleet_data import FleetData
from evenlag.tables.outputs import KEY

logger = logging.getLogger("evenlag.pipeline")

GROUPS_PER_TASK = 8  # few, so that progress is visible and tasks are even
TASKS_PER_SLOT = (2, 16)  # smallest and largest number; the overhead of a task is up to 0.1 s
EACH = 30.0  # seconds of a task under a time limit; longer calls have several tasks per slot, for visible progress
FEW = (1, 2)  # tasks per slot for groups that take hardly longer than their transfer
ROWS_PER_TASK = 500_000  # largest number, except for a larger group; a task holds its rows in memory, 0.4 KB each
RECORDED_PER_TASK = 200_000  # the same for tasks with whole histories, 1 KB per row
HASTE = 10.0  # with a shorter limit in seconds, the first call of a session does not wait for the count of groups


@dataclass(frozen=True)
class Fleet:
    """The tables of a call, and the placement of their groups in tasks.

    Attributes
    ----------
    recorded : bool
        True if a task has all snapshots of its groups and needs the earlier ones.
    groups : int or None
        Number of groups, counted once for each snapshot; None if not counted.
    slots : int
        Number of tasks that the cluster runs concurrently.
    """

    tables: RawTables
    rules: TableRules
    recorded: bool
    groups: int | None
    packing: TaskPacking
    slots: int

    def dealt(self) -> DataFrame:
        """Return the rows for `TableRules.checked`, each in the task of its group."""
        return self.packing.repartition(self.tables.rows(self.packing.by))

    def others(self, ended: DataFrame) -> DataFrame:
        """Return the rows for `TableRules.checked` that are not in tasks that have ended, for use outside the call."""
        return gathered(self.packing.others(self.tables.rows(), ended))

    def dated(self, df: DataFrame) -> DataFrame:
        """Return a table with `snapshot_ts` in its input type."""
        kind = self.tables.snapshot_type
        if isinstance(kind, types.StringType):
            return df
        return df.withColumn("snapshot_ts", sf.col("snapshot_ts").try_cast(kind))


def check_tables(
    offsets_df: DataFrame,
    members_df: DataFrame | None,
    options: FleetOptions,
    *,
    whole: bool = False,
    until: float | None = None,
    per_slot: tuple[int, int] = TASKS_PER_SLOT,
    count: bool = True,
) -> Fleet:
    """Check the columns of both tables, and place the groups in tasks.

    Parameters
    ----------
    offsets_df, members_df
        As in `solve`.
    whole : bool
        Put all snapshots of a group into one task, if any group has several; otherwise each snapshot is placed alone.
    until : float, optional
        Time (epoch) after which to continue without counts.
    per_slot : (int, int)
        Smallest and largest number of tasks per slot.
    count : bool
        Count the groups. Otherwise they are placed by hash in the smallest number of tasks, with `whole` by group.

    Raises
    ------
    SourceError
        A table lacks a required column, or its times have an unsuitable type.
    """
    tables = RawTables.of(offsets_df, members_df)
    for note in tables.notes:
        logger.warning(note)
    whole = whole or options.ahead > 0
    spark = offsets_df.sparkSession
    driver = driver_of(spark)
    driver.prepare()
    counts = _Counts(None, by=("group",) if whole else KEY)
    if count:
        with described(spark, "counting the groups"):
            counts = within(spark, until, partial(_counted, tables, whole)) or counts
    slots = driver.slots()  # after a first job, because executors are known only once they are registered
    least, most = (slots * factor for factor in per_slot)
    per_task = RECORDED_PER_TASK if counts.recorded else ROWS_PER_TASK
    even = min(max(-(-counts.packed // GROUPS_PER_TASK), least), most, max(counts.packed, 1))
    tasks = options.tasks or max(even if counts.groups is not None else least, -(-counts.rows // per_task))
    return Fleet(
        tables,
        tables.rules(options.auto_offset_reset, options.ahead),
        counts.recorded,
        counts.groups,
        TaskPacking.pack(counts.largest, tasks, counts.packed - len(counts.largest), counts.by),
        slots,
    )


def check_topics(tables: RawTables, data: FleetData, until: float | None = None) -> None:
    """Raise an error for topics missing in the offsets table, unless Spark cannot check by `until`.

    Raises
    ------
    InvalidProblemError
        The message names the topic.
    """
    if not data.named:
        return
    spark = tables.offsets.sparkSession
    topic = column_named(tables.offset_names["topic"]).cast("string").alias("topic")
    names = tables.offsets.select(topic).filter(sf.col("topic").isin(*sorted(data.named))).distinct()
    with described(spark, "looking for topics"):
        rows = within(spark, until, names.collect)
    missing = sorted(data.named.difference(row["topic"] for row in rows)) if rows is not None else []
    if missing:
        raise InvalidProblemError(f"the offsets table has no topic {missing[0]!r}; correct the name")


@dataclass(frozen=True)
class _Counts:
    """Counts of an offsets table; all 0 if Spark could not count in time.

    Attributes
    ----------
    groups, rows : int
        Number of groups, counted once for each snapshot (None if not counted), and of their rows. Times with log ends
        alone do not count.
    by : tuple of str
        Key columns of the units that are placed: groups in a snapshot, or groups.
    packed : int
        Number of these units.
    largest : list of (key, rows)
        The units with most rows.
    """

    groups: int | None = 0
    rows: int = 0
    by: tuple[str, ...] = KEY
    packed: int = 0
    largest: Sequence[tuple[Key, int]] = ()

    @property
    def recorded(self) -> bool:
        """True if groups are placed with all their snapshots."""
        return self.by != KEY


def _counted(tables: RawTables, whole: bool) -> _Counts:
    """Count groups and rows of an offsets table; with `whole`, by group if any group has several times."""
    sizes = tables.sizes()
    if not whole:
        sizes = sizes.filter("taken > 0").withColumn("rows", sf.col("taken"))
    largest, rows_of_snapshots = _largest(sizes, KEY)
    times, rows, names = len(largest), sum(rows for _, rows in largest), len({group for (_, group), _ in largest})
    groups = sum(taken > 0 for taken in rows_of_snapshots)
    if times > MOST_PACKED:
        counts = (sf.count("*"), sf.sum("rows"), sf.count_distinct("group"), sf.count_if(sf.col("taken") > 0))
        [(times, rows, names, groups)] = sizes.agg(*counts).collect()
    if not whole or names == times:
        return _Counts(groups, rows, KEY, groups, largest[:MOST_PACKED])
    histories = sizes.groupBy("group").agg(sf.sum("rows").alias("rows"), sf.sum("taken").alias("taken"))
    return _Counts(groups, rows, ("group",), names, _largest(histories, ("group",))[0][:MOST_PACKED])


def _largest(sizes: DataFrame, by: tuple[str, ...]) -> tuple[list[tuple[Key, int]], list[int]]:
    """Return keys and rows, largest first, up to one more than are placed by name; and the rows of snapshots."""
    some = sizes.limit(MOST_PACKED + 1).toArrow()  # usually all groups; sorting them here saves a stage of Spark
    if len(some) > MOST_PACKED:
        some = sizes.orderBy(sf.desc("rows"), *by).limit(MOST_PACKED + 1).toArrow()
    keys = zip(*(some.column(name).to_pylist() for name in by), strict=True)
    found = list(zip(keys, some.column("rows").to_pylist(), strict=True))
    return sorted(found, key=lambda each: (-each[1], each[0])), some.column("taken").to_pylist()
