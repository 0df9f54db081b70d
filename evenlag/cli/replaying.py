"""What the command does with recorded histories: replay one group, or a fleet on Spark, and write the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Group, RenderableType
from rich.text import Text

from evenlag.cli.terminal import fleet_notes
from evenlag.compare.replay_result import Replay
from evenlag.errors import SourceError
from evenlag.report.replay_text import fleet_table
from evenlag.spark.driver.protocol import Progress
from evenlag.tables.outputs import REPLAY_STEPS, REPLAY_SUMMARY, replay_row
from evenlag.tables.writing import write_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Form = Literal["parquet", "csv"]
MOST_FAILED = 20  # groups named


def write_replay(replayed: Replay, out: Path, form: Form, overwrite: bool) -> list[Path]:
    """Write one group's `summary` and `steps` to a folder, as `evenlag.spark.Replays.write` does for a fleet.

    Raises
    ------
    SourceError
        They are there already, or cannot be written.
    """
    tables, shared = replay_row(replayed), set(REPLAY_SUMMARY.names)
    common = {name: value for name, value in tables.items() if name in shared}
    files = {name: out / f"{name}.{form}" for name in ("summary", "steps")}
    for path in files.values():
        if path.exists() and not overwrite:
            raise SourceError(f"{path}: exists already; name another folder, or ask to overwrite it")
    columns = {"summary": REPLAY_SUMMARY, "steps": REPLAY_STEPS}
    write_tables({path: ([common | row for row in tables[name]], columns[name]) for name, path in files.items()})
    return list(files.values())


def summary_document(replayed: Replay) -> dict[str, Any]:
    """Return a replay without its steps, for JSON."""
    whole = replay_row(replayed)
    return {name: value for name, value in whole.items() if name != "steps"} | {"best": replayed.best}


@dataclass(frozen=True)
class FleetReplay:
    """How strategies did over many groups.

    Attributes
    ----------
    groups : int
    strategies : list of dict
        For each strategy `groups`, `best` (groups where it is), `median` and `worst` of its cost above that of the
        group's best (a fraction), `moves`, `rebalances`, `above` (seconds), `failed`.
    errors : list of str
        Groups that could not be replayed.
    rejects : int
        Rows of both tables that could not be used.
    written : list of str
    """

    groups: int
    strategies: list[dict[str, Any]]
    errors: list[str]
    rejects: int
    written: list[str]

    def report(self) -> RenderableType:
        """Return the table and what there is to say."""
        head = Text(f"{self.groups:,} groups replayed", style="bold")
        return Group(head, fleet_table(self.strategies), *fleet_notes(self.errors, self.rejects, self.written))


def replay_fleet(
    offsets: str | Path,
    members: str | Path | None,
    *,
    out: str | Path | None = None,
    form: Form = "parquet",
    overwrite: bool = False,
    auto_offset_reset: str = "latest",
    progress: Progress | None = None,
    options: Mapping[str, str] | None = None,
    spark_settings: Mapping[str, str] | None = None,
    **parameters: Any,
) -> FleetReplay:
    """Replay all groups of a table on Spark; parameters are those of `evenlag.spark.replay`."""
    # PySpark takes a second to import, and a single group is replayed without.
    from evenlag.cli.fleet import session_for
    from evenlag.spark import rejects, replay
    from evenlag.spark.driver.sources import table_at

    spark = session_for((offsets, members), spark_settings, options)
    offsets_df = table_at(spark, offsets, "offsets", options)
    members_df = None if members is None else table_at(spark, members, "members", options)
    replays = replay(
        offsets_df, members_df, auto_offset_reset=auto_offset_reset, progress=progress, **parameters
    )  # fmt: skip
    failed = replays.summary.filter("strategy is null").orderBy("group").limit(MOST_FAILED).collect()
    return FleetReplay(
        groups=replays.groups.count(),
        strategies=[row.asDict() for row in _compared(replays.summary).collect()],
        errors=[f"{row['group']}: {row['error']}" for row in failed],
        rejects=rejects(offsets_df, members_df, auto_offset_reset=auto_offset_reset).count(),
        written=[] if out is None else replays.write(out, form, overwrite),
    )


def _compared(summary: DataFrame) -> DataFrame:
    """A row for each strategy: in how many groups it is best, and how much its cost is above the best otherwise."""
    # This module is imported without PySpark, for a single group.
    from pyspark.sql import functions as sf

    least = summary.filter("best").select("group", sf.col("cost").alias("least"))
    above = (sf.col("cost") - sf.col("least")) / sf.greatest("least", sf.lit(1.0))
    return (
        summary.filter("strategy is not null")
        .join(least, "group", "left")
        .withColumn("share", sf.greatest(above, sf.lit(0.0)))
        .groupBy("strategy")
        .agg(
            sf.count("*").alias("groups"),
            sf.count_if("best").alias("best"),
            sf.median("share").alias("median"),
            sf.max("share").alias("worst"),
            sf.sum("moves").alias("moves"),
            sf.sum("rebalances").alias("rebalances"),
            sf.sum("seconds_above").alias("above"),
            sf.count_if(sf.col("error").isNotNull()).alias("failed"),
        )
        .orderBy(sf.desc("best"), "median", "strategy")
    )
