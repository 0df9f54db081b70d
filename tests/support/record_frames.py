"""Records of `__consumer_offsets` as DataFrames, by the columns of Spark's Kafka source."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from tests.support.group_records import Raw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def records_table(records: Iterable[Raw]) -> pa.Table:
    """Return records as an Arrow table."""
    rows = list(records)
    return pa.table(
        {
            "key": pa.array([each.key for each in rows], pa.binary()),
            "value": pa.array([each.value for each in rows], pa.binary()),
            "partition": pa.array([each.partition for each in rows], pa.int32()),
            "offset": pa.array([each.offset for each in rows], pa.int64()),
            "timestamp": pa.array([1000 * each.timestamp for each in rows], pa.timestamp("us", tz="UTC")),
        }
    )


def records_frame(spark: "SparkSession", records: Iterable[Raw]) -> "DataFrame":
    """Return records as a DataFrame."""
    return spark.createDataFrame(records_table(records))
