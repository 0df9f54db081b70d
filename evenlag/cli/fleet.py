"""What the command does with a whole fleet: run the Spark job and put its tables into a few lines and a picture."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from rich.console import Group, RenderableType
from rich.text import Text

from evenlag.compare.strategies import CURRENT, OPTIMAL
from evenlag.errors import SourceError
from evenlag.figures import number, percent, quantity
from evenlag.model.words import BalanceWord
from evenlag.report.picture import Loads, draw
from evenlag.report.sheet import Sheet
from evenlag.spark.driver.kafka import add_connector, with_connector
from evenlag.spark.driver.protocol import Progress, described
from evenlag.spark.driver.session import local_session
from evenlag.spark.driver.sinks import sink
from evenlag.spark.jobs.batch import OUTPUT, SUMMARY, RunReport, run
from evenlag.spark.jobs.micro_batches import Batch, stream
from evenlag.tables.topics import is_topic

MOST_GROUPS = 15  # in the table of groups
MOST_REASONS = 5  # of rejected rows
PICTURE = "picture.png"


@dataclass(frozen=True)
class FleetReport:
    """The outcome of a job, ready to be printed.

    Attributes
    ----------
    summary : RunReport
    out : str or Path
        The folder, or the namespace, with the tables.
    groups : list of Row
        The groups whose spread the plan cuts most: figures in messages.
    strategies : dict of strategy to figures
        `groups`, `best` (at the optimum), `median`, `p90`, `p99` and `worst` excess as a share of the optimum's
        largest load, `broken`.
    rejected : list of dict
        Why rows of the tables were rejected, the most frequent first: `source` (the table), `reason`, `count`.
    written : list of str
        What was written, each with its place.
    """

    summary: RunReport
    out: str | Path
    groups: list[Row]
    strategies: dict[str, dict[str, Any]]
    rejected: list[dict[str, Any]]
    written: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as a document for JSON."""
        return {
            "out": str(self.out),
            "written": self.written,
            "summary": asdict(self.summary),
            "groups": [row.asDict() for row in self.groups],
            "strategies": self.strategies,
            "rejected": self.rejected,
        }

    def report(self) -> RenderableType:
        """Return the tables."""
        summary = self.summary
        statuses = ", ".join(f"{count:,} {status}" for status, count in summary.statuses.items())
        head = Text(f"{sum(summary.statuses.values()):,} groups: {statuses}", style="bold")
        rows = f"{summary.rows:,} rows = {summary.plans:,} planned + {summary.rejects:,} rejected"
        head.append(f"\n{rows}, in {summary.seconds:.1f} s on {summary.master}", style="not bold")
        notes = [Text(f"failed: {error}", style="red") for error in summary.errors]
        notes += [Text(f"rejected: {reason}", style="yellow") for reason in self._reasons()]
        notes += [Text(f"note: {note}", style="yellow") for note in summary.notes]
        written = Text("written: " + ", ".join(self.written))
        return Group(head, self._groups_table(), self._strategies_table(), *notes, written)

    def _reasons(self) -> list[str]:
        """Say why rows were rejected, and of how many more the table tells."""
        reasons = [f"{quantity(each['count'], 'row')} of {each['source']}: {each['reason']}" for each in self.rejected]
        rest = self.summary.rejects + self.summary.member_rejects - sum(each["count"] for each in self.rejected)
        return [
            *reasons,
            *([f"{quantity(rest, 'row')} for other reasons, which are in the table rejects"] if rest else []),
        ]

    def _groups_table(self) -> Sheet:
        title = "the groups that the plan evens out most" if len(self.groups) == MOST_GROUPS else "groups"
        table = Sheet(title)
        table.columns("name", "group")
        table.columns(
            "figure", "partitions", "busy members", "spread today", "best spread", "proven bound", "planned moves"
        )
        table.columns("name", "held up by", "best is")
        for row in self.groups:
            style = "green" if row["status"] == "OPTIMAL" else "yellow"
            table.row(
                row["group"], f"{row['partitions']:,}", f"{row['busy_members']:,}", number(row["today"]),
                number(row["best"]), number(row["bound"]), f"{row['moves']:,}",
                (row["binding"] or "").replace(";", ", "), Text(row["status"], style=style),
            )  # fmt: skip
        return table

    def _strategies_table(self) -> Sheet:
        table = Sheet("spread above the best under the same balance, as a share of the best plan's largest load")
        table.columns("name", "strategy")
        table.columns("figure", "groups", "at the best", "median", "p90", "p99", "worst", "breaks its balance")
        for strategy, row in self.strategies.items():
            table.row(
                strategy, f"{row['groups']:,}", f"{row['best']:,}",
                *(percent(row[name]) for name in ("median", "p90", "p99", "worst")), f"{row['broken']:,}",
            )  # fmt: skip
        return table


def audit_fleet(
    offsets: str | Path,
    members: str | Path | None,
    out: str | Path,
    *,
    balance: BalanceWord = "both",
    progress: Progress | None = None,
    spark_settings: Mapping[str, str] | None = None,
    **parameters: Any,
) -> FleetReport:
    """Plan and audit a fleet on Spark; parameters are those of `evenlag.spark.run`."""
    spark = session_for((offsets, members), spark_settings, parameters.get("options"))
    summary = run(spark, offsets, members, out=out, balance=balance, progress=progress, **parameters)
    written = sink(spark, out)
    with described(spark, "the report of the command"):
        worst = _worst_groups(written.read("plans"), written.read("audit"), balance)
        strategies = _strategies(written.read(f"{SUMMARY}/strategies"))
        rejected = _reasons(written.read("rejects")) if summary.rejects + summary.member_rejects else []
        return FleetReport(summary, out, worst, strategies, rejected, written.names(OUTPUT))


def session_for(
    places: Iterable[str | Path | None], settings: Mapping[str, str] | None, options: Mapping[str, str] | None
) -> SparkSession:
    """Start Spark with what it needs to read from some places.

    Raises
    ------
    SourceError
        There are options for topics, and no topic.
    """
    topics = [place for place in places if place is not None and is_topic(place)]
    if options and not topics:
        raise SourceError("options of Kafka's source are for kafka://HOST:PORT/TOPIC, and no table is a topic")
    spark = local_session(settings=with_connector(settings or {}) if topics else settings)
    if topics:
        add_connector(spark)
    return spark


def stream_fleet(
    topic: str, out: str | Path, *, spark_settings: Mapping[str, str] | None = None, **parameters: Any
) -> None:
    """Plan and audit a stream of snapshots on Spark; parameters are those of `evenlag.spark.stream`."""
    spark = session_for([topic], spark_settings, None)
    stream(spark, topic, out=out, **parameters)


def batch_line(batch: Batch) -> str:
    """Say in a line what became of a batch."""
    parts = [
        f"batch {batch.number}: {batch.rows:,} rows came, {batch.snapshots:,} snapshots of a group audited",
        f"{batch.plans:,} rows planned",
        f"{batch.rejects:,} rejected",
        f"{batch.waiting:,} waiting",
    ]
    parts += [f"{batch.short:,} snapshots short of rows"] if batch.short else []
    parts += [f"{batch.failed:,} failed"] if batch.failed else []
    return ", ".join(parts) + f"; {batch.seconds:.1f} s"


def run_demo(
    out: Path, *, group_time_limit: float, progress: Progress | None = None
) -> FleetReport:  # fmt: skip
    """Run the job on the recorded snapshot that comes with evenlag, and draw a picture of it."""
    with as_file(files("evenlag.examples")) as folder:
        offsets, members = folder / "offsets.csv", folder / "members.csv"
        if not offsets.exists():
            raise SourceError(f"{offsets}: the recorded snapshot is missing; install evenlag from its repository")
        (out / PICTURE).unlink(missing_ok=True)  # of a demo before; tables are overwritten beside nothing else
        report = audit_fleet(
            offsets, members, out, overwrite=True, group_time_limit=group_time_limit, progress=progress
        )  # fmt: skip
    _draw_most_gained(report, out / PICTURE)
    return replace(report, written=[*report.written, str(out / PICTURE)])


def _draw_most_gained(report: FleetReport, picture: Path) -> None:
    """Draw the group that gains most in terms of its mean load, and every strategy over all groups."""
    written = sink(local_session(), report.out)
    plans, audit = written.read("plans"), written.read("audit")
    means = {row["group"]: row["mean"] for row in _mean_loads(plans).collect()}
    shown = max(report.groups, key=lambda row: ((row["today"] or 0) - row["best"]) / (means.get(row["group"]) or 1))
    loads = _member_loads(plans, shown["group"], means[shown["group"]])
    draw(loads, [row.asDict() for row in audit.collect()], means, picture)


def _mean_loads(plans: DataFrame) -> DataFrame:
    """Return the mean load of each group's busy members, those that the plan gives anything, and what it counts."""
    busy = sf.count_distinct("consumer_id")
    held = sf.sum(sf.when(sf.col("consumer_id").isNotNull(), sf.col("lag")))
    return plans.groupBy("snapshot_ts", "group").agg(
        sf.when(busy > 0, held / busy).cast("double").alias("mean"),
        sf.count("*").alias("partitions"),
        sf.count_if(sf.col("move") == "moved").alias("moves"),
        busy.alias("busy_members"),
    )


def _worst_groups(plans: DataFrame, audit: DataFrame, balance: str) -> list[Row]:
    """Return the groups with the largest difference between today's spread and the optimum's."""
    today = audit.filter(sf.col("strategy") == CURRENT).select("snapshot_ts", "group", sf.col("spread").alias("today"))
    best = audit.filter((sf.col("strategy") == OPTIMAL) & (sf.col("balance") == balance)).select(
        "snapshot_ts", "group", "status", "bound", "binding", sf.col("spread").alias("best")
    )
    rows = best.join(today, ["snapshot_ts", "group"], "left").join(_mean_loads(plans), ["snapshot_ts", "group"], "left")
    gain = sf.coalesce(sf.col("today") - sf.col("best"), sf.lit(0))
    return (
        rows.orderBy(sf.desc(gain), "snapshot_ts", "group")
        .withColumn("snapshot_ts", sf.col("snapshot_ts").cast("string"))  # JSON knows no times
        .na.fill(0, ["partitions", "busy_members", "moves"])
        .take(MOST_GROUPS)
    )


def _reasons(rejects: DataFrame) -> list[dict[str, Any]]:
    """Return why most rows are rejected."""
    counts = rejects.groupBy("source", "reason").count().orderBy(sf.desc("count"), "source", "reason")
    return [row.asDict() for row in counts.take(MOST_REASONS)]


def _strategies(table: DataFrame) -> dict[str, dict[str, Any]]:
    """Return how far each strategy is from the optimum over all groups."""
    names = {
        "groups": "groups", "best": "optimal", "median": "share_median", "p90": "share_p90", "p99": "share_p99",
        "worst": "share_max", "broken": "broken",
    }  # fmt: skip
    rows = table.orderBy("share_median", "share_max", "strategy").collect()
    return {row["strategy"]: {name: row[column] for name, column in names.items()} for row in rows}


def _member_loads(plans: DataFrame, group: str, mean: float) -> Loads:
    today: defaultdict[str, float] = defaultdict(float)
    planned: defaultdict[str, float] = defaultdict(float)
    for row in plans.filter(sf.col("group") == group).collect():
        for loads, member in ((today, row["previous_consumer_id"]), (planned, row["consumer_id"])):
            if member is not None:
                loads[member] += row["lag"]
    names = sorted(today | planned)
    return Loads(group, [today[name] for name in names], [planned[name] for name in names], mean)
