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
from evenlag.spark.jobs.raw_rows import RawTables, gathered
from evenlag.spark.worker.arrow_task import forget_archives
from evenlag.tables.group import OFFSET_FIELDS
from evenlag.tables.outputs import KEY

TASKS = 4
EMPTY = 64


def transport(seed: int) -> Iterator[str]:
    """Seconds from the tables to the tasks: as rows, and in lists made by Spark."""
    rows = GROUPS * (PARTITIONS + MEMBERS)
    yield f"# From Spark to Python: {rows:,} rows, {GROUPS:,} groups\n"
    yield (
        f"Rows of both tables as they came, on local[{CORES}], through one shuffle to {TASKS} tasks that read them; "
        f"the second of two runs. Below: the time of an empty task, measured with {EMPTY} tasks in running workers.\n"
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
    tables = RawTables.of(offsets, members)
    as_rows = tables.rows(("group",)).repartition(TASKS, "group").drop("group")
    with driver_of(spark).batches_by_rows():
        plain = seconds(as_rows)
    weighed = seconds(as_rows)
    listed = seconds(gathered(tables.rows(("group",)).repartition(TASKS, "group")))
    yield "| transport | seconds | × |"
    yield "|---|---|---|"
    yield f"| rows, batches full by their number | {plain:.1f} | 1 |"
    yield f"| rows, with Spark's count of bytes after each | {weighed:.1f} | {weighed / plain:.1f} |"
    yield f"| a row for each group, by `collect_list` | {listed:.1f} | {listed / plain:.1f} |"
    yield ""
    forked = milliseconds_a_task(spark)
    spark.stop()
    spark = local_session(CORES, {"spark.python.daemon.module": "pyspark.daemon"})
    own = milliseconds_a_task(spark)
    spark.stop()
    yield f"A task that does nothing takes a slot {forked:.0f} ms; with Spark's own daemon {own:.0f} ms."


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
