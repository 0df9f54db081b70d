"""Interface of the features of a Spark session other than DataFrames: slots, progress, temporary tables.

`classic.py` implements it through the Java of the driver in this process, `connect.py` for sessions of Spark Connect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from evenlag.errors import SourceError

if TYPE_CHECKING:  # the command imports this where Spark is not installed
    from pyspark.sql import DataFrame, SparkSession

Progress = Callable[[int, int, int], None]
"""Called with the number of groups done, their total, and the number that failed."""

Counters = tuple[Any, Any]
"""Counters of the groups that are done and of those that failed (`worker.Counter`), or None for both."""

BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
UNLIMITED = str(2**31 - 1)
PROPERTY = "spark.job.description"
COMMIT_EACH_TASK = {"mapreduce.fileoutputcommitter.algorithm.version": "2"}


class Place(Protocol):
    """Interface of a place that keeps a table while the driver runs, readable even when partially written."""

    hint: str
    """Advice for the case that the driver cannot read what executors write; empty if that cannot happen."""

    path: str | None
    """Path of a folder on disk, which executors must share; None for a table in Spark's own file system."""

    def write(self, df: DataFrame) -> None:
        """Write a table; if the place supports it, each task's rows as soon as the task ends."""

    def read(self) -> DataFrame:
        """Return the table as far as it is written."""


class Watch:
    """A watch over running jobs; this one sees none."""

    def look(self) -> None:
        """Check the jobs once."""


class Driver(Protocol):
    """Interface of a session's driver. Its defaults are for a server, which starts and shows nothing to its clients."""

    where: str
    """The session's master."""

    def prepare(self) -> None:
        """Start Python workers in the background."""

    def is_cold(self) -> bool:
        """Return whether this is the first, slow call in a session whose tasks share this driver's Java."""
        return False

    def is_small(self, _df: DataFrame, /) -> bool:
        """Return whether a table surely fits into a task for each slot, by Spark's estimate before any job."""
        return False

    def python(self) -> str | None:
        """Return the Python in which tasks run; None if unknown."""
        return None

    def slots(self) -> int:
        """Return the number of tasks that run concurrently, on existing executors or on as many as may be started."""

    def task_cpus(self) -> int:
        """Return the number of CPUs of a task."""

    def batches_by_rows(self) -> AbstractContextManager[None]:
        """Limit Python batches by their number of rows alone, in jobs started by this thread.

        Otherwise Spark 4 adds up the bytes of all columns after every row, which takes most of its time.
        """

    def reporting(self, progress: Progress | None, total: int, tasks: int, /) -> AbstractContextManager[Counters]:
        """Report the progress of a job with `tasks` tasks whenever the count changes; `report_end` reports its end."""

    def tag(self, tag: str) -> None:
        """Add a tag to all jobs that this thread starts."""

    def cancel(self, tag: str) -> None:
        """Cancel the jobs with a tag."""

    def watch(self) -> Watch:
        """Return a watch that warns if Spark waits for executors."""
        return Watch()

    def place(self, ddl: str) -> Place:
        """Create a place for a table with these columns."""


def report_end(progress: Progress | None, total: int, counters: Counters) -> None:
    """Report that all groups of a job are done."""
    if progress is not None:
        failed = counters[1]
        progress(total, total, 0 if failed is None else failed.value)


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session is one of Spark Connect, whose driver and Java are in another process."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def needs_java(spark: SparkSession, what: str, instead: str) -> None:
    """Raise an error if a session is one of Spark Connect.

    Parameters
    ----------
    what : str
        The call, or the path to read or write, for the message.
    instead : str
        Advice for such a session.

    Raises
    ------
    SourceError
        The session is one of Spark Connect.
    """
    if is_connect(spark):
        raise SourceError(f"{what} needs the driver's Java, which a client of Spark Connect lacks; {instead}")


@contextmanager
def naming_older_server(spark: SparkSession) -> Iterator[None]:
    """Explain Spark errors caused by a Spark Connect server that is older than this client.

    Most calls work with an older server. The others need features that it lacks, and fail with a Java stack trace.

    Raises
    ------
    SourceError
        Spark raised an error, and the server is older than the client. The message names both versions.
    """
    from pyspark import __version__ as client
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        server = _version_of_server(spark)
        if server is None or _line(server) >= _line(client):
            raise
        cause = next(iter(str(error).splitlines()), "")
        raise SourceError(
            f"the server of Spark Connect has Spark {server}, but this client is pyspark {client}, which is newer: "
            f"install pyspark-client=={server} here, or a newer server ({cause})"
        ) from error


def _version_of_server(spark: SparkSession) -> str | None:
    """Return the Spark version of a server of Spark Connect; None without one, or if it does not answer."""
    try:
        return spark.version if is_connect(spark) else None
    except Exception:  # it has gone, which the error says
        return None


def _line(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version, which name a line of releases."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


@contextmanager
def described(spark: SparkSession, what: str) -> Iterator[None]:
    """Set the description of jobs started by this thread and threads that inherit from it: `evenlag: writing plans`."""
    if is_connect(spark):  # the server sets descriptions itself
        yield
        return
    context = spark.sparkContext
    before = context.getLocalProperty(PROPERTY)
    context.setLocalProperty(PROPERTY, f"evenlag: {what}")
    try:
        yield
    finally:
        context.setLocalProperty(PROPERTY, before)  # type: ignore[arg-type]
