"""The parts of a Spark session that evenlag needs next to DataFrames: slots, progress, a place to keep a table.

A session with a driver of its own answers through its Java (`classic.py`), a session of Spark Connect by other means
(`connect.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from evenlag.errors import SourceError

if TYPE_CHECKING:  # the command imports this where Spark is not installed
    from pyspark.sql import DataFrame, SparkSession

Progress = Callable[[int, int, int], None]
"""Called with the groups done, their total, and how many of them failed."""

Counters = tuple[Any, Any]
"""Where tasks count the groups that are done, and those that failed (`worker.Counter`), or None twice."""

BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
UNLIMITED = str(2**31 - 1)
PROPERTY = "spark.job.description"
COMMIT_EACH_TASK = {"mapreduce.fileoutputcommitter.algorithm.version": "2"}


class Place(Protocol):
    """Where a table is kept for as long as the driver runs; what of it is there can be read at any time."""

    hint: str
    """What to do if the driver cannot read what executors write; empty where that cannot be."""

    path: str | None
    """Of a folder on disks, which executors must share; None where the table is in a file system of Spark's own."""

    def write(self, df: DataFrame) -> None:
        """Write a table: that of a task as soon as the task ends, if what keeps the table can do that."""

    def read(self) -> DataFrame:
        """Give what was written."""


class Watch(Protocol):
    """Looks at what runs."""

    def look(self) -> None:
        """Look once."""


class Driver(Protocol):
    """What is asked of a session."""

    where: str
    """Where its work is done."""

    def prepare(self) -> None:
        """Get the workers ready, in the background."""

    def is_cold(self) -> bool:
        """Return whether this is the first call, a slow one, in a session whose tasks share this driver's Java."""

    def python(self) -> str | None:
        """Return the Python that tasks run in; None where that is not known here."""

    def slots(self) -> int:
        """Return how many tasks run at once: on the executors there are, or on as many as may come."""

    def task_cpus(self) -> int:
        """Return the processors that a task gets."""

    def batches_by_rows(self) -> AbstractContextManager[None]:
        """Let batches of rows for Python be full by their number alone, in jobs that this thread starts.

        Spark 4 would add up the bytes of all columns after every row, which takes longer than all else it does with it.
        """

    def reporting(self, progress: Progress | None, total: int, tasks: int, /) -> AbstractContextManager[Counters]:
        """Report while a job of so many tasks runs, whenever the count has changed; its end is `report_end`'s."""

    def tag(self, tag: str) -> None:
        """Give a tag to all jobs that this thread starts."""

    def cancel(self, tag: str) -> None:
        """Cancel the jobs with a tag."""

    def watch(self) -> Watch:
        """Give what says that Spark waits for executors."""

    def place(self, ddl: str) -> Place:
        """Make a place for a table of these columns."""


def report_end(progress: Progress | None, total: int, counters: Counters) -> None:
    """Report that a job has done all of its groups."""
    if progress is not None:
        failed = counters[1]
        progress(total, total, 0 if failed is None else failed.value)


def is_connect(spark: SparkSession) -> bool:
    """Whether a session is one of Spark Connect: its driver is another process, and its Java out of reach."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def needs_java(spark: SparkSession, what: str, instead: str) -> None:
    """Refuse what Spark Connect cannot do.

    Parameters
    ----------
    spark : SparkSession
    what : str
        What was called, or is to be read or written.
    instead : str
        What to do with such a session.

    Raises
    ------
    SourceError
        The session is one of Spark Connect.
    """
    if is_connect(spark):
        raise SourceError(f"{what} needs the driver's Java, which a client of Spark Connect lacks; {instead}")


@contextmanager
def described(spark: SparkSession, what: str) -> Iterator[None]:
    """Name the jobs that this thread starts, and threads that inherit from it: `evenlag: writing plans`."""
    if is_connect(spark):  # whose server names jobs itself
        yield
        return
    context = spark.sparkContext
    before = context.getLocalProperty(PROPERTY)
    context.setLocalProperty(PROPERTY, f"evenlag: {what}")
    try:
        yield
    finally:
        context.setLocalProperty(PROPERTY, before)  # type: ignore[arg-type]
