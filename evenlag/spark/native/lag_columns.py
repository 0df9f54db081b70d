"""Lags, produce rates and predicted lags in native Spark columns.

The rules are those of `evenlag.model.lag.partition_lag` and `evenlag.model.rates`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window, types
from pyspark.sql import functions as sf

from evenlag.model.lag import MAX_LAG
from evenlag.model.rates import SECOND, TIME, horizon_micros
from evenlag.tables.columns import LOG_ONLY
from evenlag.tables.defaults import AUTO_OFFSET_RESET


def with_lags(df: DataFrame, auto_offset_reset: str = AUTO_OFFSET_RESET) -> DataFrame:
    """Compute the lag of every row.

    Parameters
    ----------
    df : DataFrame
        Rows with BIGINT columns `log_start_offset, log_end_offset, current_offset, lag` and a STRING column
        `auto_offset_reset`, each null if unknown. Rows with a true `log_only`, if there is such a column, have no lag
        and need none. Other columns are kept.
    auto_offset_reset : str
        The rule for rows that name none: `latest`, or any other value for the whole log.

    Returns
    -------
    DataFrame
        The same rows with `lag` (messages; null if there is a reason), `clamped` (`beyond_end`, `before_start` or null)
        and `reason`, why the lag is unknown (null if it is known).
    """
    if LOG_ONLY in df.columns:
        return _with_lags(df, auto_offset_reset, sf.coalesce(LOG_ONLY, sf.lit(False)))
    return _with_lags(df, auto_offset_reset)


def _with_lags(df: DataFrame, auto_offset_reset: str, log_only: Column | None = None) -> DataFrame:
    start, end, current = sf.col("log_start_offset"), sf.col("log_end_offset"), sf.col("current_offset")
    given = sf.col("lag")
    reset = sf.coalesce("auto_offset_reset", sf.lit(auto_offset_reset))
    latest = reset.rlike(r"\A(?i:latest)\z")  # Spark's first `lower` takes 2 s
    committed = end.isNotNull() & current.isNotNull()
    unknown = ~committed & given.isNull()  # the reset rule applies
    clamped = sf.when(current > end, "beyond_end").when(committed & (current < start), "before_start")
    lag = (
        sf.when(clamped == "beyond_end", sf.lit(0))
        .when(clamped == "before_start", sf.try_subtract(end, start))
        .when(committed, sf.try_subtract(end, current))
        .when(given.isNotNull(), given)
        .when(latest, sf.lit(0))
        .otherwise(sf.try_subtract(end, start))
    ).cast("bigint")
    past: list[tuple[str, Column]] = []
    if log_only is not None:
        past.append(("log_end_offset is missing in a log_only row", log_only & end.isNull()))
        lag, clamped, unknown = (sf.when(~log_only, each) for each in (lag, clamped, unknown))
        current, given = (sf.when(~log_only, each) for each in (current, given))
    reason = first_reason(
        [
            *past,
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


_EXACT = "decimal(19,0)"  # a product of two of these fits Spark's 38 digits
_ELAPSED = "_elapsed"


def with_rates(df: DataFrame) -> DataFrame:
    """Add the rates since the latest earlier row of the same group, topic and partition.

    Parameters
    ----------
    df : DataFrame
        Rows with `snapshot_ts` (a timestamp, or text in ISO 8601), `group`, `topic`, `partition`, and `log_end_offset`
        and `current_offset` as BIGINT, null if unknown. Rows with a `reason`, if there is such a column, are skipped.
        Rows with a true `log_only` tell log ends alone, so the row after one has no `consumed`.

    Returns
    -------
    DataFrame
        The same rows with `elapsed` (seconds since the earlier row; null without one), `produced` and `consumed`
        (messages; null if unknown or if the offset decreased), `produce_rate` and `consume_rate` (messages per second).
    """
    rates = {f"{verb}_rate": sf.col(f"{verb}d") * sf.lit(1e6) / sf.col(_ELAPSED) for verb in ("produce", "consume")}
    return _compared(df).withColumns({"elapsed": sf.col(_ELAPSED) / SECOND} | rates).drop(_ELAPSED)


def with_predicted_lags(df: DataFrame, horizon: float | str) -> DataFrame:
    """Replace every partition's lag by the lag predicted after `horizon` if nothing is read.

    Parameters
    ----------
    df : DataFrame
        Rows as for `with_rates`, with `lag` as BIGINT.
    horizon : float or str
        Seconds, or text such as "10m".

    Returns
    -------
    DataFrame
        The same rows with `lag` replaced by `lag` + produce rate · horizon, rounded up and at most 2**62; and
        `predicted`, false if the rate is unknown and the lag unchanged.

    Raises
    ------
    InvalidProblemError
        The horizon is invalid.
    """
    ahead = sf.lit(horizon_micros(horizon)).cast(_EXACT)
    grown = sf.col("produced").cast(_EXACT) * ahead
    elapsed, most = sf.col(_ELAPSED).cast(_EXACT), sf.lit(MAX_LAG)
    up = sf.call_function("div", grown + elapsed - sf.lit(1).cast(_EXACT), elapsed)
    room = most - sf.col("lag")
    lag = sf.when(grown > room.cast(_EXACT) * elapsed, most).otherwise(sf.col("lag") + up)
    known = sf.col("produced").isNotNull()
    predicted = _compared(df).withColumns({"lag": sf.when(known, lag).otherwise(sf.col("lag")), "predicted": known})
    return predicted.drop(_ELAPSED, "produced", "consumed")


def _compared(df: DataFrame) -> DataFrame:
    """Add `_elapsed` (microseconds, null or > 0), `produced` and `consumed`."""
    usable = sf.col("reason").isNull() if "reason" in df.columns else sf.lit(True)
    micros = _micros(df)
    timed = df.withColumn(
        "_now", sf.when(usable, sf.struct(micros.alias("micros"), "log_end_offset", "current_offset"))
    )
    partition = Window.partitionBy("group", "topic", "partition").orderBy(sf.col("_now.micros"))
    earlier = sf.max("_now").over(partition.rangeBetween(Window.unboundedPreceding, -1))
    elapsed = sf.col("_now.micros") - sf.col("_before.micros")
    end_before, commit_before = sf.col("_before.log_end_offset"), sf.col("_before.current_offset")
    made_again = sf.coalesce(sf.col("log_end_offset") < end_before, sf.lit(False))
    produced = _grown(end_before, sf.col("log_end_offset"))
    consumed = sf.when(~made_again, _grown(commit_before, sf.col("current_offset")))
    compared = timed.withColumn("_before", earlier).withColumns(
        {
            _ELAPSED: elapsed,
            "produced": sf.when(elapsed > 0, produced),
            "consumed": sf.when(elapsed > 0, consumed),
        }
    )
    return compared.drop("_now", "_before")


def _micros(df: DataFrame) -> Column:
    if isinstance(df.schema["snapshot_ts"].dataType, types.TimestampType):
        return sf.unix_micros("snapshot_ts")
    return text_micros(sf.col("snapshot_ts").cast("string"))


def text_micros(text: Column) -> Column:
    """Return `model.rates.time_micros` of a column of text, independent of the session's time zone."""
    date, *parts = (sf.regexp_extract(text, TIME, n) for n in range(1, 5))
    others = (
        sf.when(part == "", other).otherwise(part) for part, other in zip(parts, ("00:00", ":00", "Z"), strict=True)
    )
    whole = sf.concat(date, sf.lit("T"), *others)
    return sf.unix_micros(
        sf.when(date != "", whole).try_cast("timestamp_ltz")
    )  # independent of the session's default timestamp type


def _grown(before: Column, now: Column) -> Column:
    return sf.when(now >= before, now - before)
