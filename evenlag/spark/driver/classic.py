"""A session whose driver is this process: asked through Spark's Java."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import unquote, urlsplit

from pyspark import InheritableThread, SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from evenlag.spark.driver.errors import blamed
from evenlag.spark.driver.protocol import BATCH_BYTES, COMMIT_EACH_TASK, UNLIMITED, Counters, Progress, described
from evenlag.spark.driver.settings import is_local
from evenlag.spark.driver.storage import Storage, literal
from evenlag.spark.worker.task import look_around

INTERVAL = 0.25  # seconds from one look at the counts to the next
PATIENCE = 5  # seconds without a task before it is said

logger = logging.getLogger("evenlag.pipeline")

_woken: set[str] = set()  # applications whose workers were


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
        return IdleWatch(self._context)

    def place(self, ddl: str) -> Folder:
        """Make a folder for a table of these columns."""
        return Folder(self._spark, scratch(self._spark), ddl)


class IdleWatch:
    """Says once that Spark has work and no task of it runs: then it waits for executors."""

    def __init__(self, context: SparkContext) -> None:
        self._tracker, self._busy, self._said = context.statusTracker(), time.monotonic(), False

    def look(self) -> None:
        """Look at the stages that are active."""
        stages = [self._tracker.getStageInfo(stage) for stage in self._tracker.getActiveStageIds()]
        if not stages or any(stage is None or stage.numActiveTasks for stage in stages):
            self._busy = time.monotonic()
        elif not self._said and time.monotonic() - self._busy >= PATIENCE:
            logger.warning("Spark has started no task for %d s: waiting for executors", PATIENCE)
            self._said = True


class Folder:
    """A new folder that executors write and everybody reads."""

    def __init__(self, spark: SparkSession, path: str, ddl: str) -> None:
        self._spark, self._path, self._ddl = spark, path, ddl
        local = is_local(str(spark.sparkContext.master))
        self.hint = "" if local else (
            f"{path}: what executors write here cannot be read; name a folder that they share with the driver: "
            "spark.sparkContext.setCheckpointDir(...)"
        )  # fmt: skip
        with blamed(path):
            storage = Storage(spark, path)
            storage.make(storage.path)
        url = urlsplit(storage.path)
        self.path = unquote(url.path) if url.scheme == "file" else None

    def write(self, df: DataFrame) -> None:
        """Write a table."""
        df.write.options(**COMMIT_EACH_TASK).mode("append").parquet(self._path)

    def read(self) -> DataFrame:
        """Give what was written."""
        return self._spark.read.schema(self._ddl).parquet(literal(self._path))


def scratch(spark: SparkSession) -> str:
    """Return a new folder that driver and executors share; what is in it is removed when the driver ends.

    On this machine one for temporary files; else below the checkpoint folder of the session, or where Spark's own file
    system has this user's files.

    Raises
    ------
    SourceError
        The cluster has no file system of its own, and no checkpoint folder was named.
    """
    context, name = spark.sparkContext, f"evenlag-{uuid.uuid4().hex[:12]}"
    if is_local(str(context.master)):
        folder = tempfile.mkdtemp(prefix="evenlag-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return Storage(spark, f"file://{folder}/{name}").path
    above = context.getCheckpointDir() or Storage.home(spark)
    with blamed(above):
        storage = Storage(spark, f"{above.rstrip('/')}/{name}")
        storage.make(storage.path)
        storage.remove_at_exit()
    return storage.path
