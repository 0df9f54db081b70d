"""The lag rule in native Spark columns: `evenlag.model.lag.partition_lag`, which a test holds it to."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from evenlag.model.lag import MAX_LAG
from evenlag.spark.defaults import AUTO_OFFSET_RESET


def with_lags(df: DataFrame, auto_offset_reset: str = AUTO_OFFSET_RESET) -> DataFrame:
    """Work out the lag of every row.

    Parameters
    ----------
    df : DataFrame
        With BIGINT columns `log_start_offset, log_end_offset, current_offset, lag` and a text `auto_offset_reset`,
        each null where unknown. Other columns pass through.
    auto_offset_reset : str
        The rule where the column says nothing: `latest`, or anything else for the whole log.

    Returns
    -------
    DataFrame
        The same rows with `lag` (messages, null where there is a reason), `clamped` (`beyond_end`, `before_start` or
        null) and `reason`, why the lag cannot be known (null where it can).
    """
    start, end, current = sf.col("log_start_offset"), sf.col("log_end_offset"), sf.col("current_offset")
    given = sf.col("lag")
    reset = sf.coalesce("auto_offset_reset", sf.lit(auto_offset_reset))
    latest = reset.rlike(r"\A(?i:latest)\z")  # Spark's `lower` takes 2 s to learn the letters of all languages
    committed = end.isNotNull() & current.isNotNull()
    unknown = ~committed & given.isNull()  # then the reset rule decides
    clamped = sf.when(current > end, "beyond_end").when(committed & (current < start), "before_start")
    lag = (
        sf.when(clamped == "beyond_end", sf.lit(0))
        .when(clamped == "before_start", sf.try_subtract(end, start))
        .when(committed, sf.try_subtract(end, current))
        .when(given.isNotNull(), given)
        .when(latest, sf.lit(0))
        .otherwise(sf.try_subtract(end, start))
    ).cast("bigint")
    reason = first_reason(
        [
            *((f"{name} is negative", sf.col(name) < 0) for name in ("log_start_offset", "log_end_offset")),
            ("current_offset is negative", current < 0),
            ("log_end_offset is below log_start_offset", end < start),
            ("lag is negative", ~committed & (given < 0)),
            ("neither log_end_offset nor lag is known", unknown & end.isNull()),
            (
                "log_start_offset is missing, and auto_offset_reset needs it",
                unknown & start.isNull() & ~latest,
            ),
            ("lag is above 2^62", lag > MAX_LAG),
        ]
    )
    named = {"lag": sf.when(reason.isNull(), lag), "clamped": sf.when(reason.isNull(), clamped), "reason": reason}
    return df.select(*(name for name in df.columns if name not in named), *(c.alias(n) for n, c in named.items()))


def first_reason(rules: Sequence[tuple[str, Column]]) -> Column:
    """Return the first reason whose condition holds, or null."""
    return sf.coalesce(*(sf.when(condition, sf.lit(reason)) for reason, condition in rules))
