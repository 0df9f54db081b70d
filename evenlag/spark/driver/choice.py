"""The choice of the driver class for a session."""

from __future__ import annotations

from pyspark.sql import SparkSession

from evenlag.spark.driver.protocol import Driver, is_connect


def driver_of(spark: SparkSession) -> Driver:
    """Return the driver of a session."""
    # Imported on demand, because either kind of client may lack the packages of the other.
    if is_connect(spark):
        from evenlag.spark.driver.connect import ConnectDriver

        return ConnectDriver(spark)
    from evenlag.spark.driver.classic import ClassicDriver

    return ClassicDriver(spark)
