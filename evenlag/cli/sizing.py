"""What `evenlag size` does with a fleet: size all groups of a table on Spark, and write the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from rich.console import Group, RenderableType
from rich.text import Text

from evenlag.cli.fleet import session_for
from evenlag.cli.terminal import fleet_notes
from evenlag.report.size_text import sizes_table
from evenlag.spark import rejects, size
from evenlag.spark.driver.errors import blamed
from evenlag.spark.driver.protocol import Progress, described
from evenlag.spark.driver.sinks import sink
from evenlag.spark.driver.sources import table_at

TABLES = ("groups", "sizes")
MOST_GROUPS = 15  # in the table of groups
MOST_FAILED = 20  # groups named

_ANSWERS = {
    "more": ("needs more members", "need more members"),
    "enough": ("has as many as it needs", "have as many as they need"),
    "fewer": ("could do with fewer", "could do with fewer"),
    "none": ("for which no number of members was found",) * 2,
    "failed": ("failed", "failed"),
}


@dataclass(frozen=True)
class FleetSize:
    """How many members the groups of a fleet need.

    Attributes
    ----------
    answers : dict of answer to groups
        `more`: groups that need more members than they have; `enough`; `fewer`; `none`: no number of members was found
        that makes it; `failed`.
    groups : list of dict
        Those that lack most, first those without a number: `group, snapshot_ts, members` (today)`, fewest, proven,
        binding_from, hottest_topic, hottest_partition, hottest_seconds, capacity, capacity_source`.
    errors : list of str
        Groups that could not be sized.
    rejects : int
        Rows of both tables that could not be used.
    written : list of str
    """

    answers: dict[str, int]
    groups: list[dict[str, Any]]
    errors: list[str]
    rejects: int
    written: list[str]

    def report(self) -> RenderableType:
        """Return the table and what there is to say."""
        told = [f"{count:,} {_ANSWERS[name][count != 1]}" for name, count in self.answers.items() if count]
        head = Text(f"{sum(self.answers.values()):,} groups: {', '.join(told)}", style="bold")
        title = "the groups that lack most" if len(self.groups) == MOST_GROUPS else "groups"
        return Group(head, sizes_table(self.groups, title), *fleet_notes(self.errors, self.rejects, self.written))


def size_fleet(
    offsets: str | Path,
    members: str | Path | None,
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
    auto_offset_reset: str = "latest",
    progress: Progress | None = None,
    options: Mapping[str, str] | None = None,
    spark_settings: Mapping[str, str] | None = None,
    **parameters: Any,
) -> FleetSize:
    """Size all groups of a table on Spark; parameters are those of `evenlag.spark.size`.

    `out` is a place as `evenlag.spark.run` takes one, for the tables `groups`, a row per group, and `sizes`, a row
    per group and number of members; both are written, or neither.
    """
    spark = session_for((offsets, members), spark_settings, options)
    offsets_df = table_at(spark, offsets, "offsets", options)
    members_df = None if members is None else table_at(spark, members, "members", options)
    sizes = size(offsets_df, members_df, auto_offset_reset=auto_offset_reset, progress=progress, **parameters)
    with described(spark, "the report of the command"):
        counts = {row["answer"]: row["count"] for row in _answered(sizes).groupBy("answer").count().collect()}
        failed = sizes.filter("error is not null").orderBy("group").limit(MOST_FAILED).collect()
        return FleetSize(
            answers={name: counts.get(name, 0) for name in _ANSWERS},
            groups=[row.asDict() for row in _lacking_most(sizes).take(MOST_GROUPS)],
            errors=[f"{row['group']}: {row['error']}" for row in failed],
            rejects=rejects(offsets_df, members_df, auto_offset_reset=auto_offset_reset).count(),
            written=[] if out is None else _write(sizes, out, overwrite),
        )


def _answered(sizes: DataFrame) -> DataFrame:
    more = sf.col("fewest") - sf.col("members")
    answer = (
        sf.when(sf.col("error").isNotNull(), "failed").when(more.isNull(), "none")
        .when(more > 0, "more").when(more < 0, "fewer").otherwise("enough")
    )  # fmt: skip
    return sizes.withColumn("answer", answer)


def _lacking_most(sizes: DataFrame) -> DataFrame:
    names = (
        "group", "snapshot_ts", "members", "fewest", "proven", "binding_from", "hottest_topic", "hottest_partition",
        "hottest_seconds", "capacity", "capacity_source",
    )  # fmt: skip
    lack = sf.col("fewest") - sf.col("members")
    return sizes.filter("error is null").orderBy(sf.desc_nulls_first(lack), "group").select(*names)


def _write(sizes: DataFrame, out: str | Path, overwrite: bool) -> list[str]:
    spark = sizes.sparkSession
    tables: Sequence[DataFrame] = (
        sizes.drop("sizes").orderBy("group"),
        sizes.select("group", "snapshot_ts", sf.inline("sizes")).orderBy("group", "members"),
    )
    place = sink(spark, out)
    with place.whole(TABLES, overwrite) as folder, blamed("the sizes"):
        for name, table in zip(TABLES, tables, strict=True):
            with described(spark, f"writing {name}"):
                table.write.parquet(f"{folder}/{name}")
    return place.names(TABLES)
