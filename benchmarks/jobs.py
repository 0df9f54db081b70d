"""Small jobs one after another in a session, as of a notebook or a stream: what Java and Spark forget between them."""

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from pyspark.sql import functions as sf

from benchmarks.fleet import CORES
from evenlag import pipeline

JOBS = 6
GROUPS, PARTITIONS, MEMBERS = 6, 24, 4
LESS_CODE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=48m"
SESSIONS: dict[str, dict[str, str]] = {
    "evenlag's": {},
    "room for 100 pieces of generated code, as Spark has it": {"spark.sql.codegen.cache.maxEntries": "100"},
    "and 48 MB for Java's compiled code": {
        "spark.sql.codegen.cache.maxEntries": "100",
        "spark.driver.extraJavaOptions": LESS_CODE,
    },
}


def jobs(seed: int) -> Iterator[str]:
    """Seconds of each job in sessions with these settings."""
    yield f"## {JOBS} small jobs in one session: {GROUPS} groups of {PARTITIONS} partitions each\n"
    yield (
        f'`pipeline.run` with `method="lag-aware"` on local[{CORES}], again and again; generated code that Spark '
        "compiled in the last of them.\n"
    )
    yield "| settings | " + " | ".join(f"{n + 1}" for n in range(JOBS)) + " | compiled |"
    yield "|---" * (JOBS + 2) + "|"
    for name, settings in SESSIONS.items():
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:  # a Java of its own
            seconds, compiled = pool.submit(one_session, settings, seed).result()
        yield f"| {name} | " + " | ".join(f"{each:.1f} s" for each in seconds) + f" | {compiled} |"


def one_session(settings: dict[str, str], seed: int) -> tuple[list[float], int]:
    """Return the seconds of each job, and how often the last one had Spark compile."""
    spark = pipeline.local_session(CORES, settings)
    offsets = spark.range(GROUPS * PARTITIONS).select(
        sf.lit("2026-01-01").alias("snapshot_ts"),
        sf.concat(sf.lit("g"), sf.expr(f"id div {PARTITIONS}")).alias("group"),
        sf.lit("events").alias("topic"),
        sf.expr(f"id % {PARTITIONS}").alias("partition"),
        sf.pmod(sf.xxhash64("id", sf.lit(seed)), sf.lit(10_000)).alias("lag"),
        sf.concat(sf.lit("consumer-"), sf.expr(f"id % {MEMBERS}")).alias("consumer_id"),
    )
    compilations = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()  # type: ignore[union-attr]
    seconds, before = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for n in range(JOBS):
            started, before = time.perf_counter(), compilations.getCount()
            pipeline.run(spark, offsets, out=Path(folder) / str(n), method="lag-aware", group_time_limit=0.05)
            seconds.append(time.perf_counter() - started)
    compiled = compilations.getCount() - before
    spark.stop()
    return seconds, compiled
