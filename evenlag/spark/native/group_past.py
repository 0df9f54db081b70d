"""Figures of each group over its history, in native Spark columns: costs of rebalances, and rates of members."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from evenlag.compare.history import BACKLOG
from evenlag.spark.native.history_tables import PARTITION, iso_column, owners
from evenlag.tables.outputs import CAUSES, PAST_GROUPS

LEAST = 30_000  # shortest time for a rate, in milliseconds
HIGH = 0.99  # quantile of a member's rates: a commit that skips messages must not count
HOUR = 3600.0
_DIGITS = 3  # significant digits of rates; fewer distinct rates make the median cheap


def member_rates(
    minutes: DataFrame, course: DataFrame, times: Sequence[tuple[int, str]], numbers: DataFrame, ends: DataFrame | None
) -> DataFrame:
    """Return the rates at which members read, minute by minute: `group, rate, busy`.

    A rate is the messages by which the commits of a member's partitions went on, over the time that these commits
    cover, and over its weight. So no member read slower at every time. It counts if the member had the partitions in
    the snapshots before and after it. A member is `busy` if one of its partitions had messages left from the snapshot
    before until the end.

    Parameters
    ----------
    minutes : DataFrame
        As `commit_minutes` returns.
    course : DataFrame
        Rows of `FromRecords`.
    times : sequence of (int, str)
        Times of the snapshots in milliseconds, and as text.
    numbers : DataFrame
        The number of each snapshot, `number, snapshot_ts`.
    ends : DataFrame or None
        Log ends at these times: `snapshot_ts, topic, partition, log_end_offset`.
    """
    minutes = minutes.filter("whole is not null").select(
        *PARTITION, "number", "minute", "read", "from", "to", "whole", "last"
    )
    owned = owners(course)
    earlier = owned.select(
        (sf.col("number") + 1).alias("number"), *PARTITION, sf.col("owner.consumer_id").alias("before")
    )
    kept = owned.join(earlier, on=["number", *PARTITION]).filter("owner.consumer_id = before")
    read = minutes.join(kept, on=["number", *PARTITION])
    left: Column = sf.lit(False)
    if ends is not None:
        starts = sf.broadcast(
            numbers.sparkSession.createDataFrame(
                [(n + 1, ts, at) for n, (at, ts) in enumerate(times)], "number INT, snapshot_ts STRING, start BIGINT"
            )
        )
        known = ends.join(starts, on="snapshot_ts").select("number", "topic", "partition", "log_end_offset", "start")
        read = read.join(known, on=["number", "topic", "partition"], how="left")
        left = sf.coalesce(sf.col("log_end_offset") > sf.col("last"), sf.lit(False)) & (
            sf.col("from") >= sf.col("start")
        )
    weight = sf.coalesce(sf.max("owner.weight"), sf.lit(1.0))
    of_members = read.groupBy("group", "number", "minute", "owner.consumer_id").agg(
        sf.sum("read").alias("read"), (sf.max("to") - sf.min("from")).alias("millis"), weight.alias("weight"),
        (sf.bool_and("whole") & sf.bool_or(left)).alias("busy"),
    )  # fmt: skip
    rate = 1000 * sf.col("read") / sf.col("millis") / sf.col("weight")
    place = sf.pow(sf.lit(10.0), sf.floor(sf.log10("rate")) - (_DIGITS - 1))
    return (
        of_members.filter(sf.col("millis") >= LEAST)
        .withColumn("rate", rate)
        .select("group", (sf.round(sf.col("rate") / place) * place).alias("rate"), "busy")
    )


def past_groups(commits: DataFrame, rebalances: DataFrame, rates: DataFrame, until: int) -> DataFrame:
    """Return a row for each group (`outputs.PAST_GROUPS`).

    Parameters
    ----------
    commits, rebalances : DataFrame
        Tables of the history.
    rates : DataFrame
        As `member_rates` returns.
    until : int
        Time of the last record, in milliseconds.
    """
    of_commits = commits.groupBy("group").agg(
        sf.sum("commits").alias("commits"), sf.count("*").alias("partitions"), sf.min("first_ts").alias("first_commit")
    )
    causes = sf.split("why", r"\+")
    of_rebalances = rebalances.groupBy("group").agg(
        sf.count("*").alias("rebalances"),
        *(sf.count_if(sf.array_contains(causes, cause)).alias(name) for name, cause in CAUSES.items()),
        *(sf.sum(name).alias(name) for name in ("moved", "forced")),
        sf.max("members_after").alias("members"),
        sf.count("pause_seconds").alias("pauses"),
        sf.median("pause_seconds").alias("pause_seconds"),
        sf.min("ts").alias("first_rebalance"),
    )
    busy = sf.when(sf.col("busy"), sf.col("rate"))
    of_members = rates.groupBy("group").agg(
        sf.count_if("busy").alias("busy"), sf.count("*").alias("seen"),
        sf.percentile(busy, 0.5).alias("usual"), sf.percentile("rate", HIGH).alias("high"),
    )  # fmt: skip
    rows = of_commits.join(of_rebalances, on="group", how="full_outer")
    rows = rows.join(_paused(rebalances), on="group", how="left").join(of_members, on="group", how="left")
    since = sf.least("first_commit", "first_rebalance")
    seconds = (sf.lit(until) - sf.unix_millis(sf.to_timestamp(since))) / 1000
    of_backlog = sf.col("busy") > 0
    counted = ("commits", "partitions", "rebalances", *CAUSES, "moved", "forced", "pauses")
    values = {name: sf.coalesce(name, sf.lit(0)) for name in counted}
    values |= {name: sf.col(name) for name in ("group", "members", "pause_seconds")}
    values |= {
        "since": since,
        "until": iso_column(sf.lit(until)),
        "rebalances_per_hour": values["rebalances"] * HOUR / sf.greatest(seconds, sf.lit(HOUR)),
        "paused_seconds": sf.coalesce("paused_seconds", sf.lit(0.0)),
        "paused_share": sf.when(seconds > 0, sf.coalesce("paused_seconds", sf.lit(0.0)) / seconds).otherwise(0.0),
        "capacity": sf.when(of_backlog, sf.col("usual")).otherwise(sf.col("high")),
        "capacity_source": sf.when(of_backlog, sf.lit(BACKLOG)).when(sf.col("seen") > 0, sf.lit("highest")),
        "capacity_cases": sf.when(of_backlog, sf.col("busy")).otherwise(sf.coalesce("seen", sf.lit(0))),
    }
    return rows.select(*(values[each.name].cast(each.ddl).alias(each.name) for each in PAST_GROUPS))


def _paused(rebalances: DataFrame) -> DataFrame:
    """Return for how long each group had a pause; pauses of rebalances that follow one another may overlap."""
    begins = sf.unix_millis(sf.to_timestamp("pause_ts"))
    spans = rebalances.filter("pause_seconds is not null").select("group", "pause_seconds", begins.alias("begins"))
    spans = spans.withColumn("ends", sf.col("begins") + 1000 * sf.col("pause_seconds"))
    earlier = Window.partitionBy("group").orderBy("begins", "ends").rowsBetween(Window.unboundedPreceding, -1)
    more = sf.col("ends") - sf.greatest("begins", sf.max("ends").over(earlier))
    spans = spans.withColumn("more", sf.greatest(more, sf.lit(0.0)) / 1000)
    return spans.groupBy("group").agg(sf.sum("more").alias("paused_seconds"))
