"""Text on the past of groups: which of them rebalance too often, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenlag.figures import percent
from evenlag.report.replay_text import duration
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
    table.columns("figure", "an hour", "rebalances", "members", "moved", "pause", "paused", "of the time")
    table.columns("remark", "causes")
    for row in rows:
        table.row(
            row["group"], f"{row['rebalances_per_hour']:.2f}", f"{row['rebalances']:,}", f"{row['members']:,}",
            f"{row['moved'] + row['forced']:,}", duration(_whole(row["pause_seconds"])),
            duration(_whole(row["paused_seconds"])) if row["pauses"] else duration(None),
            percent(row["paused_share"]) if row["pauses"] else percent(None), causes_of(row),
        )  # fmt: skip
    if groups > len(rows):
        table.below(f"and {groups - len(rows):,} more in the table groups")
    return table


def _whole(seconds: float | None) -> float | None:
    """Return seconds to a hundredth, or to whole ones from a minute on."""
    return None if seconds is None else round(seconds, 0 if seconds >= 60 else 2)
