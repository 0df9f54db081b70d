"""Records of `__consumer_offsets` on Spark: read, decoded, and followed through the states of their groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, types
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema

from evenlag.errors import SourceError
from evenlag.protocol.coordinator_records import COMMITS as COMMIT_TYPES
from evenlag.spark.driver.choice import driver_of
from evenlag.spark.driver.error_lines import blamed
from evenlag.spark.driver.executors import check_executors
from evenlag.spark.driver.kafka import connected, topic_options
from evenlag.spark.driver.kept import kept
from evenlag.spark.driver.protocol import Place, described
from evenlag.spark.driver.storage import Storage, literal
from evenlag.spark.native.history_tables import REBALANCE_FIGURES, TOLD
from evenlag.spark.worker.history_task import DecodedRecords, FromRecords
from evenlag.tables.topics import is_topic

COMMITS_TOPIC = "__consumer_offsets"
_OFFSETS_BY_CONSUMER = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"

_RECORDS = {"key": "BINARY", "value": "BINARY", "partition": "INT", "offset": "BIGINT"}
BASE = (
    "partition INT, offset BIGINT, at BIGINT, kind BIGINT, `group` STRING, reason STRING, key BINARY, value BINARY, "
    "commit_topic STRING, commit_partition INT, commit_offset BIGINT"
)
"""A decoded record (`decoded`)."""
COURSE = (
    f"kind STRING, `group` STRING, since INT, until INT, reason STRING, records BIGINT, member STRUCT<{TOLD.ddl}>, "
    "partitions ARRAY<STRUCT<topic: STRING, `partition`: INT>>, "
    f"rebalance STRUCT<millis: BIGINT, {REBALANCE_FIGURES.ddl}>, "
    "handed ARRAY<STRUCT<topic: STRING, `partition`: INT, millis: BIGINT>>"
)
"""Rows that tell of a group's members and rebalances (`followed`, `FromRecords`)."""


def topic_of(records: str | Path) -> str | Path:
    """Return the address of the topic with the records; paths are returned unchanged."""
    if not is_topic(records):
        return records
    url = str(records)
    return url if "/" in url.partition("//")[2] else f"{url}/{COMMITS_TOPIC}"


def shown(place: str | Path | DataFrame | None) -> str:
    """Return the name of a table in messages."""
    return "the records" if isinstance(place, DataFrame) else str(place)


@contextmanager
def internal_topics(spark: SparkSession) -> Iterator[None]:
    """Let Spark's Kafka source read internal topics: by default its newer way to find offsets leaves them out."""
    before = spark.conf.get(_OFFSETS_BY_CONSUMER, None)
    spark.conf.set(_OFFSETS_BY_CONSUMER, "true")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_OFFSETS_BY_CONSUMER)
        else:
            spark.conf.set(_OFFSETS_BY_CONSUMER, before)


def commit_options(url: str, options: Mapping[str, str] | None) -> dict[str, str]:
    """Return the options of Spark's Kafka source for a topic of commits; with `assign` it joins no group."""
    named = topic_options(url, {"kafka.isolation.level": "read_committed"} | dict(options or {}))
    if "assign" in named:
        del named["subscribe"]
    return named


def read_records(spark: SparkSession, records: str | Path | DataFrame, options: Mapping[str, str] | None) -> DataFrame:
    """Return the records with `at`, the time in milliseconds."""
    if isinstance(records, DataFrame):
        df = records
    elif is_topic(records):
        url = str(topic_of(records))
        named = commit_options(url, options)
        with connected(spark, url):
            df = spark.read.format("kafka").options(**named).load()
    else:
        with blamed(records):
            storage = Storage(spark, records)
            if not storage.exists(storage.path):
                raise SourceError(f"{records}: no such file or folder")
            df = spark.read.parquet(literal(storage.path))
    kinds = {field.name: field.dataType for field in df.schema}
    missing = [name for name in (*_RECORDS, "timestamp") if name not in kinds]
    if missing:
        raise SourceError(
            f"{shown(records)}: no column {', '.join(missing)}; records have {', '.join(_RECORDS)}, timestamp"
        )
    for name in ("key", "value"):
        if not isinstance(kinds[name], types.BinaryType | types.NullType):
            raise SourceError(f"{shown(records)}: {name} is {kinds[name].simpleString()}; it must be BINARY, unchanged")
    time = sf.col("timestamp")
    at = time.cast("bigint") if isinstance(kinds["timestamp"], types.IntegralType) else sf.unix_millis(time)
    columns = [sf.col(name).cast(kind).alias(name) for name, kind in _RECORDS.items()]
    return df.select(*columns, at.alias("at"))


def decoded(records: DataFrame, place: Place) -> DataFrame:
    """Decode records (`read_records`), and return rows of `BASE` in a place."""
    return _kept_by_task(records, DecodedRecords(arrow_schema(BASE)), BASE, place)


def is_commit() -> Column:
    """Return the condition for rows of `BASE` that are commits or tombstones of commits."""
    return sf.col("kind").isin(*COMMIT_TYPES)


def followed(records: DataFrame, times: Sequence[int], topic_names: Mapping[str, str], place: Place) -> DataFrame:
    """Follow each group through its records of members and epochs, and return rows of `COURSE`.

    Parameters
    ----------
    records : DataFrame
        Rows of `BASE` without commits.
    times : sequence of int
        Times of the snapshots in milliseconds, rising.
    topic_names : mapping of str to str
        Names of topics by their ids.
    place : Place
        Place for the rows.
    """
    rows = records.select(sf.coalesce("group", sf.lit("")).alias("group"), "partition", "offset", "at", "key", "value")
    ordered = rows.repartition("group").sortWithinPartitions("group", "partition", "offset")
    task = FromRecords(times, topic_names, arrow_schema(COURSE))
    with described(records.sparkSession, "following groups"), blamed("the records"):
        return _kept_by_task(ordered, task, COURSE, place)


def _kept_by_task(rows: DataFrame, task: Callable[..., Any], ddl: str, place: Place) -> DataFrame:
    """Run a task function over rows on executors; write its output (columns `ddl`) to a place, and return it."""
    driver = driver_of(rows.sparkSession)
    driver.prepare()
    check_executors(rows.sparkSession, place)
    with driver.batches_by_rows():
        return kept(rows.mapInArrow(task, ddl), place)


def arrow_schema(ddl: str) -> pa.Schema:
    """Return Arrow's schema of columns that Spark's DDL declares."""
    return to_arrow_schema(cast(types.StructType, types.StructType.fromDDL(ddl)))
