"""Batch reads of skewed topics: Spark's own splitting beside `pack_offset_ranges`, on a real broker."""

import heapq
import json
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from evenlag.pipeline import add_connector, local_session, pack_offset_ranges, read_packing
from tests.support.broker import running_broker
from tests.support.traffic import create_topics, produce

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TASKS = 16
SKEWS = (1.0, 1.5)
PARTITIONS = (20, 64, 200)
READ = ((1.5, 20), (1.0, 200))  # what is read from a broker
RECORDS = 200_000
RUNS = 3
# At the end of a log that does not grow, each range would wait half a second for more.
CONSUMER = {"kafka.fetch.max.wait.ms": "10", "kafka.max.poll.records": "10000"}


def zipf(exponent: float, partitions: int, records: int, seed: int) -> list[int]:
    """Draw how many records each partition of a skewed topic has."""
    weights = np.random.default_rng(seed).permutation(1 / np.arange(1, partitions + 1) ** exponent)
    return [int(size) for size in np.rint(records * weights / weights.sum())]


def packing(seed: int) -> Iterator[str]:
    """How even the tasks are, how many cuts that takes, and what reading takes."""
    yield f"# Packing: offset ranges in {TASKS} tasks\n"
    yield "| skew | partitions | largest task / mean | cuts | cuts needed at least | ms |"
    yield "|---" * 6 + "|"
    for exponent in SKEWS:
        for partitions in PARTITIONS:
            sizes = zipf(exponent, partitions, 10**9, seed)
            offsets = {"t": {p: (0, size) for p, size in enumerate(sizes)}}
            started = time.perf_counter()
            packed = pack_offset_ranges(offsets, TASKS)
            took = (time.perf_counter() - started) * 1e3
            even = packed.makespan * TASKS / packed.records
            cells = [f"zipf {exponent:g}", partitions, f"{even:.4f}", packed.cuts, packed.cuts_bound, f"{took:.0f}"]
            yield "| " + " | ".join(map(str, cells)) + " |"
    yield (
        f"\nReads of {RECORDS:,} empty records from a broker on the same machine, `local[2]`, "
        f"`fetch.max.wait.ms` 10, medians of {RUNS}.\n\n* **on {TASKS} slots**: records of the fullest slot, "
        "compared with an even one, if tasks start in Spark's order\n* **planning**: time until the tasks "
        "are known\n* **seconds in all**: a read without further work\n"
    )
    yield f"| topic | read | tasks | largest task / mean of {TASKS} | on {TASKS} slots | planning, s | seconds in all |"
    yield "|---" * 7 + "|"
    yield from reads(seed)


def reads(seed: int) -> Iterator[str]:
    """Read each topic in each way, in turn."""
    spark = local_session(cores=2)
    add_connector(spark)
    with running_broker() as broker:
        for nth, (exponent, partitions) in enumerate(READ):
            topic, sizes = f"skewed-{nth}", zipf(exponent, partitions, RECORDS, seed)
            create_topics(broker.bootstrap, {topic: partitions})
            produce(broker.bootstrap, topic, sizes)
            ways = ways_to_read(topic, sizes, broker.bootstrap)
            shapes = {name: task_sizes(read()) for name, read in ways.items()}  # warms up too
            seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
            for _ in range(RUNS):
                for name, read in ways.items():
                    seconds[name].append(timed(read))
            for name, shape in shapes.items():
                even = sum(shape) / TASKS
                planning, total = (median(each) for each in zip(*seconds[name], strict=True))
                slots = f"{max(shape) / even:.2f} | {busiest(shape, TASKS) / even:.2f}"
                topic_of = f"zipf {exponent:g}, {partitions} partitions"
                yield f"| {topic_of} | {name} | {len(shape)} | {slots} | {planning:.2f} | {total:.2f} |"


def ways_to_read(topic: str, sizes: Sequence[int], bootstrap: str) -> "dict[str, Callable[[], DataFrame]]":
    """Spark's default, its two options, coarse and fine, and the packing; all of the same offsets."""
    spark = local_session()
    broker = {"kafka.bootstrap.servers": bootstrap} | CONSUMER
    # Given as numbers: Spark leaves maxRecordsPerPartition aside in batch reads up to "latest".
    offsets = {
        "assign": {topic: list(range(len(sizes)))},
        "startingOffsets": {topic: {str(p): 0 for p in range(len(sizes))}},
        "endingOffsets": {topic: {str(p): size for p, size in enumerate(sizes)}},
    }
    given = {name: json.dumps(value) for name, value in offsets.items()}

    def plain(**options: int) -> "Callable[[], DataFrame]":
        return lambda: spark.read.format("kafka").options(**broker, **given, **options).load()

    def packed() -> "DataFrame":
        ranges = {topic: {p: (0, size) for p, size in enumerate(sizes)}}
        return read_packing(spark, pack_offset_ranges(ranges, TASKS), broker)

    few, many = -(-sum(sizes) // TASKS), -(-sum(sizes) // (8 * TASKS))
    return {
        "default": plain(),
        f"minPartitions {TASKS}": plain(minPartitions=TASKS),
        f"minPartitions {8 * TASKS}": plain(minPartitions=8 * TASKS),
        f"maxRecordsPerPartition {few:,}": plain(maxRecordsPerPartition=few),
        f"maxRecordsPerPartition {many:,}": plain(maxRecordsPerPartition=many),
        f"packed in {TASKS}": packed,
    }


def task_sizes(df: "DataFrame") -> list[int]:
    """Records of each of Spark's tasks, in its order; also of those that read nothing."""
    from pyspark.sql import functions as sf

    counted = df.groupBy(sf.spark_partition_id().alias("task")).count().collect()
    sizes = {row["task"]: row["count"] for row in counted}
    return [sizes.get(task, 0) for task in range(df.rdd.getNumPartitions())]


def timed(read: "Callable[[], DataFrame]") -> tuple[float, float]:
    """Seconds until the tasks are known, and, from a new start, until all is read."""
    started = time.perf_counter()
    read().rdd.getNumPartitions()
    planned = time.perf_counter()
    read().write.format("noop").mode("overwrite").save()
    return planned - started, time.perf_counter() - planned


def busiest(sizes: Sequence[int], slots: int) -> int:
    """Records of the slot that ends last, where each takes the next task as soon as it is free."""
    loads = [0] * slots
    for size in sizes:
        heapq.heapreplace(loads, loads[0] + size)
    return max(loads)
