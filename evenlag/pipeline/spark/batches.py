"""How many rows Spark hands to Python at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext

BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"


@contextmanager
def filled_by_rows(context: SparkContext) -> Iterator[None]:
    """Let batches of rows for Python be full by their number alone, in jobs that this thread starts.

    Spark 4 would add up the bytes of all columns after every row, which takes longer than all else it does with it.
    """
    before = context.getLocalProperty(BATCH_BYTES)
    context.setLocalProperty(BATCH_BYTES, str(2**31 - 1))
    try:
        yield
    finally:
        context.setLocalProperty(BATCH_BYTES, before)  # type: ignore[arg-type]
