"""Ways to bring a fleet's rows to Python tasks, and what a task costs before it does anything."""

import time
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from benchmarks.fleet import CORES, GROUPS, MEMBERS, PARTITIONS
from evenlag.pipeline import local_session
from evenlag.spark.driver.choice import driver_of
from evenlag.spark.native.row_checks import check_members, check_offsets, task_rows, typed_members, typed_offsets
from evenlag.spark.worker.task import forget_archives
from evenlag.tables.group import OFFSET_FIELDS
from evenlag.tables.outputs import KEY

TASKS = 4
EMPTY = 64


def transport(seed: int) -> Iterator[str]:
    """Seconds from the tables to the tasks: as rows, and gathered by Spark."""
    rows = GROUPS * (PARTITIONS + MEMBERS)
    yield f"# From Spark to Python: {rows:,} rows, {GROUPS:,} groups\n"
    yield (
        f"Typed rows of both tables on local[{CORES}], through one shuffle to {TASKS} tasks that count the "
        "rows; the second of two runs. `collect_list` includes finding copies and joining the members, which "
        f"NumPy otherwise does in the tasks. Below: the time of an empty task, measured with {EMPTY} tasks in "
        "running workers.\n"
    )
    spark = local_session(CORES)
    offsets = spark.range(GROUPS * PARTITIONS).select(
        sf.lit("2026-01-01").alias("snapshot_ts"),
        sf.concat(sf.lit("g"), sf.expr(f"id div {PARTITIONS}")).alias("group"),
        sf.lit("events").alias("topic"),
        sf.expr(f"id % {PARTITIONS}").alias("partition"),
        *(sf.lit(None).cast("bigint").alias(name) for name in OFFSET_FIELDS),
        sf.pmod(sf.xxhash64("id", sf.lit(seed)), sf.lit(10_000)).alias("lag"),
        sf.concat(sf.lit("consumer-"), sf.expr(f"id % {MEMBERS}")).alias("consumer_id"),
    )
    members = offsets.filter(f"partition < {MEMBERS}").select(*KEY, "consumer_id")
    as_rows = task_rows(typed_offsets(offsets), typed_members(members)).repartition(TASKS, "group")
    with driver_of(spark).batches_by_rows():
        plain = seconds(as_rows)
    weighed, gathered = seconds(as_rows), seconds(gathered_rows(offsets, members))
    yield "| transport | seconds | × |"
    yield "|---|---|---|"
    yield f"| rows, batches full by their number | {plain:.1f} | 1 |"
    yield f"| rows, with Spark's count of bytes after each | {weighed:.1f} | {weighed / plain:.1f} |"
    yield f"| a row for each group, by `collect_list` | {gathered:.1f} | {gathered / plain:.1f} |"
    yield ""
    forked = milliseconds_a_task(spark)
    spark.stop()
    spark = local_session(CORES, {"spark.python.daemon.module": "pyspark.daemon"})
    own = milliseconds_a_task(spark)
    spark.stop()
    yield f"A task that does nothing takes a slot {forked:.0f} ms; with Spark's own daemon {own:.0f} ms."


def gathered_rows(offsets: DataFrame, members: DataFrame) -> DataFrame:
    """A row for each group, with its rows and its members."""
    row, member = sf.struct("topic", "partition", "lag", "consumer_id"), sf.struct("consumer_id", "topics", "weight")
    partitions = check_offsets(offsets).filter("reason is null").repartition(TASKS, *KEY).groupBy(*KEY)
    named = check_members(members).filter("reason is null").repartition(TASKS, *KEY).groupBy(*KEY)
    lists = partitions.agg(sf.collect_list(row).alias("rows"))
    return lists.join(named.agg(sf.collect_list(member).alias("members")), on=list(KEY), how="left")


def seconds(df: DataFrame) -> float:
    """Seconds until tasks have seen all rows, the second time."""
    for _ in range(2):
        started = time.perf_counter()
        df.mapInArrow(counted, "n BIGINT").agg(sf.sum("n")).collect()
        taken = time.perf_counter() - started
    return taken


def milliseconds_a_task(spark: SparkSession) -> float:
    """What a task costs a slot that does nothing with its row."""
    return seconds(spark.range(0, EMPTY, 1, EMPTY).toDF("n")) * CORES / EMPTY * 1000


def counted(batches: Iterable[Any]) -> Iterator[Any]:
    """Count rows, and leave the worker as a task of evenlag does."""
    yield pa.RecordBatch.from_pydict({"n": [sum(batch.num_rows for batch in batches)]})
    forget_archives()
