"""Jobs that take every group with all its snapshots: one task has them all, and gives a row back for each group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from pyspark.sql import DataFrame, types
from pyspark.sql.pandas.types import to_arrow_schema

from evenlag.spark.columns.task_rows import task_rows
from evenlag.spark.driver.descriptions import described
from evenlag.spark.driver.drivers import driver_of
from evenlag.spark.driver.errors import blamed
from evenlag.spark.driver.executors import check_executors
from evenlag.spark.driver.kept import kept
from evenlag.spark.driver.protocol import Progress, report_end
from evenlag.spark.jobs.fleet import check_tables
from evenlag.spark.worker.by_history import ByHistory, Row
from evenlag.tables.group import OFFSET_FIELDS, GroupRows
from evenlag.tables.outputs import KEY


def by_whole_histories(
    offsets_df: DataFrame,
    members_df: DataFrame | None,
    work: Callable[[Sequence[GroupRows]], Row],
    failure: Callable[[str, int, str], Row],
    columns: str,
    *,
    doing: str,
    auto_offset_reset: str,
    tasks: int | None,
    progress: Progress | None,
) -> DataFrame:
    """Do the work within the call, and keep its result as that of `solve`.

    Parameters
    ----------
    offsets_df, members_df, auto_offset_reset, tasks, progress
        As in `plans`.
    work, failure : callable
        As `ByHistory` has them.
    columns : str
        Of its rows, as Spark's DDL.
    doing : str
        What jobs and errors call it.
    """
    spark = offsets_df.sparkSession
    driver = driver_of(spark)
    fleet = check_tables(offsets_df, members_df, auto_offset_reset, tasks, whole=True)
    place = driver.place(columns)
    check_executors(spark, place)
    schema = to_arrow_schema(cast(types.StructType, types.StructType.fromDDL(columns)))
    groups = fleet.offsets.dropna(subset=list(KEY)).select("group").distinct()
    with described(spark, "counting the groups"):
        total = 0 if progress is None else groups.count()
    rows = fleet.packing.repartition(task_rows(fleet.offsets, fleet.members, more=OFFSET_FIELDS))
    named = described(spark, f"{doing} {f'{total:,} ' if total else ''}groups")
    watched = driver.reporting(progress, total, fleet.packing.tasks)
    with named, watched as counters, blamed(doing), driver.batches_by_rows():
        done = kept(rows.mapInArrow(ByHistory(work, failure, schema, *counters), columns), place)
    report_end(progress, total, counters)
    return done.table
