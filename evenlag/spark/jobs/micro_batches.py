"""The streaming job: rows of snapshots from a Kafka topic, with each group's snapshot audited once when complete."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from evenlag.errors import SourceError
from evenlag.model.names import taking
from evenlag.search.options import SolveOptions, check_seconds
from evenlag.spark.driver.kafka import record_text, topic_options
from evenlag.spark.driver.sources import json_table
from evenlag.spark.driver.storage import stored
from evenlag.spark.jobs.batch import TABLES
from evenlag.spark.jobs.commits import STATE
from evenlag.spark.jobs.fleet_options import FleetOptions
from evenlag.spark.jobs.streaming import Stream, StreamJob, StreamKeywords
from evenlag.spark.native.fates import AUDITED, DUE, LATE, ROWS, WAITS, late_rejects, latest, with_fates
from evenlag.tables.columns import LINE
from evenlag.tables.fleet_data import FleetData
from evenlag.tables.outputs import KEY


@dataclass(frozen=True)
class Batch:
    """The figures of one commit of a stream.

    Attributes
    ----------
    number : int
        Number of the commit, as in the folders `batch=…`.
    rows : int
        Rows read from the topic.
    snapshots : int
        Audited snapshots, each of one group.
    short : int
        Audited snapshots with fewer rows than their `snapshot_rows`.
    plans, rejects : int
        Rows written to these tables.
    log_ends : int
        Usable rows of log ends alone, which a stream does not need.
    waiting : int
        Rows that wait for the rest of their snapshot.
    failed : int
        Snapshots whose audit failed.
    seconds : float
    """

    number: int
    rows: int
    snapshots: int
    short: int
    plans: int
    rejects: int
    log_ends: int
    waiting: int
    failed: int
    seconds: float


@taking(StreamKeywords, Stream, FleetOptions, SolveOptions, FleetData)
def stream(
    spark: SparkSession,
    topic: str,
    *,
    out: str | Path,
    interval: float = 10.0,
    settle: float = 300.0,
    progress: Callable[[Batch], None] | None = None,
    **parameters: Unpack[StreamKeywords],
) -> list[Batch]:
    """Plan and audit each group's snapshot from a topic exactly once, when it is complete.

    The call returns when it is interrupted, or with `once` when the topic is read. After a restart it continues where
    it stopped, however it ended. Every row of the topic ends up exactly once, in `plans` or in `rejects`.

    Parameters
    ----------
    spark : SparkSession
        A session with Spark's Kafka connector (`add_connector`).
    topic : str
        `kafka://HOST:PORT/TOPIC`. Each record's value is a row of an offsets table as a JSON object, which may contain
        the number of its group's rows in the snapshot as `snapshot_rows`.
    out : str or Path
        Folder for the tables `plans`, `audit` and `rejects`, by `batch=N`; missing, empty, or from this stream.
    checkpoint : str or Path, optional
        Folder for Spark's checkpoint; by default in `out`. It must always be used with the same `out`.
    once : bool
        Read the topic to its current end, take all snapshots as complete, and return.
    interval : float
        Seconds between reads of the topic.
    settle : float
        Seconds after which a snapshot without further rows is taken as complete (docs/fleet-streams.md).
    options : mapping of str to str, optional
        Options of Spark's Kafka source: security, `startingOffsets` (default `earliest`), `maxOffsetsPerTrigger`, …
    group_time_limit, auto_offset_reset, **parameters
        As in `plans`. Plans are made for the lag of their snapshot and pauses cost nothing, because a stream keeps no
        earlier snapshots. Racks of members are unknown, so options on crossings are not allowed; `drain_seconds`
        requires `capacity`.
    progress : callable, optional
        Called after each commit.

    Returns
    -------
    list of Batch
        With `once` the commits, otherwise empty.

    Raises
    ------
    SourceError
        The topic cannot be read, a folder cannot be written, or a folder belongs to another stream.
    InvalidProblemError
        An option has an invalid value.
    """
    call = Stream.of(spark, "stream", interval, parameters)
    check_seconds("settle", settle, zero=True)
    source = topic_options(topic, call.options)
    return call.run(topic, source, out, TABLES, progress, partial(_Job, settle=settle))


class _Job(StreamJob[Batch]):
    """Processing of snapshot rows."""

    def __init__(self, *job: Any, settle: float) -> None:
        super().__init__(*job)
        self._settle, self._last = settle, time.monotonic()
        self._waiting = self._state("waiting", ROWS).count()

    def _take_batch(self, records: DataFrame, folder: str, number: int) -> None:
        # Stored, so that later steps do not read the rows from Kafka again.
        rows = records.select(record_text().alias(LINE), sf.unix_micros("timestamp").alias("at"))
        self._take(folder, stored(rows, f"{folder}/_rows"), number)

    def _take_silence(self) -> None:
        """Audit the waiting snapshots if no rows have arrived for longer than the `settle` time."""
        if time.monotonic() - self._last > self._settle:
            self._take_end()

    def _take_end(self) -> None:
        """Audit the waiting snapshots, complete or not."""
        if self._waiting:
            rows = self._spark.createDataFrame([], ROWS)
            self._take(self._commits.begin(), rows, self._commits.position, flush=True)

    def _take(self, folder: str, rows: DataFrame, position: int, flush: bool = False) -> None:
        """Write and commit the output of new and waiting rows."""
        started = time.monotonic()
        waiting, audited = self._state("waiting", ROWS), self._state("audited", AUDITED)
        came, newest = rows.agg(sf.count("*"), sf.max("at")).first() or (0, None)
        before = waiting.count()
        fated = with_fates(rows, waiting, audited, newest=newest, settle=self._settle, flush=flush)
        fates = stored(fated, f"{folder}/_fates")
        counts = Counter({row["fate"]: row["count"] for row in fates.groupBy("fate").count().collect()})
        due, waits, late = (fates.filter(sf.col("fate") == fate) for fate in (DUE, WAITS, LATE))
        plans, rejects, past, failed = 0, counts[LATE], 0, 0
        if counts[DUE]:
            report = self._audited(folder, json_table(due.select(LINE), "offsets"))
            plans, rejects, past, failed = report.plans, rejects + report.rejects, report.log_ends, report.failed
        if counts[LATE]:
            late_rejects(late).write.mode("append").parquet(f"{folder}/rejects")
        if plans + rejects + past + counts[WAITS] != came + before:
            raise SourceError(
                f"{came} rows arrived and {before} waited, but {plans + rejects} were written, {past} are log ends "
                f"alone and {counts[WAITS]} wait; please report this"
            )
        waits.select(LINE, "at").write.parquet(f"{folder}/{STATE}/waiting")
        snapshots = due.dropna(subset=list(KEY)).groupBy(*KEY).agg(sf.max("short").alias("short"))
        latest(audited.unionByName(snapshots.drop("short"))).write.parquet(f"{folder}/{STATE}/audited")
        audits, short = snapshots.agg(sf.count("*"), sf.count_if("short")).first() or (0, 0)
        self._commits.commit(position)
        self._last, self._waiting = time.monotonic(), counts[WAITS]
        seconds = self._last - started
        self._report(
            Batch(self._commits.number, came, audits, short, plans, rejects, past, counts[WAITS], failed, seconds)
        )  # fmt: skip
