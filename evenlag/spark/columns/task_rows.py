"""Checked rows of both tables as the tasks on the executors take them (`schemas.ROWS`)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from evenlag.tables.copies import MEMBER_ROWS
from evenlag.tables.outputs import KEY


def task_rows(
    checked_offsets: DataFrame, checked_members: DataFrame | None = None, *, more: Sequence[str] = ()
) -> DataFrame:
    """Select what a task needs of the rows that have a group and a time, with `more` columns of the offsets."""
    rows = checked_offsets.filter("snapshot_ts is not null and `group` is not null").select(
        *KEY, "topic", "partition", "lag", "consumer_id", "clamped", sf.col("reason").isNotNull().alias("rejected"),
        *(name for name in ("mark", "predicted") if name in checked_offsets.columns), *more,
    )  # fmt: skip
    if checked_members is None:
        return rows
    usable = checked_members.filter("reason is null")
    members = usable.select(*KEY, "consumer_id", sf.struct(*MEMBER_ROWS.content).alias("member"))
    return rows.unionByName(members, allowMissingColumns=True)
