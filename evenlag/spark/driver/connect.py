"""A session of Spark Connect: its driver is a server elsewhere, and only DataFrames and settings go there."""

from __future__ import annotations

import atexit
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from evenlag.spark.driver.errors import blamed
from evenlag.spark.driver.protocol import BATCH_BYTES, COMMIT_EACH_TASK, UNLIMITED, Counters, Progress

ENOUGH = 1_000_000  # numbers that Spark spreads over all slots that it knows


class ConnectDriver:
    """What `driver.Driver` says, of a session of Spark Connect."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark: Any = spark
        self.where = self._setting("spark.master", "Spark Connect")

    def prepare(self) -> None:
        """Do nothing: which Python the workers are is the server's affair."""

    def is_cold(self) -> bool:
        """Return False: others may have used the server's Java before."""
        return False

    def python(self) -> None:
        """Return nothing: the server knows."""

    def slots(self) -> int:
        """Return how many tasks run at once: as the server's settings say, else as Spark spreads numbers."""
        cores = int(self._setting("spark.executor.cores", "1"))
        dynamic = self._setting("spark.dynamicAllocation.enabled", "false") == "true"
        executors = self._setting(f"spark.{'dynamicAllocation.maxExecutors' if dynamic else 'executor.instances'}", "")
        if executors.isdigit():
            return max(int(executors) * cores // self.task_cpus(), 1)
        spread = self._spark.range(ENOUGH).select(sf.spark_partition_id().alias("slot")).distinct().count()
        return max(int(spread) // self.task_cpus(), 1)

    def task_cpus(self) -> int:
        """Return the processors that Spark gives a task."""
        return int(self._setting("spark.task.cpus", "1"))

    @contextmanager
    def batches_by_rows(self) -> Iterator[None]:
        """Let batches of rows for Python be full by their number alone, in the session meanwhile."""
        before = self._setting(BATCH_BYTES, UNLIMITED)  # before 4.0 there is no such setting
        self._spark.conf.set(BATCH_BYTES, UNLIMITED)
        try:
            yield
        finally:
            self._spark.conf.set(BATCH_BYTES, before)

    @contextmanager
    def reporting(self, progress: Progress | None, total: int, tasks: int, /) -> Iterator[Counters]:
        """Report while a job runs, by its tasks: nothing that they count comes back before its end."""
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
        """Give a tag to all that this thread asks the server for."""
        self._spark.addTag(tag)

    def cancel(self, tag: str) -> None:
        """Cancel what has a tag."""
        self._spark.interruptTag(tag)

    def watch(self) -> ConnectDriver:
        """Give itself: that nothing runs is not said."""
        return self

    def look(self) -> None:
        """Do nothing: the server does not tell which tasks run."""

    def place(self, ddl: str) -> Table:
        """Make a table of these columns."""
        return Table(self._spark, ddl)

    def _setting(self, name: str, default: str) -> str:
        return str(self._spark.conf.get(name, None) or default)


class Table:
    """A new table in the session's current database, as a client has no folders; dropped when the driver ends."""

    hint = ""
    path: str | None = None

    def __init__(self, spark: SparkSession, ddl: str) -> None:
        self._spark: Any = spark
        self._name = f"evenlag_{uuid.uuid4().hex[:12]}"
        with blamed(f"the table {self._name}, where a result is kept"):
            each_task = ", ".join(f"'{name}' = '{value}'" for name, value in COMMIT_EACH_TASK.items())
            spark.sql(f"CREATE TABLE {self._name} ({ddl}) OPTIONS ({each_task})").collect()
        atexit.register(self._drop)

    def write(self, df: DataFrame) -> None:
        """Write a table."""
        df.write.insertInto(self._name)

    def read(self) -> DataFrame:
        """Give what was written."""
        self._spark.catalog.refreshTable(self._name)  # it does not know of tasks whose job was cancelled
        table: DataFrame = self._spark.read.table(self._name)
        return table

    def _drop(self) -> None:
        with suppress(Exception):  # the session may have been stopped
            self._spark.client.disable_reattachable_execute()  # needs threads, and at exit there can be no new ones
            self._spark.sql(f"DROP TABLE IF EXISTS {self._name}").collect()
