"""Tables that are computed once until a deadline, written as tasks end, and only read afterwards.

A cached DataFrame keeps its lineage: if an executor is lost, Spark recomputes it, and a search with a time limit then
finds another plan. Therefore the output of each task is written to files as soon as the task ends (version 2 of
Hadoop's commit algorithm), and the rows written by the deadline are the result.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any, Generic, TypeVar

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession

from evenlag.spark.driver.choice import driver_of
from evenlag.spark.driver.protocol import Driver, Place, described

CANCELLED = 0.5  # seconds to wait for cancelled jobs
LOOK = 0.25  # seconds between checks of a running job, and between cancellations

T = TypeVar("T")


class Running(Generic[T]):
    """Work with Spark in a thread of its own, which inherits the properties of jobs from this one.

    The thread does not keep the driver from ending.
    """

    def __init__(self, spark: SparkSession, work: Callable[[], T]) -> None:
        self._driver, self._tag = driver_of(spark), f"evenlag-{uuid.uuid4().hex}"
        self._future: Future[T] = Future()

        def run() -> None:
            try:
                self._driver.tag(self._tag)
                self._future.set_result(work())
            except BaseException as error:
                self._future.set_exception(error)

        Thread(target=inheritable_thread_target(spark)(run), name="evenlag", daemon=True).start()

    def ends(self, until: float | None) -> bool:
        """Wait until the work has ended, at most until a time (epoch), and return whether it has."""
        idle = self._driver.watch()
        while not _ended(self._future, until):
            idle.look()
            if until is not None and time.time() >= until:
                return False
        return True

    def result(self) -> T:
        """Return the result of the work that has ended, or raise its error."""
        return self._future.result()

    def cancel(self) -> bool:
        """Cancel the jobs of the work, and return whether it had succeeded by then."""
        if not self._future.done():
            Thread(
                target=_cancel, args=(self._driver, self._tag, self._future), name="evenlag-cancel", daemon=True
            ).start()
        wait([self._future], CANCELLED)
        return self._future.done() and self._future.exception() is None


def within(spark: SparkSession, until: float | None, work: Callable[[], T]) -> T | None:
    """Return the result of some work with Spark; None if its jobs had to be cancelled at `until` (epoch)."""
    if until is not None and time.time() >= until:
        return None
    running = Running(spark, work)
    try:
        ended = running.ends(until)
    except BaseException:
        running.cancel()
        raise
    return running.result() if ended or running.cancel() else None


def at_once(spark: SparkSession, works: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Return the results of several pieces of work with Spark, done at once, by the descriptions of their jobs."""

    def named(what: str, work: Callable[[], Any]) -> Any:
        with described(spark, what):
            return work()

    running = {what: Running(spark, partial(named, what, work)) for what, work in works.items()}
    try:
        for each in running.values():
            each.ends(None)
            each.result()
    except BaseException:
        for each in running.values():
            each.cancel()
        raise
    return {what: each.result() for what, each in running.items()}


def _cancel(driver: Driver, tag: str, future: Future[Any]) -> None:
    """Cancel the jobs with a tag until their work has ended, because a job may begin after others were cancelled."""
    with suppress(Exception):  # the session was stopped, and with it all jobs
        driver.cancel(tag)
        while not _ended(future):
            driver.cancel(tag)


def _ended(future: Future[Any], until: float | None = None) -> bool:
    """Wait a little, at most until a time (epoch), and return whether the future has ended."""
    seconds = LOOK if until is None else min(LOOK, max(until - time.time(), 0))
    return bool(wait([future], seconds).done)


def kept(df: DataFrame, place: Place) -> DataFrame:
    """Compute a table once, write it to a place (`Driver.place`), and return what was written."""
    within(df.sparkSession, None, partial(place.write, df))
    return place.read()
