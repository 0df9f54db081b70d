"""The batch job: from snapshot tables to tables of plans, audits, rejects and groups, with a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from pyspark.sql import DataFrame, SparkSession

from evenlag.compare.traffic_price import TrafficPrice
from evenlag.errors import SourceError
from evenlag.model.literals import BalanceWord
from evenlag.model.names import taking
from evenlag.report.fleet_text import MOST_GROUPS, MOST_REASONS, MOST_REMEDIES, FleetAudit
from evenlag.report.picture import draw
from evenlag.search.options import SolveOptions
from evenlag.spark.driver.error_lines import blamed
from evenlag.spark.driver.kept import at_once, kept, within
from evenlag.spark.driver.protocol import described, needs_java
from evenlag.spark.driver.sinks import sink
from evenlag.spark.driver.sources import table_at
from evenlag.spark.driver.storage import Folder, read_parquet
from evenlag.spark.jobs.arguments import check_frames
from evenlag.spark.jobs.fleet_options import FleetOptions, PlanKeywords
from evenlag.spark.jobs.fleet_solver import FleetSolver
from evenlag.spark.jobs.run_report import RunReport, report_of
from evenlag.spark.jobs.solved_tables import audit_rows, group_rows, plan_rows, reject_rows
from evenlag.spark.jobs.summary import (
    AuditSummary,
    LatestRows,
    latest_rows,
    mean_loads,
    member_loads,
    priced_traffic,
    reasons,
    recoverable_sums,
    remedies,
    strategies_of,
    summary,
    traffic_sums,
    worst_groups,
)
from evenlag.tables.columns import TableKind
from evenlag.tables.fleet_data import FleetData
from evenlag.tables.outputs import SOLVED
from evenlag.tables.topics import is_topic

TABLES = ("plans", "audit", "rejects")
SUMMARY = "summary"  # folder of the tables of an `AuditSummary`
GROUPS = "groups"
REMEDIES = f"{SUMMARY}/remedies"
OUTPUT = (*TABLES, GROUPS, *(f"{SUMMARY}/{table.name}" for table in fields(AuditSummary)), REMEDIES)
TOO_BUSY = (
    "{out}: Spark could not run all tasks within the time limit of {limit:g} s, nor soon after it, so nothing was "
    "written; raise --time-limit, or wait for free executors"
)
COUNTING = "counting what was written"
LEAST_WAIT = 10.0  # seconds to wait for tasks after the limit, and then for first plans of their groups

_ORDER = {
    "plans": ("snapshot_ts", "group", "topic", "partition"),
    "audit": ("snapshot_ts", "group", "strategy", "balance"),
    "rejects": ("source", "snapshot_ts", "group", "topic", "partition", "consumer_id", "row", "reason"),
    GROUPS: ("snapshot_ts", "group"),
}


@taking(PlanKeywords, FleetOptions, SolveOptions, FleetData)
def run(
    spark: SparkSession,
    offsets: str | Path | DataFrame,
    members: str | Path | DataFrame | None = None,
    *,
    out: str | Path,
    overwrite: bool = False,
    options: Mapping[str, str] | None = None,
    **parameters: Unpack[PlanKeywords],
) -> RunReport:
    """Plan and audit every group of a fleet, and write all tables or none.

    Parameters
    ----------
    spark : SparkSession
    offsets, members : str, Path or DataFrame
        The tables, or their places (`read_table`).
    out : str or Path
        Folder for the Parquet tables `plans`, `audit`, `rejects`, `groups` and `summary` (a folder with those of
        `AuditSummary`), which must be empty or not exist. Or `table:CATALOG.NAMESPACE`: a namespace of Iceberg or
        Delta, for the same tables and `summary_strategies`, `summary_groups` and `summary_binding`.
    overwrite : bool
        Replace the tables of an earlier job.
    options : mapping of str to str, optional
        Options of Spark's Kafka source for tables that are topics: security, `startingOffsets`, …
    **parameters
        As in `plans`; a group's plan and audit share its time. With `time_limit=None`, only the time of each group is
        limited.

    Raises
    ------
    SourceError
        A table is neither a place nor a DataFrame of Spark, belongs to a stream, or cannot be read; the place cannot be
        written; or no task could start within the time limit. The message names the place.
    InvalidProblemError
        An option has an invalid value.
    """
    needs_java(spark, "run", "call solve, and write its tables with the session (examples/driver.py)")
    solver = FleetSolver(FleetOptions.of(parameters))
    check_frames(offsets, members, or_places=True)
    offsets_df = _table(spark, offsets, "offsets", options, solver.until)
    members_df = None if members is None else _table(spark, members, "members", options, solver.until)
    if offsets_df is None or (members is not None and members_df is None):
        raise SourceError(TOO_BUSY.format(out=out, limit=solver.options.time_limit))
    return run_with(solver, offsets_df, members_df, out, overwrite)


def run_with(
    solver: FleetSolver, offsets_df: DataFrame, members_df: DataFrame | None, out: str | Path, overwrite: bool = False
) -> RunReport:
    """Do the same as `run`, with a solver whose options are already checked, and tables.

    With one for a part of a fleet, write only `TABLES`, and leave `errors` and `notes` of the report empty.
    """
    spark, brief, limit = offsets_df.sparkSession, solver.part, solver.options.time_limit
    with sink(spark, out).whole(TABLES if brief else OUTPUT, overwrite) as folder, blamed(f"the job that writes {out}"):
        fleet = solver.check(offsets_df, members_df)
        places = [Folder(spark, f"{folder}/{name}", SOLVED.ddl) for name in ("solved", "late")]
        try:
            found, patience = solver.run(fleet, places[0]), max(limit or 0.0, LEAST_WAIT)
            solved = found.table(patience)
            if found.late is not None:
                with described(spark, "planning the groups that were not reached in time"):
                    late = within(spark, time.time() + patience, partial(kept, found.late, places[1]))
                if late is None:
                    raise SourceError(TOO_BUSY.format(out=out, limit=limit))
                solved = solved.unionByName(late)
            results = {
                "plans": fleet.dated(plan_rows(solved)),
                "audit": fleet.dated(audit_rows(solved)),
                "rejects": reject_rows(solved),
            } | ({} if brief else {GROUPS: fleet.dated(group_rows(solved))})
            writes = {
                f"writing {name}": partial(table.orderBy(*_ORDER[name]).write.parquet, f"{folder}/{name}")
                for name, table in results.items()
            }
            at_once(spark, writes)
            written = {name: read_parquet(spark, f"{folder}/{name}", results[name].schema) for name in TABLES}
            sums = {}
            if not brief:
                groups = read_parquet(spark, f"{folder}/{GROUPS}", results[GROUPS].schema)
                summed = vars(summary(written["audit"], solver.options.solving.balance))
                sums = {f"{SUMMARY}/{name}": table for name, table in summed.items()}
                sums[REMEDIES] = remedies(groups)
            work: dict[str, Callable[[], Any]] = {
                f"summing up the audit: {name}": partial(table.coalesce(1).write.parquet, f"{folder}/{name}")
                for name, table in sums.items()
            }
            work[COUNTING] = partial(
                report_of, solved, written["plans"], written["rejects"], solver.started, brief=brief,
                of_tables=fleet.tables.notes,
            )  # fmt: skip
            report: RunReport = at_once(spark, work)[COUNTING]
            return report
        finally:
            for place in places:
                place.leave()


def _table(
    spark: SparkSession,
    place: str | Path | DataFrame,
    kind: TableKind,
    options: Mapping[str, str] | None,
    until: float | None,
) -> DataFrame | None:
    """Read a table; None if Spark could not do so before `until` (epoch), because some formats need a task."""
    read = partial(table_at, spark, place, kind, options)
    # Reading a topic needs no task, and a connector added after the start is known only to this thread.
    return read() if isinstance(place, DataFrame) or is_topic(place) else within(spark, until, read)


def audited(
    spark: SparkSession,
    offsets: str | Path,
    members: str | Path | None,
    *,
    out: str | Path,
    balance: BalanceWord = "both",
    traffic_price: TrafficPrice | None = None,
    **parameters: Any,
) -> FleetAudit:
    """Run the batch job and return its report; parameters are those of `run`.

    With `traffic_price`, the report has the costs of traffic between racks.
    """
    report = run(spark, offsets, members, out=out, balance=balance, **parameters)
    written = sink(spark, out)
    priced = None if traffic_price is None else priced_traffic(written.read(GROUPS), written.read("audit"))
    parts: dict[str, Callable[[], Any]] = {
        "groups": lambda: worst_groups(written.read("plans"), written.read("audit"), balance, MOST_GROUPS, priced),
        "remedies": lambda: [row.asDict() for row in written.read(REMEDIES).take(MOST_REMEDIES)],
        "strategies": lambda: strategies_of(written.read(f"{SUMMARY}/strategies")),
        "recoverable": lambda: recoverable_sums(written.read(f"{SUMMARY}/groups")),
    }
    if report.rejects + report.member_rejects:
        parts["rejected"] = lambda: reasons(written.read("rejects"), MOST_REASONS)
    if priced is not None:
        parts["traffic"] = lambda: traffic_sums(priced)
    found = at_once(spark, {f"the report of the command: {name}": part for name, part in parts.items()})
    of_parts = {name.rpartition(" ")[2]: part for name, part in found.items()}
    return FleetAudit(
        summary=report,
        out=out,
        written=written.names(OUTPUT),
        price=traffic_price,
        **({"rejected": [], "traffic": None} | of_parts),
    )


def page_rows(spark: SparkSession, out: str | Path) -> LatestRows:
    """Collect what a page shows of the tables that an audit wrote to `out`.

    Raises
    ------
    SourceError
        There are no such tables, or Spark cannot read them.
    """
    with blamed(out):
        written = sink(spark, out)
        return latest_rows(written.read("plans"), written.read("audit"), written.read(GROUPS))


def draw_most_gained(spark: SparkSession, audit: FleetAudit, picture: Path) -> None:
    """Draw the group that gains most relative to its mean load, and every strategy over all groups."""
    written = sink(spark, audit.out)
    plans, rows = written.read("plans"), written.read("audit")
    means = {row["group"]: row["mean"] for row in mean_loads(plans).collect()}
    gains = {row["group"]: (row["today"] or 0) - (row["best"] or 0) for row in audit.groups}
    shown = max(gains, key=lambda group: gains[group] / (means.get(group) or 1))
    loads = member_loads(plans, shown, means[shown])
    draw(loads, [row.asDict() for row in rows.collect()], means, picture)
