"""Commits summed per minute for each group and partition, in native Spark columns.

Comparing each commit with the previous one requires a sort, and there are many commits. So they are sorted only once,
and this table stores the results of all such comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from evenlag.spark.native.history_tables import LONGEST_WAIT, PARTITION, of_partitions, with_numbers

MINUTE = 60_000  # milliseconds in which commits are added up; no commit may cover more to count as reading
COMMIT_MINUTES = (
    "`group` STRING, topic STRING, `partition` INT, number INT, minute BIGINT, apart BIGINT, times BIGINT, "
    "commits BIGINT, deleted BIGINT, backward BIGINT, first_place BIGINT, first_at BIGINT, first_offset BIGINT, "
    "last_place BIGINT, last_at BIGINT, last_offset BIGINT, read BIGINT, `from` BIGINT, `to` BIGINT, whole BOOLEAN, "
    "last BIGINT"
)
"""Columns of `commit_minutes`."""

_ROUND = 100  # milliseconds to which times between commits are rounded, so that their median needs little memory


def commit_minutes(records: DataFrame, times: Sequence[int]) -> DataFrame:
    """Add up commits (`COMMIT_MINUTES`), from decoded ones and the times of the snapshots in milliseconds.

    There are two kinds of rows. Those with a `minute` count the commits of a partition within it that also belong to
    the same snapshot (`number`): how many there are, their first and last by their `place` in the topic, and what was
    read, which is by how much offsets rose, `from` one time `to` another. It is `whole` if no commit covers more than a
    minute, and null if none rose. The other rows have the milliseconds between commits, `apart`, and how often these
    occur, `times`. All aggregates have a fixed width, because Spark sorts again for others.
    """
    before = Window.partitionBy(*PARTITION).orderBy("offset")
    numbered = of_partitions(with_numbers(records, times), sf.col("at"), sf.col("since"))
    steps = numbered.withColumns({"was": sf.lag("commit_offset").over(before), "at_was": sf.lag("at").over(before)})
    made, millis = sf.col("commit_offset").isNotNull(), sf.col("at") - sf.col("at_was")
    apart = sf.least(sf.round(millis / _ROUND) * _ROUND, sf.lit(1000.0 * LONGEST_WAIT)).cast("bigint")
    nothing = sf.lit(None)
    in_minute = _kind(sf.lit(True), sf.col("since"), sf.floor(sf.col("at") / MINUTE), nothing)
    of_distance = _kind(sf.lit(False), nothing, nothing, apart)
    kinds = sf.when(made & sf.col("was").isNotNull(), sf.array(in_minute, of_distance)).otherwise(sf.array(in_minute))
    rows = steps.withColumn("kind", sf.explode(kinds)).select(
        *(sf.col(name) for name in steps.columns), "kind.*", millis.alias("millis")
    )
    return rows.groupBy(*PARTITION, "number", "minute", "apart").agg(*_sums())


def _kind(counted: Column, number: Column, minute: Column, apart: Column) -> Column:
    return sf.struct(
        counted.alias("counted"), number.cast("int").alias("number"), minute.cast("bigint").alias("minute"),
        apart.cast("bigint").alias("apart"),
    )  # fmt: skip


def _sums() -> list[Column]:
    """Return the aggregates of both kinds of rows; aggregates of minutes are 0 or null in other rows."""
    counted, offset, was = sf.col("counted"), sf.col("commit_offset"), sf.col("was")
    place = sf.when(counted & offset.isNotNull(), sf.col("offset"))
    rises = counted & (offset > was) & (sf.col("millis") >= 0)
    short = sf.col("millis") <= MINUTE
    edges = [
        column
        for name, edge, of_edge in (("first", sf.min, sf.min_by), ("last", sf.max, sf.max_by))
        for column in (
            edge(place).alias(f"{name}_place"),
            of_edge("at", place).alias(f"{name}_at"),
            of_edge("commit_offset", place).alias(f"{name}_offset"),
        )
    ]
    return [
        sf.count_if(~counted).alias("times"),
        sf.count(place).alias("commits"),
        sf.count_if(counted & offset.isNull()).alias("deleted"),
        sf.count_if(counted & (offset < was)).alias("backward"),
        *edges,
        sf.sum(sf.when(rises & short, offset - was)).alias("read"),
        sf.min(sf.when(rises & short, sf.col("at_was"))).alias("from"),
        sf.max(sf.when(rises & short, sf.col("at"))).alias("to"),
        sf.bool_and(sf.when(rises, short)).alias("whole"),
        sf.max(sf.when(rises, offset)).alias("last"),
    ]
