"""Reader of packed offset ranges with Spark, with one Spark task for each task of the packing."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from evenlag.errors import InvalidProblemError
from evenlag.spark.offsets.packing import OffsetRange, Packing, Task

RECORDS = (
    "key BINARY, value BINARY, topic STRING, `partition` INT, `offset` BIGINT, `timestamp` TIMESTAMP, timestampType INT"
)
HEADERS = "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
UNION_AS_ONE = "spark.sql.unionOutputPartitioning"  # from Spark 4.1, merges reads of one task each into one task
# Options for the offsets and the number of tasks; Spark ignores the case of options.
_OURS = (
    "assign",
    "subscribe",
    "subscribePattern",
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingTimestamp",
    "endingOffsets",
    "endingOffsetsByTimestamp",
    "endingTimestamp",
    "minPartitions",
    "maxRecordsPerPartition",
)


def read_packing(spark: SparkSession, packing: Packing, options: Mapping[str, str]) -> DataFrame:
    """Read a packing as a batch, with one Spark task for each task that has records.

    A read by Spark's Kafka source accepts one range for each partition and makes one task of each range. The result is
    therefore a union of reads: one for each task with several ranges, and one for all tasks that share a partition and
    read nothing else, because Spark's `minPartitions` cuts as evenly as the packing. This sets
    `spark.sql.unionOutputPartitioning` to false in the session.

    Parameters
    ----------
    spark : SparkSession
        A session with Spark's Kafka connector (docs/fleet-storage.md).
    packing : Packing
        From `pack_offset_ranges`.
    options : mapping of str to str
        Options of Spark's Kafka source except those of the packing: `kafka.bootstrap.servers`, security, headers.

    Returns
    -------
    DataFrame
        The columns of Spark's Kafka source, read lazily.

    Raises
    ------
    InvalidProblemError
        An option sets the offsets or the number of tasks.
    """
    given = {name.lower() for name in options}
    for name in _OURS:
        if name.lower() in given:
            raise InvalidProblemError(f"options: {name} is set by the packing; omit it")

    def load(which: Mapping[str, str]) -> DataFrame:
        return spark.read.format("kafka").options(**options, **which).load()

    reads = [load(task.options).coalesce(1) for task in packing.tasks if len(task.ranges) > 1]
    reads += [load(_joined(run)) for run in _runs(packing)]
    spark.conf.set(UNION_AS_ONE, "false")  # must stay set while the DataFrame is used
    if not reads:
        headers = next((value for name, value in options.items() if name.lower() == "includeheaders"), "false")
        return spark.createDataFrame([], f"{RECORDS}, {HEADERS}" if str(headers).lower() == "true" else RECORDS)
    while len(reads) > 1:  # pair by pair, so that the plan stays shallow
        reads = [
            reads[at].unionAll(reads[at + 1]) if at + 1 < len(reads) else reads[at] for at in range(0, len(reads), 2)
        ]
    return reads[0]


def _runs(packing: Packing) -> list[list[OffsetRange]]:
    """Group the ranges of single-range tasks such that Spark cuts each group's sum into exactly these ranges."""
    runs: list[list[OffsetRange]] = []
    for lone in sorted(task.ranges[0] for task in packing.tasks if len(task.ranges) == 1):
        if runs and _continues(runs[-1], lone):
            runs[-1].append(lone)
        else:
            runs.append([lone])
    return runs


def _continues(run: list[OffsetRange], last: OffsetRange) -> bool:
    """Return whether Spark would cut off this range last; its pieces differ by one record, the larger ones last."""
    follows = (run[-1].topic, run[-1].partition, run[-1].end) == (last.topic, last.partition, last.start)
    return follows and run[-1].records <= last.records <= run[0].records + 1


def _joined(run: list[OffsetRange]) -> dict[str, str]:
    whole = Task((run[0]._replace(end=run[-1].end),))
    return whole.options | {"minPartitions": str(len(run))}
