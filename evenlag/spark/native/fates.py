"""Rules for a stream of rows: which snapshots are complete, which wait for more rows, and which rows are late."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from evenlag.spark.driver.sources import json_table
from evenlag.spark.native.typed import Typed, text_micros, text_number
from evenlag.tables import outputs
from evenlag.tables.columns import LINE
from evenlag.tables.outputs import KEY, REJECTS

ROWS = f"{LINE} STRING, at BIGINT"
"""One row per record, with its text and its Kafka timestamp in microseconds since 1970."""

AUDITED = outputs.KEY_FIELDS.ddl
"""One row per audited group and snapshot."""

REMEMBERED = 20  # audited snapshots remembered for each group; rows older than all of these are late

DUE, WAITS, LATE = "due", "waits", "late"
TOO_LATE = "arrived after its snapshot was audited"


def with_fates(
    rows: DataFrame, waiting: DataFrame, audited: DataFrame, *, newest: int | None, settle: float, flush: bool
) -> DataFrame:
    """Return the rows with their fate: due, waiting or late.

    The rows of a group in a snapshot become due together, as soon as one of these holds:

    * they state their number (`snapshot_rows`), and that many different rows have arrived;
    * they do not state it, and a later snapshot of the group had arrived before the new rows;
    * none of them has arrived for `settle` seconds by Kafka's timestamps, but others have;
    * `flush` is set.

    A row of a snapshot that was already audited is late. A row without a time or a group is due immediately.

    Parameters
    ----------
    rows, waiting : DataFrame
        New rows, and waiting rows (`ROWS`).
    audited : DataFrame
        The latest audited snapshots (`AUDITED`).
    newest : int, optional
        Kafka timestamp of the newest of the new rows.
    settle : float
        Seconds.
    flush : bool
        True if no more rows will arrive.

    Returns
    -------
    DataFrame
        `ROWS`, with `snapshot_ts, group, fate, short` (true if due with fewer rows than stated).
    """
    new, old = (_keyed(df).withColumn("waited", sf.lit(waited)) for df, waited in ((rows, False), (waiting, True)))
    every = new.unionAll(old)
    group = Window.partitionBy("group")
    history = audited.groupBy("group").agg(
        sf.collect_set("snapshot_ts").alias("done"),
        sf.min(snapshot_order()).alias("first"),
        sf.max(snapshot_order()).alias("last"),
        sf.count("*").alias("remembered"),
    )
    keys = (
        every.dropna(subset=list(KEY))
        .groupBy(*KEY)
        .agg(
            sf.count_distinct(LINE).alias("came"),
            sf.max("expected").alias("expected"),
            sf.max("at").alias("at"),
            sf.bool_or("waited").alias("waited"),
        )
        .join(history, on="group", how="left")
        .withColumn("seen", sf.greatest(sf.max(sf.when(sf.col("waited"), snapshot_order())).over(group), "last"))
    )
    forgotten = (sf.col("remembered") >= REMEMBERED) & (snapshot_order() < sf.col("first"))
    late = ~sf.col("waited") & (_true(sf.array_contains("done", sf.col("snapshot_ts"))) | _true(forgotten))
    complete = sf.col("came") >= sf.col("expected")
    overtaken = sf.col("expected").isNull() & (snapshot_order() < sf.col("seen"))
    settled = sf.lit(False) if newest is None else sf.col("at") < newest - int(settle * 1e6)
    whole = sf.lit(flush) | _true(complete) | _true(overtaken) | _true(settled)
    fates = keys.select(
        *KEY,
        sf.when(late, LATE).when(whole, DUE).otherwise(WAITS).alias("fate"),
        _true(sf.col("came") < sf.col("expected")).alias("short"),
    )
    return every.join(fates, on=list(KEY), how="left").select(
        LINE, "at", *KEY, sf.coalesce("fate", sf.lit(DUE)).alias("fate"), _true(sf.col("short")).alias("short")
    )


def latest(audited: DataFrame) -> DataFrame:
    """Return the latest `REMEMBERED` audited snapshots of each group (`AUDITED`)."""
    newest = Window.partitionBy("group").orderBy(snapshot_order().desc())
    return audited.withColumn("nth", sf.row_number().over(newest)).filter(f"nth <= {REMEMBERED}").select(*KEY)


def late_rejects(rows: DataFrame) -> DataFrame:
    """Return late rows as rejects (`outputs.REJECTS`)."""
    table = json_table(rows.select(LINE), "offsets")
    read = Typed(table)
    named = {name: read.text(name) for name in ("snapshot_ts", "group", "topic", "consumer_id")} | {
        "source": sf.lit("offsets"),
        "partition": read.whole("partition").try_cast("int"),
        "reason": sf.lit(TOO_LATE),
        "row": sf.col(LINE),
    }
    return table.select(*(named[name].alias(name) for name in REJECTS.names))


def _keyed(rows: DataFrame) -> DataFrame:
    table = json_table(rows, "offsets")
    read = Typed(table)
    expected = sf.get_json_object(LINE, "$.snapshot_rows").try_cast("bigint")
    return table.select(
        LINE, "at", *(read.text(name).alias(name) for name in KEY), sf.when(expected > 0, expected).alias("expected")
    )


def snapshot_order() -> Column:
    """Return the sort key of `snapshot_ts`, as `tables.typed_values.snapshot_order` defines it."""
    text = sf.col("snapshot_ts")
    micros = text_micros("snapshot_ts").cast("double")
    return sf.struct(sf.coalesce(text_number(text), micros, sf.lit(float("-inf"))), text)


def _true(condition: Column) -> Column:
    return sf.coalesce(condition, sf.lit(False))
