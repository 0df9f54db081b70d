"""The driver of a session in this process, through Spark's Java."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pyspark import InheritableThread, StatusTracker
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from evenlag.spark.driver.protocol import BATCH_BYTES, UNLIMITED, Counters, Driver, Progress, Watch, described
from evenlag.spark.driver.settings import is_local
from evenlag.spark.driver.storage import Folder, scratch
from evenlag.spark.worker.arrow_task import look_around

INTERVAL = 0.25  # seconds between checks of the counters
PATIENCE = 5  # seconds without a task before the warning
SMALL = 50_000_000  # bytes of a table, for each slot

logger = logging.getLogger("evenlag.pipeline")

_woken: set[str] = set()  # applications whose workers were started
_warmed: set[str] = set()  # applications in which `is_cold` was called


class ClassicDriver(Driver):
    """`Driver` of a session whose driver is in this process."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._context = spark, spark.sparkContext
        self.where = str(self._context.master)

    def prepare(self) -> None:
        """Start Python workers and let them import their modules, once in an application.

        In local mode they run the driver's own Python, unless another one is configured. Spark's default would be
        `python3` on PATH, which lacks evenlag if no virtual environment is active.
        """
        context = self._context
        asked = os.environ.get("PYSPARK_PYTHON") or context.getConf().get("spark.pyspark.python")
        if is_local(self.where) and not asked:
            context.pythonExec = sys.executable
        if context.applicationId in _woken:
            return
        _woken.add(context.applicationId)
        few = max(self.slots() // 2, 1)  # the rest is for the driver's other jobs

        def wake() -> None:
            woken = self._spark.range(0, few, 1, few).select(sf.udf(look_around(), "string", useArrow=False)("id"))
            with suppress(Exception):  # the work itself will report the error
                woken.write.format("noop").mode("append").save()

        with described(self._spark, "starting Python"):
            InheritableThread(target=wake, daemon=True).start()

    def is_cold(self) -> bool:
        """Return whether this is the first, slow call in a session whose tasks share this driver's Java."""
        application = self._context.applicationId
        if application in _warmed:
            return False
        _warmed.add(application)
        return is_local(self.where)

    def is_small(self, df: DataFrame) -> bool:
        """Return whether a table surely fits into a task for each slot, by Spark's estimate before any job."""
        size = df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()  # for files, their compressed size
        return int(str(size)) < SMALL * self.slots()  # py4j returns small numbers as Python's

    def python(self) -> str:
        """Return the Python in which tasks run."""
        return str(self._context.pythonExec)

    def slots(self) -> int:
        """Return the number of tasks that run concurrently."""
        settings, java = self._context.getConf(), self._context._jsc.sc()
        now = int(java.maxNumConcurrentTasks(java.resourceProfileManager().defaultResourceProfile()))
        slots = now or self._context.defaultParallelism // self.task_cpus()  # no executor is registered yet
        most = settings.get("spark.dynamicAllocation.maxExecutors")
        if most is not None and settings.get("spark.dynamicAllocation.enabled", "false") == "true":
            cores = int(settings.get("spark.executor.cores", "1") or 1)
            slots = max(slots, int(most) * cores // self.task_cpus())
        return max(slots, 1)

    def task_cpus(self) -> int:
        """Return the number of CPUs of a task."""
        return int(self._context.getConf().get("spark.task.cpus", "1") or 1)

    @contextmanager
    def batches_by_rows(self) -> Iterator[None]:
        """Limit Python batches by their number of rows alone, in jobs started by this thread."""
        before = self._context.getLocalProperty(BATCH_BYTES)
        self._context.setLocalProperty(BATCH_BYTES, UNLIMITED)
        try:
            yield
        finally:
            self._context.setLocalProperty(BATCH_BYTES, before)  # type: ignore[arg-type]

    @contextmanager
    def reporting(self, progress: Progress | None, total: int, _tasks: int, /) -> Iterator[Counters]:
        """Report progress while a job runs; Spark counts a task's groups as done when the task ends."""
        if progress is None:
            yield None, None
            return
        done, failed = self._context.accumulator(0), self._context.accumulator(0)
        ended = threading.Event()

        def watch() -> None:
            reported = 0
            while not ended.wait(INTERVAL):
                if done.value != reported:
                    reported = done.value
                    progress(min(reported, total), total, failed.value)  # a repeated task counts its groups again

        watcher = threading.Thread(target=watch, name="evenlag-progress", daemon=True)
        progress(0, total, 0)
        watcher.start()
        try:
            yield done, failed
        finally:
            ended.set()
            watcher.join()

    def tag(self, tag: str) -> None:
        """Add a tag to all jobs that this thread starts, and let them find classes of the jars of `ADD JAR`.

        Spark does the latter only in the thread that adds a jar.
        """
        self._context.addJobTag(tag)
        java: Any = self._spark
        java._jvm.java.lang.Thread.currentThread().setContextClassLoader(
            java._jsparkSession.sharedState().jarClassLoader()
        )

    def cancel(self, tag: str) -> None:
        """Cancel the jobs with a tag."""
        self._context.cancelJobsWithTag(tag)

    def watch(self) -> IdleWatch:
        """Return a watch that warns if Spark waits for executors."""
        return IdleWatch(self._context.statusTracker(), self._any_task_runs)

    def _any_task_runs(self) -> bool:
        """Return whether any task is running, according to the scheduler.

        The tracker's count is updated only when another task starts or ends, which is late if all run at once.
        """
        running = self._context._jsc.sc().taskScheduler().runningTasksByExecutors().valuesIterator()
        while running.hasNext():
            if running.next():
                return True
        return False

    def place(self, ddl: str) -> Folder:
        """Create a folder for a table with these columns."""
        return Folder(self._spark, scratch(self._spark), ddl)


class IdleWatch(Watch):
    """Watch that warns once if Spark has active stages but no running task, because it waits for executors."""

    def __init__(self, tracker: StatusTracker, any_task_runs: Callable[[], bool]) -> None:
        self._tracker, self._any_task_runs = tracker, any_task_runs
        self._busy, self._warned = time.monotonic(), False

    def look(self) -> None:
        """Check if there are active stages and running tasks."""
        if not self._tracker.getActiveStageIds() or self._any_task_runs():
            self._busy = time.monotonic()
        elif not self._warned and time.monotonic() - self._busy >= PATIENCE:
            logger.warning("Spark has started no task for %d s: waiting for executors", PATIENCE)
            self._warned = True
