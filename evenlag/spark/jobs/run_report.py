"""The report of a batch job: its counts of rows and groups, its errors and its notes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from evenlag.errors import SourceError
from evenlag.figures import quantity
from evenlag.model.result import Status
from evenlag.spark.driver.choice import driver_of
from evenlag.spark.jobs.solved_tables import of_groups
from evenlag.spark.worker.first_results import NOT_COMPARED
from evenlag.spark.worker.group_work import LATE

MOST_LISTED = 20  # notes, and kinds of errors, in a report


@dataclass(frozen=True)
class Note:
    """A note on the input or the work, with its total count and the number of groups.

    `count` is None if the note does not count anything.
    """

    text: str
    count: int | None
    groups: int

    def __str__(self) -> str:
        text = self.text if self.count is None else f"{self.count:,} {self.text}"
        return f"{text} ({quantity(self.groups, 'group')})"


@dataclass(frozen=True)
class RunReport:
    """The report of `run`.

    A group with several snapshots counts once for each.

    Attributes
    ----------
    rows, plans, rejects, log_ends : int
        Rows of the offsets table; always `rows == plans + rejects + log_ends`. The last are usable rows of log ends
        alone, from which rates follow.
    member_rows, member_rejects : int
        Rows of the members table, and the rejected ones among them.
    statuses : dict of status to groups
    errors : tuple of str
        The errors of groups, the most frequent first. Equal ones are one text, with the number of groups and the name
        of one of them.
    notes : tuple of Note
        Clamped commits, dropped owners and the like, the most frequent first.
    seconds : float
    master : str
        Spark's master, such as `local[*]` or `spark://host:7077`.
    planned, unassigned, without_plan : int
        The rows of `plans`; always `plans == planned + unassigned + without_plan`. They have a consumer; they have
        none, because no member subscribes to the topic; their group has no plan.
    groups, failed : int
        All groups, and those without a plan. Their errors are in the table `groups`.
    late : int
        Groups that were reached only after the call's time limit. They have their first plan.
    not_compared : int
        Groups whose plan was not compared with the published strategies before the call's time limit. Their first plan
        stands.
    """

    rows: int
    plans: int
    rejects: int
    log_ends: int
    member_rows: int
    member_rejects: int
    statuses: dict[str, int]
    errors: tuple[str, ...]
    notes: tuple[Note, ...]
    seconds: float
    master: str
    planned: int = 0
    unassigned: int = 0
    without_plan: int = 0
    groups: int = 0
    failed: int = 0
    late: int = 0
    not_compared: int = 0


NO_OWNERS = "no row has an owner (consumer_id), so each partition counts as newly assigned"
NO_TAKERS = "no partition has a member that could take it: check group, snapshot_ts and topics of the members table"


def report_of(
    solved: DataFrame,
    plans: DataFrame,
    rejects: DataFrame,
    started: float,
    *,
    brief: bool,
    of_tables: Sequence[str] = (),
) -> RunReport:
    """Count rows and groups of a job that began at `started` (epoch); `brief` leaves out errors and notes.

    Parameters
    ----------
    solved : DataFrame
        The rows that tasks returned (`outputs.SOLVED`).
    plans, rejects : DataFrame
        The written tables.
    of_tables : sequence of str
        Notes on the columns of the input tables.

    Raises
    ------
    SourceError
        The rows read are not those written.
    """
    rejected = Counter({row["source"]: row["count"] for row in rejects.groupBy("source").count().collect()})
    totals = (sf.coalesce(sf.sum(name), sf.lit(0)) for name in ("offsets", "members", "log_ends"))
    rows, member_rows, past = _sums(solved, *totals)
    written, planned, unassigned, without_plan, owned = _sums(
        plans,
        sf.count("*"),
        sf.count("consumer_id"),
        sf.count_if(sf.col("move") == "unassigned"),
        sf.count_if(sf.col("move").isNull()),
        sf.count("previous_consumer_id"),
    )
    if rows != written + rejected["offsets"] + past or written != planned + unassigned + without_plan:
        raise SourceError(
            f"{rows} rows were read, {past} of them log ends alone, but {written + rejected['offsets']} written, of "
            f"which {planned} have a consumer, {unassigned} are unassigned and {without_plan} have no plan; please "
            "report this"
        )
    groups = of_groups(solved)
    by_status = groups.groupBy("status").agg(
        sf.count("*").alias("groups"),
        sf.count_if("late").alias("late"),
        sf.count_if(sf.array_contains("warnings", NOT_COMPARED)).alias("not_compared"),
    )
    counts = {row["status"]: row for row in by_status.orderBy("status").collect()}
    number = sum(row["groups"] for row in counts.values())
    named = any("consumer_id" in note for note in of_tables)
    told = [*of_tables, *([NO_OWNERS] if planned and not owned and not named else [])]
    told += [NO_TAKERS] if unassigned and not planned else []
    return RunReport(
        rows=rows,
        plans=written,
        rejects=rejected["offsets"],
        log_ends=past,
        member_rows=member_rows,
        member_rejects=rejected["members"],
        statuses={status: row["groups"] for status, row in counts.items()},
        errors=() if brief else errors_of(groups),
        notes=() if brief else (*(Note(text, None, number) for text in told), *_notes(groups)),
        seconds=time.time() - started,
        master=driver_of(solved.sparkSession).where,
        planned=planned,
        unassigned=unassigned,
        without_plan=without_plan,
        groups=number,
        failed=counts[Status.ERROR]["groups"] if Status.ERROR in counts else 0,
        late=sum(row["late"] for row in counts.values()),
        not_compared=sum(row["not_compared"] for row in counts.values()),
    )


def _sums(df: DataFrame, *columns: Column) -> list[Any]:
    [row] = df.agg(*columns).collect()
    return list(row)


def errors_of(groups: DataFrame, most: int = MOST_LISTED) -> tuple[str, ...]:
    """Return the errors of groups, the most frequent first; those that differ only in figures are one text.

    Parameters
    ----------
    groups : DataFrame
        `snapshot_ts, group, error`.
    most : int
        Number of texts; a last one counts the groups with other errors.
    """
    named = sf.concat(sf.lit("group '"), sf.col("group"), sf.lit("': "))
    text = sf.replace("error", named, sf.lit(""))
    kinds = (
        groups.filter("error is not null")
        .select("snapshot_ts", "group", "error", text.alias("text"))
        .groupBy(sf.regexp_replace("text", r"\d[\d,.]*", "…"))
        .agg(
            sf.count("*").alias("groups"),
            sf.count_distinct("text").alias("texts"),
            sf.min(sf.struct("group", "snapshot_ts", "error", "text")).alias("first"),
        )
    )
    rows = kinds.orderBy(sf.desc("groups"), "first").limit(most).collect()
    texts = [_named(row["groups"], row["texts"], row["first"]) for row in rows]
    if len(rows) == most:
        rest = groups.filter("error is not null").count() - sum(row["groups"] for row in rows)
        texts += [f"{quantity(rest, 'group')} with other errors; see the table groups"] if rest else []
    return tuple(texts)


def _named(groups: int, texts: int, first: Any) -> str:
    if groups == 1:
        return f"{first['group']} at {first['snapshot_ts']}: {first['error']}"
    if texts == 1:
        return f"{groups:,} groups: {first['text']}, e.g. {first['group']}"
    return f"{groups:,} groups, such as {first['group']}: {first['text']}"


def _notes(groups: DataFrame) -> tuple[Note, ...]:
    """Add up the warnings of the groups, which begin with a count or contain seconds; two have fields of their own."""
    warnings = groups.select(sf.explode("warnings").alias("warning"))
    warnings = warnings.filter(~sf.col("warning").isin(LATE, NOT_COMPARED))
    number = sf.regexp_extract("warning", r"^(\d+) ", 1).try_cast("bigint")
    text = sf.regexp_replace(sf.regexp_replace("warning", r"^\d+ ", ""), r"\b[\d.e-]+ s\b", "… s")
    counted = warnings.select(text.alias("text"), number.alias("n"))
    sums = counted.groupBy("text").agg(sf.sum("n").alias("count"), sf.count("*").alias("groups"))
    rows = sums.orderBy(sf.desc("groups"), "text").limit(MOST_LISTED).collect()
    return tuple(Note(row["text"], row["count"], row["groups"]) for row in rows)
