"""Text on the past of groups: which of them rebalance too often, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenlag.figures import duration, percent
from evenlag.report.sheet import Sheet
from evenlag.tables.outputs import CAUSES

MOST_GROUPS = 10  # rows in a table of groups


def causes_of(row: Mapping[str, Any]) -> str:
    """Return the causes of a group's rebalances with their numbers, the most frequent first."""
    counts = {cause: row[name] for name, cause in CAUSES.items() if row[name]}
    return ", ".join(f"{count:,} {cause}" for cause, count in sorted(counts.items(), key=lambda each: -each[1]))


def past_table(rows: Sequence[Mapping[str, Any]], groups: int) -> Sheet:
    """Return the groups that rebalance most often, given the first of `groups` rows."""
    table = Sheet("groups that rebalance most often")
    table.columns("name", "group")
    table.columns("figure", "per hour", "rebalances", "members", "moved", "pause", "paused", "of the time")
    table.columns("remark", "causes")
    for row in rows:
        paused, share = (row["paused_seconds"], row["paused_share"]) if row["pauses"] else (None, None)
        table.row(
            row["group"], f"{row['rebalances_per_hour']:.2f}", f"{row['rebalances']:,}", f"{row['members']:,}",
            f"{row['moved'] + row['forced']:,}", duration(readable(row["pause_seconds"])),
            duration(readable(paused)), percent(share), causes_of(row),
        )  # fmt: skip
    if groups > len(rows):
        table.below(f"and {groups - len(rows):,} more in the table groups")
    return table


def past_document(figures: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the section of a fleet's page about rebalances.

    Parameters
    ----------
    figures : mapping
        As `evenlag.spark.jobs.history.past_figures` returns.
    source : str
        Where the history lies, as given.
    """
    rows = figures["most_rebalances"]
    names = ("group", "rebalances_per_hour", "rebalances", "members", "moved", "forced", "pause_seconds", "pauses")
    shown = [
        {name: row[name] for name in (*names, "paused_seconds", "paused_share")} | {"causes": causes_of(row)}
        for row in rows
    ]
    span = {"since": min(row["since"] for row in rows), "until": rows[0]["until"]} if rows else {}
    sums = {name: figures[name] for name in ("groups", "rebalancing", "paused_seconds")}
    return {"source": source, **sums, "rows": shown} | span


def readable(seconds: float | None) -> float | None:
    """Return seconds for readers: to a hundredth, or to whole ones from a minute on."""
    return None if seconds is None else round(seconds, 0 if seconds >= 60 else 2)
