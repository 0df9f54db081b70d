"""Copies of a row in native Spark columns: the rule of `tables.copies`, for the table of rejects."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from evenlag.spark.columns.typed import row_text
from evenlag.tables.copies import CopyRule


def without_copies(typed: DataFrame, rule: CopyRule) -> DataFrame:
    """Give copies, and rows that contradict one another, their `reason`.

    Parameters
    ----------
    typed : DataFrame
        Typed rows with `mark`, `reason` and `row` (`Typed.select`). Those that have a reason are copies of nothing.
    rule : CopyRule

    Returns
    -------
    DataFrame
        The same rows without `mark`; `row` is text, and null where there is no reason.
    """
    # Which of the copies stays must not depend on their order: the one with the least hash.
    copies = Window.partitionBy(*rule.key, "reason").orderBy("mark")
    all_copies = copies.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    content = sf.struct(*rule.content)
    differ = ~sf.min(content).over(all_copies).eqNullSafe(sf.max(content).over(all_copies))
    reason = sf.coalesce(
        "reason",
        sf.when(differ, sf.lit(rule.differ)),
        sf.when(sf.row_number().over(copies) > 1, sf.lit(rule.again)),
    )
    # By group and snapshot, so that what follows finds them together.
    judged = typed.repartition("snapshot_ts", "group").withColumn("reason", reason).drop("mark")
    return judged.withColumn("row", sf.when(sf.col("reason").isNotNull(), row_text(judged)))
