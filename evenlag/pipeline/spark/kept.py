"""A table that is worked out once: written while tasks end, by a deadline, and only read from then on.

A cached DataFrame keeps its lineage: where an executor is lost Spark works it out again, and a search that the clock
ends gives another plan then. So what tasks give goes to files at once, each task's as soon as it ends (version 2 of
Hadoop's commit algorithm), and what is there at the deadline counts.
"""

from __future__ import annotations

import atexit
import logging
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from pyspark import SparkContext, inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession

from evenlag.pipeline.spark.settings import is_local
from evenlag.pipeline.spark.storage import Storage, blamed

COMMIT_EACH_TASK = {"mapreduce.fileoutputcommitter.algorithm.version": "2"}
CANCELLED = 2.0  # seconds that Spark gets to end what it was told to cancel
LOOK = 0.25  # seconds from one look at a running job to the next
PATIENCE = 5  # seconds without a task before it is said

logger = logging.getLogger("evenlag.pipeline")

T = TypeVar("T")


def within(spark: SparkSession, until: float | None, work: Callable[[], T]) -> T | None:
    """Return what some work with Spark gives; None where its jobs had to be cancelled at a time (epoch)."""
    if until is not None and time.time() >= until:
        return None
    context, tag = spark.sparkContext, f"evenlag-{uuid.uuid4().hex}"

    def tagged() -> T:
        context.addJobTag(tag)
        return work()

    pool = ThreadPoolExecutor(1, thread_name_prefix="evenlag")
    future: Future[T] = pool.submit(inheritable_thread_target(spark)(tagged))
    pool.shutdown(wait=False)
    idle = IdleWatch(context)
    while not _ended(future):
        idle.look()
        if until is not None and time.time() >= until:
            break
    else:
        return future.result()
    given_up = time.time() + CANCELLED
    while time.time() < given_up:
        context.cancelJobsWithTag(tag)  # again, as a job may begin after the others were cancelled
        if _ended(future):
            break
    if future.done() and future.exception() is None:
        return future.result()
    return None


def _ended(future: Future[Any]) -> bool:
    """Wait a little, and say whether it has ended."""
    return bool(wait([future], LOOK).done)


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


def kept(df: DataFrame, folder: str, ddl: str, until: float | None = None) -> tuple[DataFrame, bool]:
    """Write a table to a new folder, and give what is there at a time, and whether it is all.

    Parameters
    ----------
    df : DataFrame
    folder : str
        Where executors write and everybody reads; it is made.
    ddl : str
        Its columns.
    until : float or None
        Seconds since the epoch.
    """
    spark = df.sparkSession
    with blamed(folder):
        Storage(spark, folder).make(folder)

    def write() -> bool:
        df.write.options(**COMMIT_EACH_TASK).mode("append").parquet(folder)
        return True

    whole = within(spark, until, write) is not None
    return spark.read.schema(ddl).parquet(folder), whole


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
