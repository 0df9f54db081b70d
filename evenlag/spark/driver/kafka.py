"""Kafka topics read by Spark's connector: addresses, sessions, and packed offset ranges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from evenlag.errors import InvalidProblemError, SourceError
from evenlag.spark.driver.errors import blamed, reach
from evenlag.spark.driver.session import local_session
from evenlag.spark.driver.settings import is_configured
from evenlag.spark.offsets.packing import OffsetRange, Packing, Task
from evenlag.tables.topics import is_topic, topic_address

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
COMPLETE = {
    "4.0": "4.0.0",
    "4.1": "4.1.1",
    "4.2": "4.2.0",
}  # for each Spark line, a version with all its dependencies on Maven Central

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


def topic_options(url: str, options: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the options of Spark's Kafka source for `kafka://host:port,host:port/topic,topic`, added to `options`.

    Raises
    ------
    SourceError
        The text is not such an address, or no broker accepts a connection.
    """
    address = topic_address(url)
    reach(url, address.servers.split(","), "broker")
    named = {"kafka.bootstrap.servers": address.servers, "subscribe": address.topics}
    return {"startingOffsets": "earliest"} | dict(options or {}) | named


def record_text() -> Column:
    """Return the value of a record as text, with invalid UTF-8 replaced, and empty for null."""
    return sf.coalesce(sf.make_valid_utf8(sf.col("value").cast("string")), sf.lit(""))


def connector(spark: SparkSession) -> str:
    """Return the Maven coordinates of the connector for a session's version of Spark."""
    return _coordinates(spark.version)


def _coordinates(version: str) -> str:
    line, _, _ = version.rpartition(".")
    return f"{CONNECTOR}:{COMPLETE.get(line, version)}"


def add_connector(spark: SparkSession) -> None:
    """Make Spark download its Kafka connector from Maven Central, unless it was started with it.

    For brokers with SASL, start Spark with the connector (`--packages`) instead, because Java finds login modules only
    on the class path at the start.

    Raises
    ------
    SourceError
        The connector cannot be downloaded.
    """
    if CONNECTOR.split(":")[1] in (spark.conf.get("spark.jars", "") or ""):
        return
    with blamed(f"Spark's Kafka connector ({connector(spark)})"):
        spark.sql(f"ADD JAR ivy://{connector(spark)}")


def with_connector(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings with Spark's Kafka connector, unless they would override a user's own configuration."""
    if is_configured():
        return dict(settings)
    packages = [settings.get("spark.jars.packages", ""), _coordinates(pyspark.__version__)]
    return {**settings, "spark.jars.packages": ",".join(filter(None, packages))}


def session_for(
    places: Iterable[str | Path | None], settings: Mapping[str, str] | None, options: Mapping[str, str] | None
) -> SparkSession:
    """Start Spark, with its Kafka connector if one of the places is a topic.

    Raises
    ------
    SourceError
        There are options for topics, but no topic.
    """
    topics = [place for place in places if place is not None and is_topic(place)]
    if options and not topics:
        raise SourceError("options of the Kafka source need a table kafka://HOST:PORT/TOPIC, but no table is a topic")
    spark = local_session(settings=with_connector(settings or {}) if topics else settings)
    if topics:
        add_connector(spark)
    return spark


@contextmanager
def connected(spark: SparkSession, url: str) -> Iterator[None]:
    """Convert errors of Spark to one line that names the topic.

    Raises
    ------
    SourceError
        Spark raised an error, or lacks its Kafka connector.
    """
    try:
        with blamed(url):
            yield
    except SourceError as error:
        if isinstance(error.__cause__, AnalysisException) and "kafka" in str(error).lower():
            raise SourceError(
                f"{url}: Spark lacks its Kafka connector; start it with --packages {connector(spark)}"
            ) from error
        raise


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
