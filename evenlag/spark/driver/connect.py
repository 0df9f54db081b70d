"""The driver of a session of Spark Connect, a remote server that accepts only DataFrames and settings."""

from __future__ import annotations

import atexit
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from evenlag.spark.driver.error_lines import blamed
from evenlag.spark.driver.protocol import (
    BATCH_BYTES,
    COMMIT_EACH_TASK,
    UNLIMITED,
    Counters,
    Driver,
    Progress,
    naming_older_server,
)

ENOUGH = 1_000_000  # length of a range that Spark distributes over all known slots


class ConnectDriver(Driver):
    """`Driver` of a session of Spark Connect."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark: Any = spark
        self.where = self._setting("spark.master", "Spark Connect")

    def prepare(self) -> None:
        """Do nothing, because the server manages the Python workers."""

    def slots(self) -> int:
        """Return the number of tasks that run concurrently, by the server's settings or the partitions of a range."""
        cores = int(self._setting("spark.executor.cores", "1"))
        dynamic = self._setting("spark.dynamicAllocation.enabled", "false") == "true"
        executors = self._setting(f"spark.{'dynamicAllocation.maxExecutors' if dynamic else 'executor.instances'}", "")
        if executors.isdigit():
            return max(int(executors) * cores // self.task_cpus(), 1)
        spread = self._spark.range(ENOUGH).select(sf.spark_partition_id().alias("slot")).distinct().count()
        return max(int(spread) // self.task_cpus(), 1)

    def task_cpus(self) -> int:
        """Return the number of CPUs of a task."""
        return int(self._setting("spark.task.cpus", "1"))

    @contextmanager
    def batches_by_rows(self) -> Iterator[None]:
        """Limit Python batches by their number of rows alone, in the whole session."""
        before = self._setting(BATCH_BYTES, UNLIMITED)  # the setting exists from Spark 4.0
        self._spark.conf.set(BATCH_BYTES, UNLIMITED)
        try:
            with naming_older_server(self._spark):
                yield
        finally:
            self._spark.conf.set(BATCH_BYTES, before)

    @contextmanager
    def reporting(self, progress: Progress | None, total: int, tasks: int, /) -> Iterator[Counters]:
        """Report progress by the job's completed tasks, because their counters are not available before its end."""
        if progress is None:
            yield None, None
            return
        reported = 0

        def watch(stages: Iterable[Any] | None, **_: Any) -> None:
            nonlocal reported
            ended = max((stage.num_completed_tasks for stage in stages or () if stage.num_tasks == tasks), default=0)
            done = total * ended // tasks
            if done > reported:
                reported = done
                progress(done, total, 0)

        progress(0, total, 0)
        self._spark.registerProgressHandler(watch)
        try:
            yield None, None
        finally:
            self._spark.removeProgressHandler(watch)

    def tag(self, tag: str) -> None:
        """Add a tag to all operations that this thread starts."""
        self._spark.addTag(tag)

    def cancel(self, tag: str) -> None:
        """Cancel the operations with a tag."""
        self._spark.interruptTag(tag)

    def place(self, ddl: str) -> Table:
        """Create a table with these columns."""
        return Table(self._spark, ddl)

    def _setting(self, name: str, default: str) -> str:
        return str(self._spark.conf.get(name, None) or default)


class Table:
    """A new table in the session's current database, because clients have no folders; dropped when the client ends."""

    hint = ""
    path: str | None = None

    def __init__(self, spark: SparkSession, ddl: str) -> None:
        self._spark: Any = spark
        self._name = f"evenlag_{uuid.uuid4().hex[:12]}"
        with blamed(f"the temporary table {self._name}"):
            each_task = ", ".join(f"'{name}' = '{value}'" for name, value in COMMIT_EACH_TASK.items())
            spark.sql(f"CREATE TABLE {self._name} ({ddl}) OPTIONS ({each_task})").collect()
        atexit.register(self._drop)

    def write(self, df: DataFrame) -> None:
        """Write the table."""
        df.write.insertInto(self._name)

    def read(self) -> DataFrame:
        """Return the written table."""
        self._spark.catalog.refreshTable(self._name)  # needed for rows of a cancelled job
        table: DataFrame = self._spark.read.table(self._name)
        return table

    def _drop(self) -> None:
        with suppress(Exception):  # the session may have been stopped
            self._spark.client.disable_reattachable_execute()  # needs threads, which cannot be started at exit
            self._spark.sql(f"DROP TABLE IF EXISTS {self._name}").collect()
