"""Shared parts of streams: a query on Kafka whose micro-batches are committed once each, and the solver of groups."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from pyspark.sql import DataFrame, SparkSession

from evenlag.errors import InvalidProblemError, SourceError
from evenlag.model.objective import CROSSINGS
from evenlag.search.options import SolveKeywords, SolveOptions, check_seconds
from evenlag.spark.driver.error_lines import blamed
from evenlag.spark.driver.kafka import connected
from evenlag.spark.driver.protocol import described, needs_java
from evenlag.spark.driver.storage import Storage, read_parquet
from evenlag.spark.jobs.batch import TABLES, run_with
from evenlag.spark.jobs.commits import Commits
from evenlag.spark.jobs.fleet_options import FleetOptions
from evenlag.spark.jobs.fleet_solver import FleetSolver
from evenlag.spark.jobs.run_report import RunReport
from evenlag.tables.amounts import TRAFFIC
from evenlag.tables.fleet_data import DataKeywords, FleetData

B = TypeVar("B")

CHECKPOINT = "_checkpoint"
LOOK = 1  # seconds between checks of an idle stream

Audit = Callable[[DataFrame, DataFrame | None, str], RunReport]
"""Plan and audit the groups of an offsets table and perhaps a members table, and write the tables to a folder."""


class StreamKeywords(SolveKeywords, DataKeywords, total=False):
    """Parameters of every stream; `Stream` and `FleetOptions` have their defaults."""

    checkpoint: str | Path | None
    once: bool
    options: Mapping[str, str] | None
    group_time_limit: float
    auto_offset_reset: str


@dataclass(frozen=True)
class Stream:
    """The checked parameters of a stream (see `stream`); `audit` has the ones that say how groups are audited."""

    spark: SparkSession
    audit: Audit
    interval: float
    checkpoint: str | Path | None = None
    once: bool = False
    options: Mapping[str, str] | None = None

    @classmethod
    def of(cls, spark: SparkSession, call: str, interval: float, parameters: Mapping[str, Any]) -> Self:
        """Check the parameters of a call.

        Raises
        ------
        SourceError
            The session has no Java of its own.
        InvalidProblemError
            An option has an invalid value, or is not for streams.
        """
        needs_java(spark, call, "call solve on each snapshot, or run the stream where Spark's driver runs")
        own = {name: value for name, value in parameters.items() if name in cls.__dataclass_fields__}
        others = {name: value for name, value in parameters.items() if name not in own}
        checked = FleetOptions.of({**others, "time_limit": None, "horizon": 0})
        _refuse_crossings(checked.solving, checked.data)
        if checked.data.by_record:
            raise InvalidProblemError(
                "a stream cannot estimate the capacity of members; with drain_seconds, give capacity too"
            )
        check_seconds("interval", interval, zero=True)
        # Plans must not depend on the snapshots that happen to be in one batch.
        solving = replace(checked, solving=replace(checked.solving, pause=0))

        def audit(offsets: DataFrame, members: DataFrame | None, folder: str) -> RunReport:
            return run_with(FleetSolver(solving, part=True), offsets, members, folder)

        return cls(spark, audit, interval, **own)

    def run(
        self,
        topic: str,
        source: Mapping[str, str],
        out: str | Path,
        tables: tuple[str, ...],
        progress: Callable[[B], None] | None,
        make_job: Callable[[SparkSession, Commits, Audit, Callable[[B], None]], StreamJob[B]],
    ) -> list[B]:
        """Give a topic's records to a job until the call is interrupted, or with `once` until the topic is read.

        `make_job` gets the session, the commits in `out`, `audit`, and the function that reports a commit's figures.
        With `once` all figures are returned.

        Raises
        ------
        SourceError
            The folder cannot be used (`Commits`), the checkpoint belongs to another, or the topic cannot be read.
        """
        batches: list[B] = []

        def report(batch: B) -> None:
            if self.once:
                batches.append(batch)
            if progress is not None:
                progress(batch)

        commits, named = Commits(self.spark, out, tables), self.checkpoint
        checkpoint = Storage(self.spark, f"{commits.path}/{CHECKPOINT}" if named is None else named)
        _belong_together(commits, checkpoint)
        job = make_job(self.spark, commits, self.audit, report)
        with connected(self.spark, topic):
            self._read(source, checkpoint.path, job)
        if self.once:
            job.flush()
        return batches

    def _read(self, source: Mapping[str, str], checkpoint: str, job: StreamJob[Any]) -> None:
        records = self.spark.readStream.format("kafka").options(**source).load()
        writer = records.writeStream.foreachBatch(job).option("checkpointLocation", checkpoint)
        pace: dict[str, Any] = {"availableNow": True} if self.once else {"processingTime": f"{self.interval} seconds"}
        query = writer.trigger(**pace).start()
        try:
            if self.once:
                query.awaitTermination()
            while not query.awaitTermination(LOOK):
                status = query.status  # idle, not waiting for brokers that do not answer
                if not status["isTriggerActive"] and not status["isDataAvailable"]:
                    job.idle()
        except Exception:
            if job.error is not None:  # Spark's own error is a Java trace
                raise job.error from None
            raise
        finally:
            query.stop()


def _refuse_crossings(options: SolveOptions, data: FleetData) -> None:
    """Raise an error for options on crossings, because a stream has no racks of both members and partitions."""
    asked = options.asked
    limited = [name for name, most in asked.budgets.items() if most is not None]
    if CROSSINGS in (*asked.prices, *limited, *asked.first) or TRAFFIC in data.amounts or data.fetch_from:
        raise InvalidProblemError(
            "a stream cannot count crossings, as it does not know the racks of both members and partitions; omit the "
            "price, budget and traffic of crossings, fetch_from, and crossings in first"
        )


class StreamJob(ABC, Generic[B]):
    """Processing of micro-batches. Spark calls it in another thread than `idle`.

    Parameters
    ----------
    audit : callable (`Audit`)
    report : callable
        Called with the figures of each commit.

    Attributes
    ----------
    error : Exception or None
        The error with which it failed.
    """

    def __init__(self, spark: SparkSession, commits: Commits, audit: Audit, report: Callable[[B], None]) -> None:
        self._spark, self._commits, self._audit, self._report = spark, commits, audit, report
        self.error: Exception | None = None
        self._lock = threading.Lock()

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
                with self._named():
                    self._take_batch(records, self._commits.begin(), number)
            except Exception as error:
                self.error = error
                raise

    def idle(self) -> None:
        """Do what is due while the topic is silent."""
        with self._lock, self._named():
            self._take_silence()

    def flush(self) -> None:
        """Do what is left to do when the topic has been read."""
        with self._lock, self._named():
            self._take_end()

    def _named(self) -> AbstractContextManager[None]:
        return described(self._spark, f"batch {self._commits.number + 1} of the stream")

    def _state(self, table: str, ddl: str) -> DataFrame:
        """Return a table of the committed state; an empty one before the first commit."""
        state, spark = self._commits.state, self._spark
        return spark.createDataFrame([], ddl) if state is None else read_parquet(spark, f"{state}/{table}", ddl)

    def _audited(self, folder: str, offsets: DataFrame, members: DataFrame | None = None) -> RunReport:
        """Plan and audit the groups of tables, with the results in the folder of the next commit."""
        report = self._audit(offsets, members, f"{folder}/_job")
        self._commits.adopt(f"{folder}/_job", TABLES)
        return report

    @abstractmethod
    def _take_batch(self, records: DataFrame, folder: str, number: int) -> None:
        """Process records with the folder of the next commit, and commit it with the batch's number."""

    @abstractmethod
    def _take_silence(self) -> None:
        """Do what is due while the topic is silent."""

    @abstractmethod
    def _take_end(self) -> None:
        """Do what is left to do when the topic has been read."""


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
