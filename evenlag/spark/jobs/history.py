"""The past of all groups from the records in `__consumer_offsets`: snapshots, rebalances and commits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from evenlag.errors import InvalidProblemError, SourceError
from evenlag.model.rates import time_micros
from evenlag.report.past_text import MOST_GROUPS
from evenlag.spark.driver.choice import driver_of
from evenlag.spark.driver.error_lines import blamed
from evenlag.spark.driver.kept import kept
from evenlag.spark.driver.local_out import HISTORY_TABLES
from evenlag.spark.driver.protocol import described, needs_java
from evenlag.spark.driver.sinks import sink, write_tables
from evenlag.spark.driver.sources import table_at
from evenlag.spark.jobs.group_records import (
    BASE,
    COURSE,
    decoded,
    followed,
    internal_topics,
    is_commit,
    read_records,
    shown,
)
from evenlag.spark.native import history_tables
from evenlag.spark.native.commit_minutes import COMMIT_MINUTES, commit_minutes
from evenlag.spark.native.group_past import member_rates, past_groups
from evenlag.spark.native.history_tables import MOST_TIMES
from evenlag.spark.native.typed import Typed
from evenlag.spark.worker.history_task import COUNT, TOPIC
from evenlag.tables.outputs import COMMITS, PASSED_OVER, REBALANCES

EVERY = 900.0  # seconds between snapshots
NAMED = 10  # topics named in the message that their names are not known


@dataclass(frozen=True)
class History:
    """The past of all groups, computed once and then only read.

    Attributes
    ----------
    offsets, members : DataFrame
        Snapshots, as `evenlag snapshot --append` records them. Without `log_ends`, log ends and lags are null.
    rebalances : DataFrame
        One row per rebalance (`evenlag.spark.REBALANCES`).
    commits : DataFrame
        One row per group and partition with a commit (`evenlag.spark.COMMITS`).
    groups : DataFrame
        One row per group: what rebalances cost it, and how fast its members read (`evenlag.spark.PAST_GROUPS`).
    passed_over : DataFrame
        Numbers of records that were not used, by reason (`evenlag.spark.PASSED_OVER`).
    records, used : int
        Numbers of records, and of those used; the others are in `passed_over`, to the row.
    times : tuple of str
        `snapshot_ts` of the snapshots, in order.
    unnamed_topics : tuple of str
        Ids of topics whose names are not known. KIP-848 groups appear without their partitions.
    """

    offsets: DataFrame
    members: DataFrame
    rebalances: DataFrame
    commits: DataFrame
    groups: DataFrame
    passed_over: DataFrame
    records: int
    used: int
    times: tuple[str, ...]
    unnamed_topics: tuple[str, ...]

    @property
    def tables(self) -> dict[str, DataFrame]:
        """The tables by name."""
        return {name: getattr(self, name) for name in HISTORY_TABLES}

    def write(self, out: str | Path, overwrite: bool = False) -> list[str]:
        """Write all tables or none to a place as in `run`, as Parquet, and return their places.

        Raises
        ------
        SourceError
            The place exists or cannot be written.
        """
        spark = self.offsets.sparkSession
        needs_java(spark, "History.write", "write its tables with the session: offsets.write.parquet(path)")
        return write_tables(out, self.tables, overwrite, "the history")


def history(
    spark: SparkSession,
    records: str | Path | DataFrame,
    *,
    out: str | Path | None = None,
    every: float = EVERY,
    log_ends: str | Path | DataFrame | None = None,
    topic_names: Mapping[str, str] | None = None,
    overwrite: bool = False,
    options: Mapping[str, str] | None = None,
) -> History:
    """Read the past of all groups from the records in `__consumer_offsets`.

    A record that cannot be read is counted with a reason. A snapshot has the last state of each group until its time.

    Parameters
    ----------
    spark : SparkSession
    records : str, Path or DataFrame
        `kafka://HOST:PORT`, or Parquet files or a DataFrame with the columns of Spark's Kafka source: `key, value,
        partition, offset, timestamp` (TIMESTAMP, or milliseconds). Commits of open or aborted transactions are not
        read from Kafka; a copy must be made with `isolation.level=read_committed`.
    out : str or Path, optional
        Write the tables there (`History.write`).
    every : float
        Seconds between snapshots, which are at multiples of it; not used with `log_ends`.
    log_ends : str, Path or DataFrame, optional
        An offsets table with log offsets of the past. The snapshots are at its times.
    topic_names : mapping of str to str, optional
        Names of topics by their ids (base64, as Kafka prints them). Records of KIP-848 groups have ids alone.
    overwrite : bool
        Replace the tables in `out`.
    options : mapping of str to str, optional
        Options of Spark's Kafka source. Without `assign`, such as `{"__consumer_offsets": [0, 1, 2]}`, Spark finds the
        partitions as a consumer group of its own, which leaves records in the topic.

    Raises
    ------
    SourceError
        The records or log ends cannot be read, lack a column, or none can be used.
    InvalidProblemError
        `every` is not a positive time.
    """
    if not (isinstance(every, int | float) and every > 0):
        raise InvalidProblemError(f"every must be a time above 0 s, not {every!r}")
    driver = driver_of(spark)
    with described(spark, "decoding records"), blamed(shown(records)), internal_topics(spark):
        base = decoded(read_records(spark, records, options), driver.place(BASE))
        usable = sf.col("reason").isNull()
        span = base.groupBy("reason").agg(sf.count("*").alias("n"), sf.min("at").alias("a"), sf.max("at").alias("b"))
        counts = span.collect()
    good = next((row for row in counts if row["reason"] is None), None)
    if good is None:
        reasons = "; ".join(f"{row['reason']}: {row['n']}" for row in counts) or "there are none"
        raise SourceError(f"{shown(records)}: no record can be used ({reasons})")
    ends = None if log_ends is None else _log_ends(table_at(spark, log_ends, "offsets", options))
    times = _times(good["a"], good["b"], every) if ends is None else _times_of(ends, shown(log_ends))
    millis, of_members = [at for at, _ in times], base.filter(usable & ~is_commit())
    course = followed(of_members, millis, topic_names or {}, driver.place(COURSE))
    commits = base.filter(usable & is_commit())
    with described(spark, "finding rebalances"):
        minutes = kept(commit_minutes(commits, millis), driver.place(COMMIT_MINUTES))
        committed = kept(history_tables.commits(minutes), driver.place(COMMITS.ddl))
        rebalances = kept(history_tables.rebalances(course, commits, committed), driver.place(REBALANCES.ddl))
    passed = Counter({row["reason"]: row["n"] for row in counts if row is not good})
    with described(spark, "counting records"):
        told = course.filter((sf.col("kind") == COUNT) & sf.col("reason").isNotNull()).groupBy("reason")
        passed.update({row["reason"]: row["n"] for row in told.agg(sf.sum("records").alias("n")).collect()})
        topics = course.filter(sf.col("kind") == TOPIC).select("reason").distinct().orderBy("reason").limit(NAMED)
        unnamed = tuple(row["reason"] for row in topics.collect())
    total = sum(row["n"] for row in counts)
    numbers = spark.createDataFrame([(n, text) for n, (_, text) in enumerate(times)], "number INT, snapshot_ts STRING")
    rates = member_rates(minutes, course, times, numbers, ends)
    found = History(
        offsets=history_tables.offsets(commits, course, times, numbers, ends),
        members=history_tables.members(course, numbers),
        rebalances=rebalances,
        commits=committed,
        groups=past_groups(committed, rebalances, rates, good["b"]),
        passed_over=spark.createDataFrame(sorted(passed.items()), PASSED_OVER.ddl),
        records=total,
        used=total - passed.total(),
        times=tuple(text for _, text in times),
        unnamed_topics=unnamed,
    )
    if out is not None:
        found.write(out, overwrite)
    return found


def told(found: History, out: str | Path) -> dict[str, Any]:
    """Return the figures that the command shows of a history and its tables in `out`."""
    written = sink(found.offsets.sparkSession, out)
    with described(found.offsets.sparkSession, "the report of the command"):
        return {
            "records": found.records,
            "used": found.used,
            "passed_over": {row["reason"]: row["records"] for row in written.read("passed_over").collect()},
            "snapshots": len(found.times),
            "since": found.times[0],
            "until": found.times[-1],
            **_rebalancing(written.read("groups"), MOST_GROUPS),
            "written": written.names(list(found.tables)),
        }


def past_figures(spark: SparkSession, place: str | Path, most: int) -> dict[str, Any]:
    """Return figures of the groups of a history in a place as in `run`.

    These are the numbers of `groups`, `rebalances`, `commits` and groups that rebalanced (`rebalancing`), the sum of
    `paused_seconds`, and as `most_rebalances` the rows of the groups that rebalance most often, `most` of them.

    Raises
    ------
    SourceError
        The place has no such table.
    """
    with blamed(place), described(spark, "reading the past of the groups"):
        return _rebalancing(sink(spark, place).read("groups"), most)


def _rebalancing(groups: DataFrame, most: int) -> dict[str, Any]:
    sums = (sf.coalesce(sf.sum(name), sf.lit(0)).alias(name) for name in ("rebalances", "commits", "paused_seconds"))
    [figures] = groups.agg(
        sf.count("*").alias("groups"), *sums, sf.count_if(sf.col("rebalances") > 0).alias("rebalancing")
    ).collect()
    often = groups.filter("rebalances > 0").orderBy(sf.desc("rebalances_per_hour"), sf.desc("paused_share"), "group")
    return figures.asDict() | {"most_rebalances": [row.asDict() for row in often.take(most)]}


# ---- times -----------------------------------------------------------------------------------------------------------


def _times(first: int, last: int, every: float) -> list[tuple[int, str]]:
    """Return the multiples of a time from the first record to just after the last, in milliseconds and as text."""
    step = max(round(1000 * every), 1)
    numbers = range(-(-first // step), -(-last // step) + 1)
    if len(numbers) > MOST_TIMES:
        raise InvalidProblemError(f"every {every:g} s makes {len(numbers):,} snapshots; choose a longer time")
    millis = [number * step for number in numbers]
    return [(at, history_tables.iso_text(at)) for at in millis]


def _log_ends(table: DataFrame) -> DataFrame:
    """Return the log offsets of an offsets table, whatever the group: `snapshot_ts, topic, partition` and both."""
    typed = Typed(table)
    rows = table.select(
        typed.text("snapshot_ts").alias("snapshot_ts"), typed.text("topic").alias("topic"),
        typed.whole("partition").try_cast("int").alias("partition"),
        *(typed.whole(name).alias(name) for name in ("log_start_offset", "log_end_offset")),
    )  # fmt: skip
    known = rows.dropna(subset=["snapshot_ts", "topic", "partition", "log_end_offset"])
    largest = [sf.max(name).alias(name) for name in ("log_start_offset", "log_end_offset")]
    return known.groupBy("snapshot_ts", "topic", "partition").agg(*largest)


def _times_of(ends: DataFrame, place: str) -> list[tuple[int, str]]:
    found = []
    for row in ends.select("snapshot_ts").distinct().collect():
        micros = time_micros(row["snapshot_ts"])
        if micros is None:
            raise SourceError(f"{place}: snapshot_ts {row['snapshot_ts']!r} is not a time such as 2026-01-31T12:00:00Z")
        found.append((micros // 1000, row["snapshot_ts"]))
    if not found:
        raise SourceError(f"{place}: no row has a time and a log end offset")
    return sorted(found)
