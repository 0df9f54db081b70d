"""A table that is worked out once: written while tasks end, by a deadline, and only read from then on.

A cached DataFrame keeps its lineage: where an executor is lost Spark works it out again, and a search that the clock
ends gives another plan then. So what tasks give goes to files at once, each task's as soon as it ends (version 2 of
Hadoop's commit algorithm), and what is there at the deadline counts.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, TypeVar

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession

from evenlag.spark.driver.choice import driver_of
from evenlag.spark.driver.protocol import Place

CANCELLED = 0.5  # seconds that Spark gets to end what it was told to cancel
LOOK = 0.25  # seconds from one look at a running job to the next

T = TypeVar("T")


def within(spark: SparkSession, until: float | None, work: Callable[[], T]) -> T | None:
    """Return what some work with Spark gives; None where its jobs had to be cancelled at a time (epoch)."""
    if until is not None and time.time() >= until:
        return None
    driver, tag = driver_of(spark), f"evenlag-{uuid.uuid4().hex}"

    def tagged() -> T:
        driver.tag(tag)
        return work()

    pool = ThreadPoolExecutor(1, thread_name_prefix="evenlag")
    future: Future[T] = pool.submit(inheritable_thread_target(spark)(tagged))
    pool.shutdown(wait=False)
    idle = driver.watch()
    while not _ended(future, until):
        idle.look()
        if until is not None and time.time() >= until:
            break
    else:
        return future.result()
    given_up = time.time() + CANCELLED
    while time.time() < given_up:
        driver.cancel(tag)  # again, as a job may begin after the others were cancelled
        if _ended(future):
            break
    if future.done() and future.exception() is None:
        return future.result()
    return None


def _ended(future: Future[Any], until: float | None = None) -> bool:
    """Wait a little, at most until a time (epoch), and say whether it has ended."""
    seconds = LOOK if until is None else min(LOOK, max(until - time.time(), 0))
    return bool(wait([future], seconds).done)


@dataclass(frozen=True)
class Kept:
    """A table that was worked out once.

    Attributes
    ----------
    table : DataFrame
        It only reads.
    whole : bool
        Whether it was all there when the time was up.
    hint : str
        What to do if rows are missing all the same; empty where that cannot be.
    """

    table: DataFrame
    whole: bool
    hint: str


def kept(df: DataFrame, place: Place, until: float | None = None) -> Kept:
    """Write a table where all can read it, and give what is there at a time.

    Parameters
    ----------
    df : DataFrame
    place : Place
        Where to (`driver.Driver.place`).
    until : float or None
        Seconds since the epoch.
    """

    def write() -> bool:
        place.write(df)
        return True

    whole = within(df.sparkSession, until, write) is not None
    return Kept(place.read(), whole, place.hint)
