"""Which snapshots of a stream of rows are whole, which wait for more rows, and which rows come too late."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from evenlag.spark.driver.sources import json_table
from evenlag.spark.native.lag_columns import text_micros
from evenlag.spark.native.typed import Typed, text_number
from evenlag.tables import outputs
from evenlag.tables.columns import LINE
from evenlag.tables.outputs import KEY, REJECTS

ROWS = f"{LINE} STRING, at BIGINT"
"""A row per record: its text and its time in Kafka, microseconds since 1970."""

AUDITED = outputs.KEY_FIELDS.ddl
"""A row per group and snapshot that was audited."""

REMEMBERED = 20  # audited snapshots of a group: what is older than all of them comes too late, whatever it is

DUE, WAITS, LATE = "due", "waits", "late"
TOO_LATE = "came after its snapshot was audited"


def with_fates(
    rows: DataFrame, waiting: DataFrame, audited: DataFrame, *, newest: int | None, settle: float, flush: bool
) -> DataFrame:
    """Say of each row what becomes of it.

    The rows of a group in a snapshot are due together, when one of these holds:

    * they say how many there are (`snapshot_rows`), and so many different ones have come;
    * they do not say it, and a later snapshot of the group was there before the new rows came;
    * none of them has come for `settle` seconds, by Kafka's timestamps, while others have;
    * `flush` is set.

    A row of a snapshot that was audited is late. One without a time or a group waits for nobody and is due.

    Parameters
    ----------
    rows, waiting : DataFrame
        New rows, and those that waited (`ROWS`).
    audited : DataFrame
        The snapshots audited last (`AUDITED`).
    newest : int, optional
        Time in Kafka of the newest of the new rows.
    settle : float
        Seconds.
    flush : bool
        Nothing more will come.

    Returns
    -------
    DataFrame
        `ROWS`, with `snapshot_ts, group, fate, short` (due with fewer rows than they say).
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
    told = sf.col("came") >= sf.col("expected")
    overtaken = sf.col("expected").isNull() & (snapshot_order() < sf.col("seen"))
    settled = sf.lit(False) if newest is None else sf.col("at") < newest - int(settle * 1e6)
    whole = sf.lit(flush) | _true(told) | _true(overtaken) | _true(settled)
    fates = keys.select(
        *KEY,
        sf.when(late, LATE).when(whole, DUE).otherwise(WAITS).alias("fate"),
        _true(sf.col("came") < sf.col("expected")).alias("short"),
    )
    return every.join(fates, on=list(KEY), how="left").select(
        LINE, "at", *KEY, sf.coalesce("fate", sf.lit(DUE)).alias("fate"), _true(sf.col("short")).alias("short")
    )


def latest(audited: DataFrame) -> DataFrame:
    """Keep of each group the latest `REMEMBERED` of its audited snapshots (`AUDITED`)."""
    newest = Window.partitionBy("group").orderBy(snapshot_order().desc())
    return audited.withColumn("nth", sf.row_number().over(newest)).filter(f"nth <= {REMEMBERED}").select(*KEY)


def late_rejects(rows: DataFrame) -> DataFrame:
    """Give late rows as rejects (`outputs.REJECTS`)."""
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
    """What snapshots are ordered by: `tables.values.snapshot_order` of their `snapshot_ts`."""
    text = sf.col("snapshot_ts")
    micros = text_micros(text).cast("double")
    return sf.struct(sf.coalesce(text_number(text), micros, sf.lit(float("-inf"))), text)


def _true(condition: Column) -> Column:
    return sf.coalesce(condition, sf.lit(False))
