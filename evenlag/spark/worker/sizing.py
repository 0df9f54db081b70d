"""What an executor does to size a group from its snapshots. Needs no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenlag.compare.members_needed import SizeOptions, run
from evenlag.compare.speeds import speeds
from evenlag.tables.group import GroupRows
from evenlag.tables.past import snapshots


def sized(rows: Sequence[GroupRows], *, options: SizeOptions) -> dict[str, Any]:
    """Size a group by its latest snapshot (`schemas.SIZES`).

    Raises
    ------
    InvalidProblemError
        As `evenlag.compare.size`; or the rows make no history, or nobody knows how fast members read.
    """
    usable = [snapshot for snapshot in rows if snapshot.topics]
    record = snapshots(usable) if len(usable) > 1 else []
    latest = usable[0] if usable else rows[0]
    problem = record[-1].problem if record else latest.problem()
    given = None if options.capacity is None else float(options.capacity)
    known = speeds(problem, record, given)
    found = run(problem, options, known.capacity.rate, known.rates)
    figures = found.to_dict()
    topic, partition = found.hottest or (None, None)
    return {
        "group": latest.group,
        "snapshot_ts": record[-1].ts if record else latest.snapshot_ts,
        "snapshots": len(rows),
        "members": len(problem.members),
        "capacity": float(found.capacity),
        "capacity_source": known.capacity.source,
        "incoming": float(found.incoming),
        "hottest_topic": topic,
        "hottest_partition": partition,
        "notes": [*problem.warnings, *found.notes],
        "error": None,
        **{name: figures[name] for name in ("fewest", "proven", "binding_from", "hottest_seconds", "sizes")},
    }


def unsized(group: str, count: int, error: str) -> dict[str, Any]:
    """Return the row of a group of so many snapshots that cannot be sized."""
    return {"group": group, "snapshots": count, "notes": [], "sizes": [], "error": error}
