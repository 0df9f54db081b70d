"""The streaming job: rows of snapshots from a Kafka topic, with each group's snapshot audited once when complete."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from evenlag.errors import InvalidProblemError, SourceError
from evenlag.model.objective import CROSSINGS
from evenlag.search.options import SolveOptions, check_seconds
from evenlag.spark.driver.errors import blamed
from evenlag.spark.driver.kafka import connected, record_text, topic_options
from evenlag.spark.driver.protocol import described, needs_java
from evenlag.spark.driver.sources import json_table
from evenlag.spark.driver.storage import Storage, read_parquet
from evenlag.spark.jobs.batch import TABLES, RunReport, run_with
from evenlag.spark.jobs.commits import STATE, Commits
from evenlag.spark.jobs.fleet_solver import FleetSolver, PlanKeywords, fleet_options
from evenlag.spark.native.fates import AUDITED, DUE, LATE, ROWS, WAITS, late_rejects, latest, with_fates
from evenlag.spark.worker.one_group import Want
from evenlag.tables.amounts import TRAFFIC
from evenlag.tables.columns import LINE
from evenlag.tables.defaults import AUTO_OFFSET_RESET, GROUP_TIME_LIMIT
from evenlag.tables.fleet_data import FleetData
from evenlag.tables.outputs import KEY

CHECKPOINT = "_checkpoint"
LOOK = 1  # seconds between checks of an idle stream


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


def stream(
    spark: SparkSession,
    topic: str,
    *,
    out: str | Path,
    checkpoint: str | Path | None = None,
    once: bool = False,
    interval: float = 10.0,
    settle: float = 300.0,
    options: Mapping[str, str] | None = None,
    group_time_limit: float = GROUP_TIME_LIMIT,
    auto_offset_reset: str = AUTO_OFFSET_RESET,
    progress: Callable[[Batch], None] | None = None,
    **solving: Unpack[PlanKeywords],
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
    group_time_limit, auto_offset_reset, **solving
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
    needs_java(spark, "stream", "call solve on each snapshot, or run the stream where Spark's driver runs")
    checked, data = fleet_options("stream", solving, stream)
    _refuse_crossings(checked, data)
    if data.by_record:
        raise InvalidProblemError(
            "a stream cannot estimate the capacity of members; with drain_seconds, give capacity too"
        )
    # Plans must not depend on the snapshots that happen to be in one batch.
    parameters = replace(checked, pause=0)
    check_seconds("group_time_limit", group_time_limit)
    check_seconds("interval", interval, zero=True)
    check_seconds("settle", settle, zero=True)

    def audit(offsets: DataFrame, folder: str) -> RunReport:
        solver = FleetSolver(parameters, Want.BOTH, None, group_time_limit, 0, None, data, whole=False)
        return run_with(solver, spark, offsets, out=folder, auto_offset_reset=auto_offset_reset)

    source = topic_options(topic, options)
    commits = Commits(spark, out, TABLES)
    notes = Storage(spark, checkpoint if checkpoint is not None else f"{commits.path}/{CHECKPOINT}")
    _belong_together(commits, notes)
    batches: list[Batch] = []

    def report(batch: Batch) -> None:
        if once:
            batches.append(batch)
        if progress is not None:
            progress(batch)

    job = _Job(spark, commits, settle, audit, report)
    with connected(spark, topic):
        records = spark.readStream.format("kafka").options(**source).load()
        writer = records.writeStream.foreachBatch(job).option("checkpointLocation", notes.path)
        trigger: dict[str, Any] = {"availableNow": True} if once else {"processingTime": f"{interval} seconds"}
        query = writer.trigger(**trigger).start()
        try:
            if once:
                query.awaitTermination()
            while not query.awaitTermination(LOOK):
                status = query.status  # idle, not waiting for brokers that do not answer
                if not status["isTriggerActive"] and not status["isDataAvailable"]:
                    job.settle()
        except Exception:
            if job.error is not None:  # Spark's own error is a Java trace
                raise job.error from None
            raise
        finally:
            query.stop()
    if once:
        job.flush()
    return batches


def _refuse_crossings(options: SolveOptions, data: FleetData) -> None:
    """Raise an error for options on crossings, because a topic of snapshots has no racks of members."""
    asked = options.asked
    limited = [name for name, most in asked.budgets.items() if most is not None]
    if CROSSINGS in (*asked.prices, *limited, *asked.first) or TRAFFIC in data.amounts:
        raise InvalidProblemError(
            "a stream cannot count crossings, as its topic has no racks of members; omit the price, budget and traffic "
            "of crossings, and crossings in first"
        )


def _belong_together(commits: Commits, checkpoint: Storage) -> None:
    """Raise an error if the checkpoint is not the one with which the folder was written.

    Spark writes the offsets of a batch before the batch is processed, and its commit afterwards.
    """

    def last(folder: str) -> int:
        names = checkpoint.names(f"{checkpoint.path}/{folder}") or ()
        return max((int(name) for name in names if name.isdigit()), default=-1)

    with blamed(checkpoint.path):
        planned, taken = last("offsets"), last("commits")
    if not max(planned - 1, taken) <= commits.position <= planned:
        raise SourceError(
            f"{commits.path}: has the stream's batches up to {commits.position}, but the checkpoint {checkpoint.path} "
            f"is at {planned}; use the checkpoint that belongs to this folder, or a new folder"
        )


class _Job:
    """Processing of micro-batches, called by Spark in a thread other than that of `settle`.

    Attributes
    ----------
    error : Exception or None
        The error with which it failed.
    """

    def __init__(
        self,
        spark: SparkSession,
        commits: Commits,
        settle: float,
        audit: Callable[[DataFrame, str], RunReport],
        report: Callable[[Batch], None],
    ) -> None:
        self._spark, self._commits, self._settle = spark, commits, settle
        self._audit, self._report = audit, report
        self.error: Exception | None = None
        self._lock = threading.Lock()
        self._last = time.monotonic()
        state = commits.state
        self._waiting = 0 if state is None else read_parquet(spark, f"{state}/waiting").count()

    def __call__(self, records: DataFrame, number: int) -> None:
        """Process a micro-batch, unless it was already committed before Spark could record this."""
        with self._lock:
            here = self._commits.position
            if number <= here:
                return
            try:
                if number != here + 1:
                    raise SourceError(
                        f"{self._commits.path}: batch {here + 1} of the stream is missing before {number}"
                    )
                folder = self._commits.begin()
                # Stored, so that later steps do not read the rows from Kafka again.
                rows = records.select(record_text().alias(LINE), sf.unix_micros("timestamp").alias("at"))
                with self._described():
                    rows.write.parquet(f"{folder}/_rows")
                    self._take(folder, read_parquet(self._spark, f"{folder}/_rows"), number)
            except Exception as error:
                self.error = error
                raise

    def settle(self) -> None:
        """Audit the waiting snapshots if no rows have arrived for longer than the `settle` time."""
        with self._lock:
            if time.monotonic() - self._last > self._settle:
                self._flush()

    def flush(self) -> None:
        """Audit the waiting snapshots, complete or not."""
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            rows = self._spark.createDataFrame([], ROWS)
            with self._described():
                self._take(self._commits.begin(), rows, self._commits.position, flush=True)

    def _described(self) -> AbstractContextManager[None]:
        return described(self._spark, f"batch {self._commits.number + 1} of the stream")

    def _take(self, folder: str, rows: DataFrame, position: int, flush: bool = False) -> None:
        """Write and commit the output of new and waiting rows."""
        started, spark = time.monotonic(), self._spark
        waiting, audited = self._state("waiting", ROWS), self._state("audited", AUDITED)
        came, newest = rows.agg(sf.count("*"), sf.max("at")).first() or (0, None)
        before = waiting.count()
        with_fates(rows, waiting, audited, newest=newest, settle=self._settle, flush=flush).write.parquet(
            f"{folder}/_fates"
        )
        fates = read_parquet(spark, f"{folder}/_fates")
        counts = Counter({row["fate"]: row["count"] for row in fates.groupBy("fate").count().collect()})
        due, waits, late = (fates.filter(sf.col("fate") == fate) for fate in (DUE, WAITS, LATE))
        plans, rejects, past, failed = 0, counts[LATE], 0, 0
        if counts[DUE]:
            report = self._audit(json_table(due.select(LINE), "offsets"), f"{folder}/_job")
            self._commits.adopt(f"{folder}/_job")
            plans, rejects, past = report.plans, rejects + report.rejects, report.log_ends
            failed = report.statuses.get("ERROR", 0)
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

    def _state(self, table: str, ddl: str) -> DataFrame:
        state = self._commits.state
        return self._spark.createDataFrame([], ddl) if state is None else read_parquet(self._spark, f"{state}/{table}")
