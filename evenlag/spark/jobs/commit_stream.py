"""The streaming job on `__consumer_offsets`: snapshots of all groups at regular times, each planned and audited once.

Its state is the topic, compacted: the last record of each key, without tombstones. So it is as large as what the groups
have now, and a snapshot follows from it by the functions of the batch job `history`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Unpack

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from evenlag.errors import InvalidProblemError
from evenlag.model.names import taking
from evenlag.protocol.coordinator_records import CLASSIC_GROUP
from evenlag.search.options import SolveOptions, check_seconds
from evenlag.spark.driver.choice import driver_of
from evenlag.spark.driver.storage import Folder, stored
from evenlag.spark.jobs import batch
from evenlag.spark.jobs.commits import STATE
from evenlag.spark.jobs.fleet_options import FleetOptions
from evenlag.spark.jobs.group_records import (
    BASE,
    COURSE,
    arrow_schema,
    commit_options,
    decoded,
    followed,
    internal_topics,
    is_commit,
    read_records,
    topic_of,
)
from evenlag.spark.jobs.run_report import RunReport
from evenlag.spark.jobs.streaming import Stream, StreamJob, StreamKeywords
from evenlag.spark.native import history_tables
from evenlag.spark.worker.history_task import MEMBER, with_reasons
from evenlag.tables.fleet_data import FleetData
from evenlag.tables.outputs import PASSED_OVER

TABLES = ("offsets", "members", *batch.TABLES, "passed_over")
EVERY = 900.0  # seconds between snapshots
INTERVAL = 60.0  # seconds between reads of the topic
_RECORDS = "records"
_CLOCK = "newest BIGINT, last BIGINT"  # times of the newest record and of the last snapshot, in milliseconds
_KEY = ("group", "commit_topic", "commit_partition", "key")
_ENDS = "topic STRING, partition INT, log_start_offset BIGINT, log_end_offset BIGINT"


class Logs(Protocol):
    """Data missing in commits (`evenlag.live.ClusterLogs`)."""

    def topic_names(self) -> Mapping[str, str]:
        """Return the names of topics by their ids."""

    def log_offsets(self, topics: Collection[str], millis: int) -> Iterable[tuple[str, int, int, int]]:
        """Return topic, partition, log start and log end of the partitions of topics at a time in milliseconds."""


@dataclass(frozen=True)
class CommitBatch:
    """The figures of one commit of a stream of offset commits.

    Attributes
    ----------
    number : int
        Number of the commit, as in the folders `batch=…`.
    records, used : int
        Records read from the topic, and those used; the others are in `passed_over`.
    kept : int
        Records in the state.
    snapshot_ts : str or None
        Time of the snapshot; None if none was due.
    groups : int
        Groups audited.
    plans, rejects : int
        Rows of the snapshot written to these tables.
    failed : int
        Groups whose audit failed.
    seconds : float
    """

    number: int
    records: int
    used: int
    kept: int
    snapshot_ts: str | None
    groups: int
    plans: int
    rejects: int
    failed: int
    seconds: float


@taking(StreamKeywords, Stream, FleetOptions, SolveOptions, FleetData)
def stream_commits(
    spark: SparkSession,
    topic: str,
    logs: Logs,
    *,
    out: str | Path,
    every: float = EVERY,
    interval: float = INTERVAL,
    progress: Callable[[CommitBatch], None] | None = None,
    **parameters: Unpack[StreamKeywords],
) -> list[CommitBatch]:
    """Plan and audit snapshots of all groups, made from the records in `__consumer_offsets`.

    A snapshot is due at each multiple of `every`, once a record of a later time has been read. If several are due at
    once, such as after the first read of the topic, only the last is made. The call returns when it is interrupted,
    or with `once` when the topic is read. After a restart it continues where it stopped, however it ended.

    Parameters
    ----------
    spark : SparkSession
        A session with Spark's Kafka connector (`add_connector`).
    topic : str
        `kafka://HOST:PORT`, whose topic `__consumer_offsets` is read, or the address of a copy of it.
    logs : Logs
        Source of log ends and names of topics, such as `evenlag.live.ClusterLogs("HOST:PORT")`.
    out : str or Path
        Folder for the tables `offsets`, `members`, `plans`, `audit`, `rejects` and `passed_over`, by `batch=N`;
        missing, empty, or from this stream.
    checkpoint : str or Path, optional
        As in `stream`.
    once : bool
        Read the topic to its current end, make a snapshot at the time of its newest record, and return.
    every : float
        Seconds between snapshots.
    interval : float
        Seconds between reads of the topic.
    options : mapping of str to str, optional
        As in `history`. `maxOffsetsPerTrigger` is not allowed, because it reads partitions unevenly.
    group_time_limit, auto_offset_reset, progress, **parameters
        As in `stream`.

    Returns
    -------
    list of CommitBatch
        With `once` the commits, otherwise empty.

    Raises
    ------
    SourceError
        The topic cannot be read, a folder cannot be written, or a folder belongs to another stream.
    InvalidProblemError
        An option has an invalid value.
    """
    call = Stream.of(spark, "stream_commits", interval, parameters)
    check_seconds("every", every)
    limits = [name for name in call.options or {} if name.lower() in ("maxoffsetspertrigger", "minoffsetspertrigger")]
    if limits:
        raise InvalidProblemError(
            f"{limits[0]}: a stream of commits reads all partitions to their ends, so that a snapshot is of one time; "
            "omit it"
        )
    url = str(topic_of(topic))
    source = commit_options(url, call.options)
    job = partial(CommitJob, every=None if call.once else max(round(1000 * every), 1), logs=logs)
    with internal_topics(spark):
        return call.run(url, source, out, TABLES, progress, job)


class CommitJob(StreamJob[CommitBatch]):
    """Processing of records. `every` is in milliseconds; None makes a snapshot at the end alone."""

    def __init__(self, *job: Any, every: int | None, logs: Logs) -> None:
        super().__init__(*job)
        self._every, self._logs = every, logs
        clock = self._state("clock", _CLOCK).first()
        self._newest: int | None = None if clock is None else clock["newest"]
        self._last: int | None = None if clock is None else clock["last"]

    def _take_batch(self, records: DataFrame, folder: str, number: int) -> None:
        place = Folder(self._spark, f"{folder}/_records", BASE)
        rows = decoded(read_records(self._spark, records, None), place)
        readable = sf.col("reason").isNull()
        members = self._stored(folder, "_members", rows.filter(readable & ~is_commit()).mapInArrow(with_reasons, BASE))
        self._take(folder, rows.filter(~readable | is_commit()).unionAll(members), number)

    def _take_silence(self) -> None:
        """Wait for the next record: without one, no group has changed."""

    def _take_end(self) -> None:
        if self._newest is not None and self._newest != self._last:
            self._take(
                self._commits.begin(), self._spark.createDataFrame([], BASE), self._commits.position, self._newest
            )

    def _take(self, folder: str, rows: DataFrame, position: int, due: int | None = None) -> None:
        """Write and commit the state after new records, and a snapshot of a time if one is due."""
        started, spark = time.monotonic(), self._spark
        sums = rows.groupBy("reason").agg(sf.count("*").alias("n"), sf.max("at").alias("at")).collect()
        used = next((row for row in sums if row["reason"] is None), None)
        passed = [(row["reason"], row["n"]) for row in sums if row is not used]
        times = (self._newest, None if used is None else used["at"])
        newest = max((at for at in times if at is not None), default=None)
        known = self._state(_RECORDS, BASE).unionByName(rows.filter("reason is null"))
        kept = self._stored(f"{folder}/{STATE}", _RECORDS, compacted(known)).count()
        if passed:
            spark.createDataFrame(passed, PASSED_OVER.ddl).write.parquet(f"{folder}/passed_over")
        due = self._due(newest) if due is None else due
        last = self._last if due is None else due
        groups, report = (0, None) if due is None else self._snapshot(folder, known.filter(sf.col("at") <= due), due)
        spark.createDataFrame([(newest, last)], _CLOCK).write.parquet(f"{folder}/{STATE}/clock")
        self._commits.commit(position)
        self._newest, self._last = newest, last
        self._report(
            CommitBatch(
                self._commits.number, sum(row["n"] for row in sums), 0 if used is None else used["n"], kept,
                None if due is None else history_tables.iso_text(due), groups,
                *((0, 0, 0) if report is None else (report.plans, report.rejects, report.failed)),
                time.monotonic() - started,
            )
        )  # fmt: skip

    def _due(self, newest: int | None) -> int | None:
        """Return the time of the last due snapshot that has not been made."""
        if self._every is None or newest is None:
            return None
        latest = (newest - 1) // self._every * self._every  # more records of the newest time may follow
        return latest if self._last is None or latest > self._last else None

    def _snapshot(self, folder: str, known: DataFrame, due: int) -> tuple[int, RunReport | None]:
        """Write the snapshot of a time, plan and audit it; return the number of its groups."""
        spark = self._spark
        commits, members = known.filter(is_commit()), known.filter(~is_commit())
        by_id = not members.filter(sf.col("kind") != CLASSIC_GROUP).isEmpty()
        names = self._logs.topic_names() if by_id else {}
        course = followed(members, [due], names, Folder(spark, f"{folder}/_course", COURSE))
        topics = _topics(commits, course)
        found = list(self._logs.log_offsets(topics, due)) if topics else []
        ts = history_tables.iso_text(due)
        ends = self._ends(found).withColumn("snapshot_ts", sf.lit(ts))
        numbers = spark.createDataFrame([(0, ts)], "number INT, snapshot_ts STRING")
        offsets = history_tables.offsets(commits, course, [(due, ts)], numbers, ends)
        offsets = self._stored(folder, "offsets", offsets)
        told = self._stored(folder, "members", history_tables.members(course, numbers))
        groups = offsets.select("group").distinct().count()
        if not groups:
            return 0, None
        return groups, self._audited(folder, offsets, told)

    def _ends(self, found: Sequence[tuple[str, int, int, int]]) -> DataFrame:
        if not found:
            return self._spark.createDataFrame([], _ENDS)
        columns = list(map(list, zip(*found, strict=True)))
        return self._spark.createDataFrame(pa.table(columns, schema=arrow_schema(_ENDS)))

    def _stored(self, folder: str, name: str, table: DataFrame) -> DataFrame:
        """Write a table and read it, with Python batches limited by their number of rows alone."""
        with driver_of(self._spark).batches_by_rows():
            return stored(table, f"{folder}/{name}")


def compacted(rows: DataFrame) -> DataFrame:
    """Return each key's last usable record, as compaction leaves it, without tombstones.

    The keys of commits are group, topic and partition, whatever their version. All records of a group are in one
    partition of the topic, so their offsets are their order; a record that is read twice counts once.
    """
    named = [sf.col(f"`{name}`") for name in rows.columns]
    last = rows.groupBy(*_KEY).agg(sf.max_by(sf.struct(*named), "offset").alias("last")).select("last.*")
    return last.filter(sf.coalesce(sf.col("commit_offset").isNotNull(), sf.lit(False)) | sf.col("value").isNotNull())


def _topics(commits: DataFrame, course: DataFrame) -> list[str]:
    """Return the topics of commits, subscriptions and assignments."""
    members = course.filter(sf.col("kind") == MEMBER)
    names = (
        compacted(commits).select(sf.col("commit_topic").alias("topic"))
        .unionAll(members.select(sf.explode("member.topics")))
        .unionAll(members.select(sf.explode("partitions.topic")))
    )  # fmt: skip
    return [row["topic"] for row in names.distinct().orderBy("topic").collect()]
