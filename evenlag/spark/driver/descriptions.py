"""What Spark's pages call the jobs of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from evenlag.spark.driver.protocol import is_connect

PROPERTY = "spark.job.description"


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
