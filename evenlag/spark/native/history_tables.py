"""Tables of a history, in native Spark columns, from decoded commits and the groups' courses.

`commits` has the columns of decoded records, `course` the rows of `worker.history_task.FromRecords`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from evenlag.errors import SourceError
from evenlag.model.rates import time_text
from evenlag.spark.worker.history_task import MEMBER, REBALANCE
from evenlag.tables.columns import MEMBERS, OFFSETS, Table
from evenlag.tables.outputs import COMMITS, KEY, REBALANCES

LONGEST_WAIT = 600  # seconds around a rebalance in which commits are looked for
RARELY = 30  # seconds; commits that are usually further apart do not show a pause
MOST_TIMES = 1_000_000  # snapshots, and places of the table that finds the next one
PARTITION = ["group", "topic", "partition"]

TOLD = Table(column for column in MEMBERS if column.name not in KEY)
"""Columns of a member in `course`."""

REBALANCE_FIGURES = Table(
    column
    for column in REBALANCES
    if column.name not in ("ts", "group", "pause_seconds", "pause_ts") and "commit" not in column.name
)
"""Columns of a rebalance in `course`."""

_PLACE = ("number", "group", "topic", "partition")  # key of a row of the offsets table


def iso_text(millis: int) -> str:
    """Return a time in milliseconds since the epoch as text, as `iso_column` does."""
    return time_text(datetime.fromtimestamp(millis / 1000, UTC))


def iso_column(millis: Column) -> Column:
    """Return times in milliseconds since the epoch as text."""
    text = sf.date_format(sf.timestamp_millis(millis), "yyyy-MM-dd'T'HH:mm:ss.SSS")
    return sf.when(millis.isNotNull(), sf.concat(text, sf.lit("Z")))


def with_numbers(df: DataFrame, times: Sequence[int]) -> DataFrame:
    """Add `since` to rows with a time `at`: the number of the first snapshot at or after it, their count if none is.

    Times are looked up in slots as wide as the smallest distance of two snapshots, so that a slot has one at most. The
    lists of slots are columns of a broadcast row; as constants they would be made anew for every row.
    """
    first, last = times[0], times[-1]
    width = min((after - before for before, after in pairwise(times) if after > before), default=1)
    slots = (last - first) // width + 1
    if slots > MOST_TIMES:
        raise SourceError(f"the snapshots are up to {width} ms near and {(last - first) / 1000:g} s apart; use fewer")
    inside, counts = [last + 1] * slots, dict.fromkeys(times, 0)
    for time in times:
        inside[(time - first) // width] = time
        counts[time] += 1
    before = [0, *accumulate(counts.get(time, 0) for time in inside)][:-1]
    lists = df.sparkSession.createDataFrame(pa.table({"_before": [before], "_inside": [inside]}))
    at, slot = sf.col("at"), sf.floor((sf.col("at") - first) / width).cast("int")
    passed = sf.when(sf.col("_inside")[slot] < at, sf.lit(1)).otherwise(sf.lit(0))
    within = sf.when((at > first) & (at <= last), sf.col("_before")[slot] + passed)
    number = sf.when(at <= first, sf.lit(0)).otherwise(sf.coalesce(within, sf.lit(len(times)))).cast("int")
    return df.crossJoin(sf.broadcast(lists)).withColumn("since", number).drop("_before", "_inside")


def each_snapshot(intervals: DataFrame) -> DataFrame:
    """Return one row per snapshot in [`since`, `until`), with its index in `number`."""
    numbers = sf.explode(sf.sequence("since", sf.col("until") - 1))
    return intervals.filter("since < until").withColumn("number", numbers).drop("since", "until")


def _as(table: Table, values: Mapping[str, Column]) -> list[Column]:
    return [values.get(each.name, sf.lit(None)).cast(each.ddl).alias(each.name) for each in table]


def of_partitions(commits: DataFrame, *more: Column) -> DataFrame:
    """Select `group, topic, partition, offset, commit_offset` of commits, and more columns."""
    names = {"commit_topic": "topic", "commit_partition": "partition"}
    return commits.select(
        "group", *(sf.col(own).alias(name) for own, name in names.items()), "offset", "commit_offset", *more
    )


def owners(course: DataFrame) -> DataFrame:
    """Return the owner of each partition in each snapshot: `number, group, topic, partition` and a struct `owner`."""
    members = course.filter(sf.col("kind") == MEMBER)
    owned = members.select("group", "since", "until", "member", sf.explode("partitions").alias("held"))
    told = sf.struct(*(f"member.{name}" for name in ("consumer_id", "client_id", "host", "weight")))
    return (
        each_snapshot(owned)
        .groupBy("number", "group", "held.topic", "held.partition")
        .agg(sf.max_by(told, "member.consumer_id").alias("owner"))
    )


def offsets(
    commits: DataFrame, course: DataFrame, times: Sequence[tuple[int, str]], numbers: DataFrame, ends: DataFrame | None
) -> DataFrame:
    """Return the offsets table: the last commit, owner and log end of each partition at each time."""
    named = of_partitions(with_numbers(commits, [at for at, _ in times]), sf.col("since"))
    last = named.groupBy(*PARTITION, "since").agg(sf.max_by("commit_offset", "offset").alias("current_offset"))
    until = sf.coalesce(sf.lead("since").over(Window.partitionBy(*PARTITION).orderBy("since")), sf.lit(len(times)))
    committed = each_snapshot(last.withColumn("until", until).filter("current_offset is not null"))
    members = course.filter(sf.col("kind") == MEMBER)
    rows = committed.join(owners(course), on=list(_PLACE), how="full_outer")
    if ends is not None:
        subscribed = members.select("group", "since", "until", sf.explode("member.topics").alias("topic"))
        topics = rows.select("number", "group", "topic").unionByName(
            each_snapshot(subscribed).select("number", "group", "topic")
        )
        numbered = ends.join(sf.broadcast(numbers), on="snapshot_ts").drop("snapshot_ts")
        rows = rows.join(topics.distinct().join(numbered, on=["number", "topic"]), on=list(_PLACE), how="full_outer")
    values = {name: sf.col(name) for name in ("snapshot_ts", "current_offset", *PARTITION)}
    values |= {name: sf.col(f"owner.{name}") for name in ("consumer_id", "client_id", "host")}
    if ends is not None:
        lag = sf.greatest(sf.col("log_end_offset") - sf.col("current_offset"), sf.lit(0))
        values |= {"log_start_offset": sf.col("log_start_offset"), "log_end_offset": sf.col("log_end_offset")}
        values["lag"] = sf.when(sf.col("log_end_offset").isNotNull() & sf.col("current_offset").isNotNull(), lag)
    return rows.join(sf.broadcast(numbers), on="number").select(*_as(OFFSETS, values))


def members(course: DataFrame, numbers: DataFrame) -> DataFrame:
    """Return the members table."""
    each = each_snapshot(course.filter(sf.col("kind") == MEMBER).select("group", "since", "until", "member"))
    told = {name: sf.col(f"member.{name}") for name in TOLD.names}
    values = {"snapshot_ts": sf.col("snapshot_ts"), "group": sf.col("group"), **told}
    return each.join(sf.broadcast(numbers), on="number").select(*_as(MEMBERS, values))


def commits(minutes: DataFrame) -> DataFrame:
    """Return the number of commits of each group and partition, the first, the last and their usual distance.

    `minutes` is the table of `commit_minutes.commit_minutes`.
    """
    edges = {"first": sf.min_by, "last": sf.max_by}
    table = minutes.groupBy(*PARTITION).agg(
        *(sf.sum(name).alias(name) for name in ("commits", "deleted", "backward")),
        (sf.percentile("apart", 0.5, sf.col("times")) / 1000).alias("usual_seconds"),
        *(
            which(f"{name}_{what}", f"{name}_place").alias(f"{name}_{what}")
            for name, which in edges.items()
            for what in ("at", "offset")
        ),
    )
    values = {name: sf.col(name) for name in (*PARTITION, "commits", "deleted", "backward", "usual_seconds")}
    for name in edges:
        values |= {f"{name}_ts": iso_column(sf.col(f"{name}_at")), f"{name}_offset": sf.col(f"{name}_offset")}
    return table.select(*_as(COMMITS, values))


def rebalances(course: DataFrame, records: DataFrame, usual: DataFrame) -> DataFrame:
    """Return the rebalances, with the commits of their groups around them; `usual` is the table of commits."""
    seen = course.filter(sf.col("kind") == REBALANCE).select("group", "rebalance.*", "handed")
    made = of_partitions(records.filter("commit_offset is not null"), sf.col("at"))
    near = _near(seen.select("group", "millis").distinct(), made.select("group", "at"), "millis", ["group"])
    within = near.groupBy("group", "millis").agg(*_around("millis"))
    handed = seen.select("group", "millis", "generation", sf.explode("handed").alias("to"))
    handed = handed.select(
        "group", "millis", "generation", "to.topic", "to.partition", sf.col("to.millis").alias("owned")
    )
    rows = (
        seen.drop("handed")
        .join(within, on=["group", "millis"], how="left")
        .join(_pauses(handed, made, usual), on=["group", "millis", "generation"], how="left")
    )
    values: dict[str, Any] = {name: sf.col(name) for name in ("group", *REBALANCE_FIGURES.names)}
    values |= {"ts": iso_column(sf.col("millis")), "last_commit_seconds": sf.col("before")}
    values |= {"pause_seconds": sf.col("shortest.pause"), "pause_ts": iso_column(sf.col("shortest.begins"))}
    return rows.select(*_as(REBALANCES, values | {"next_commit_seconds": sf.col("after")}))


def _pauses(handed: DataFrame, made: DataFrame, usual: DataFrame) -> DataFrame:
    """Return how long partitions were not read because a rebalance gave them to another member: `pause, begins`.

    A partition stands still from its last commit until another member has it, and on until the first commit then, as
    far as that takes longer than commits usually do. The shortest of a rebalance counts, because partitions without
    messages have no commits either. Partitions that usually commit less often than every `RARELY` seconds are left out.
    """
    key = ["group", "millis", "generation", "topic", "partition", "owned"]
    around = _near(handed, made.select(*PARTITION, "at"), "owned", PARTITION).groupBy(*key).agg(*_around("owned"))
    late = sf.greatest(sf.col("after") - sf.coalesce("usual_seconds", sf.lit(0.0)), sf.lit(0.0))
    known = around.dropna().join(usual.select(*PARTITION, "usual_seconds"), on=PARTITION, how="left")
    often = known.filter(sf.coalesce("usual_seconds", sf.lit(0.0)) <= RARELY)
    begins = sf.col("owned") - sf.round(1000 * sf.col("before")).cast("long")
    pause = sf.struct((sf.col("before") + late).alias("pause"), begins.alias("begins"))
    return often.groupBy("group", "millis", "generation").agg(sf.min(pause).alias("shortest"))


def _near(rows: DataFrame, made: DataFrame, time: str, key: list[str]) -> DataFrame:
    """Join rows with commits at most `LONGEST_WAIT` before or after the row's time, using slots of that length."""
    slot = 1000 * LONGEST_WAIT
    own = sf.floor(sf.col(time) / slot)
    around = rows.withColumn("slot", sf.explode(sf.sequence(own - 1, own + 1)))
    joined = around.join(made.withColumn("slot", sf.floor(sf.col("at") / slot)), on=[*key, "slot"])
    return joined.filter(sf.abs(sf.col("at") - sf.col(time)) <= slot)


def _around(time: str) -> list[Column]:
    """Return the seconds from the last commit before a time, and until the first one at it or after it."""
    wait = (sf.col("at") - sf.col(time)) / 1000
    return [sf.min(sf.when(wait < 0, -wait)).alias("before"), sf.min(sf.when(wait >= 0, wait)).alias("after")]
