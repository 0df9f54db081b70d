"""Small jobs one after another in a session, as of a notebook or a stream: what Java and Spark forget between them."""

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.fleet import CORES, draw, write
from evenlag import pipeline

JOBS = 8
GROUPS, PARTITIONS, MEMBERS = 6, 24, 4
LESS_CODE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=48m"
SESSIONS: dict[str, dict[str, str]] = {
    "evenlag's": {},
    "room for 100 pieces of generated code, as Spark has it": {"spark.sql.codegen.cache.maxEntries": "100"},
    "that and 48 MB for Java's compiled code": {
        "spark.sql.codegen.cache.maxEntries": "100",
        "spark.driver.extraJavaOptions": LESS_CODE,
    },
}


@dataclass(frozen=True)
class Session:
    """What came of a session: seconds of each job, and of the last two jobs what was compiled.

    Attributes
    ----------
    seconds : list of float
    generated : int
        Pieces of generated code that Spark compiled.
    java : float
        Seconds that Java's compiler took.
    code : float
        MB of compiled code in Java at the end.
    """

    seconds: list[float]
    generated: int
    java: float
    code: float


def jobs(seed: int) -> Iterator[str]:
    """Seconds of jobs in sessions with these settings."""
    yield f"# {JOBS} small jobs in one session: {GROUPS} groups of {PARTITIONS} partitions each\n"
    yield (
        f'`pipeline.run` with `method="lag-aware"` on local[{CORES}], again and again: seconds of the first, the '
        "median of the others, and what the last two compiled.\n"
    )
    yield "| settings | first | others | generated code | Java's compiler | code in Java |"
    yield "|---|---|---|---|---|---|"
    for name, settings in SESSIONS.items():
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:  # a Java of its own
            done = pool.submit(one_session, settings, seed).result()
        first, others = done.seconds[0], median(done.seconds[1:])
        yield (
            f"| {name} | {first:.1f} s | {others:.1f} s | {done.generated} pieces | {done.java:.1f} s "
            f"| {done.code:.0f} MB |"
        )


def one_session(settings: dict[str, str], seed: int) -> Session:
    """Run the jobs in a session of their own."""
    spark = pipeline.local_session(CORES, settings)
    java: Any = spark.sparkContext._jvm
    generated = java.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    machine = java.java.lang.management.ManagementFactory
    groups = {f"g{n}": (draw(PARTITIONS, MEMBERS, (seed, n)), MEMBERS) for n in range(GROUPS)}
    seconds = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables = write(folder, groups)
        for n in range(JOBS):
            if n == JOBS - 2:
                pieces, milliseconds = generated.getCount(), machine.getCompilationMXBean().getTotalCompilationTime()
            started = time.perf_counter()
            pipeline.run(spark, *tables, out=folder / str(n), method="lag-aware", group_time_limit=0.05)
            seconds.append(time.perf_counter() - started)
    pieces = generated.getCount() - pieces
    milliseconds = machine.getCompilationMXBean().getTotalCompilationTime() - milliseconds
    pools = [pool for pool in machine.getMemoryPoolMXBeans() if str(pool.getName()).startswith("Code")]
    code = sum(pool.getUsage().getUsed() for pool in pools)
    spark.stop()
    return Session(seconds, pieces, milliseconds / 1000, code / 1e6)
