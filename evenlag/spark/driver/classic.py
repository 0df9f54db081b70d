"""A session whose driver is this process: asked through Spark's Java."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pyspark import InheritableThread, StatusTracker
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from evenlag.spark.driver.protocol import BATCH_BYTES, UNLIMITED, Counters, Progress, described
from evenlag.spark.driver.settings import is_local
from evenlag.spark.driver.storage import Folder, scratch
from evenlag.spark.worker.task import look_around

INTERVAL = 0.25  # seconds from one look at the counts to the next
PATIENCE = 5  # seconds without a task before it is said

logger = logging.getLogger("evenlag.pipeline")

_woken: set[str] = set()  # applications whose workers were
_warmed: set[str] = set()  # applications in which a call has asked whether Java is cold


class ClassicDriver:
    """What `driver.Driver` says, of a session with a driver of its own."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._context = spark, spark.sparkContext
        self.where = str(self._context.master)

    def prepare(self) -> None:
        """Let Python workers start and import what they need, once in an application.

        In local mode they are of the driver's own Python, unless another one is asked for: Spark would take `python3`
        of PATH, which where no virtual environment is active is one without evenlag.
        """
        context = self._context
        asked = os.environ.get("PYSPARK_PYTHON") or context.getConf().get("spark.pyspark.python")
        if is_local(self.where) and not asked:
            context.pythonExec = sys.executable
        if context.applicationId in _woken:
            return
        _woken.add(context.applicationId)
        few = max(self.slots() // 2, 1)  # the others are for what the driver asks for meanwhile

        def wake() -> None:
            woken = self._spark.range(0, few, 1, few).select(sf.udf(look_around(), "string", useArrow=False)("id"))
            with suppress(Exception):  # what goes wrong here is said by the work itself
                woken.write.format("noop").mode("append").save()

        with described(self._spark, "starting Python"):
            InheritableThread(target=wake, daemon=True).start()

    def is_cold(self) -> bool:
        """Return whether this is the first call, a slow one, in a session whose tasks share this driver's Java."""
        application = self._context.applicationId
        if application in _warmed:
            return False
        _warmed.add(application)
        return is_local(self.where)

    def python(self) -> str:
        """Return the Python that tasks run in."""
        return str(self._context.pythonExec)

    def slots(self) -> int:
        """Return how many tasks Spark runs at once."""
        settings, java = self._context.getConf(), self._context._jsc.sc()
        now = int(java.maxNumConcurrentTasks(java.resourceProfileManager().defaultResourceProfile()))
        slots = now or self._context.defaultParallelism // self.task_cpus()  # no executor has come yet
        most = settings.get("spark.dynamicAllocation.maxExecutors")
        if most is not None and settings.get("spark.dynamicAllocation.enabled", "false") == "true":
            cores = int(settings.get("spark.executor.cores", "1") or 1)
            slots = max(slots, int(most) * cores // self.task_cpus())
        return max(slots, 1)

    def task_cpus(self) -> int:
        """Return the processors that Spark gives a task."""
        return int(self._context.getConf().get("spark.task.cpus", "1") or 1)

    @contextmanager
    def batches_by_rows(self) -> Iterator[None]:
        """Let batches of rows for Python be full by their number alone, in jobs that this thread starts."""
        before = self._context.getLocalProperty(BATCH_BYTES)
        self._context.setLocalProperty(BATCH_BYTES, UNLIMITED)
        try:
            yield
        finally:
            self._context.setLocalProperty(BATCH_BYTES, before)  # type: ignore[arg-type]

    @contextmanager
    def reporting(self, progress: Progress | None, total: int, _tasks: int, /) -> Iterator[Counters]:
        """Report while a job runs; Spark counts a group as done when the task it belongs to ends."""
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
                    progress(min(reported, total), total, failed.value)  # a task done again counts its groups again

        watcher = threading.Thread(target=watch, name="evenlag-progress", daemon=True)
        progress(0, total, 0)
        watcher.start()
        try:
            yield done, failed
        finally:
            ended.set()
            watcher.join()

    def tag(self, tag: str) -> None:
        """Give a tag to all jobs that this thread starts."""
        self._context.addJobTag(tag)

    def cancel(self, tag: str) -> None:
        """Cancel the jobs with a tag."""
        self._context.cancelJobsWithTag(tag)

    def watch(self) -> IdleWatch:
        """Give what says that Spark waits for executors."""
        return IdleWatch(self._context.statusTracker(), self._any_task_runs)

    def _any_task_runs(self) -> bool:
        """Return whether the scheduler has started any task that has not ended.

        The tracker counts them too, but is told when the next task starts or ends: where all run at once, late.
        """
        running = self._context._jsc.sc().taskScheduler().runningTasksByExecutors().valuesIterator()
        while running.hasNext():
            if running.next():
                return True
        return False

    def place(self, ddl: str) -> Folder:
        """Make a folder for a table of these columns."""
        return Folder(self._spark, scratch(self._spark), ddl)


class IdleWatch:
    """Says once that Spark has work and no task of it runs: then it waits for executors."""

    def __init__(self, tracker: StatusTracker, any_task_runs: Callable[[], bool]) -> None:
        self._tracker, self._any_task_runs = tracker, any_task_runs
        self._busy, self._said = time.monotonic(), False

    def look(self) -> None:
        """Look whether there is work, and whether any of it runs."""
        if not self._tracker.getActiveStageIds() or self._any_task_runs():
            self._busy = time.monotonic()
        elif not self._said and time.monotonic() - self._busy >= PATIENCE:
            logger.warning("Spark has started no task for %d s: waiting for executors", PATIENCE)
            self._said = True
