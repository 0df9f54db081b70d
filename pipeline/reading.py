"""Reading a packing of offset ranges with Spark: one Spark task for each of its tasks."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from evenlag.errors import InvalidProblemError
from evenlag.pipeline.packing import Packing

RECORDS = (
    "key BINARY, value BINARY, topic STRING, `partition` INT, `offset` BIGINT, `timestamp` TIMESTAMP, timestampType INT"
)
HEADERS = "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
# What says which offsets are read, and by how many tasks; Spark knows options in any case.
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
    """Read a packing as a batch: each of its tasks that reads anything is one Spark task, in their order.

    Spark's Kafka source reads one range of a partition at a time and makes a task of each, so this is a union of one
    read for each task, its ranges one after another.

    Parameters
    ----------
    spark : SparkSession
        Its class path has Spark's Kafka connector (docs/pipeline.md).
    packing : Packing
        From `pack_offset_ranges`.
    options : mapping of str to str
        Options of Spark's Kafka source other than those of the packing: `kafka.bootstrap.servers`, security, headers.

    Returns
    -------
    DataFrame
        The columns of Spark's Kafka source. Nothing is read yet.

    Raises
    ------
    InvalidProblemError
        An option that says which offsets to read, or by how many tasks.
    """
    given = {name.lower() for name in options}
    for name in _OURS:
        if name.lower() in given:
            raise InvalidProblemError(f"options: {name} is given by the packing; leave it out")
    reads = [
        spark.read.format("kafka").options(**options, **task.options).load().coalesce(1)
        for task in packing.tasks
        if task.ranges
    ]
    if not reads:
        headers = next((value for name, value in options.items() if name.lower() == "includeheaders"), "false")
        return spark.createDataFrame([], f"{RECORDS}, {HEADERS}" if str(headers).lower() == "true" else RECORDS)
    while len(reads) > 1:  # pair by pair, so that the plan stays shallow
        reads = [
            reads[at].unionAll(reads[at + 1]) if at + 1 < len(reads) else reads[at] for at in range(0, len(reads), 2)
        ]
    return reads[0]
