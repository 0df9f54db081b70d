"""Choose the driver that answers for a session."""

from __future__ import annotations

from pyspark.sql import SparkSession

from evenlag.spark.driver.protocol import Driver, is_connect


def driver_of(spark: SparkSession) -> Driver:
    """Give what answers for a session."""
    # Imported when asked for: a client of Spark Connect need not have what the other needs, nor the other way round.
    if is_connect(spark):
        from evenlag.spark.driver.connect import ConnectDriver

        return ConnectDriver(spark)
    from evenlag.spark.driver.classic import ClassicDriver

    return ClassicDriver(spark)
