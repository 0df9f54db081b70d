"""What an executor does with the history of a group: replay it. Needs no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from evenlag.compare.replay_result import Replay, ReplaySummary
from evenlag.compare.simulation import ReplayOptions, run
from evenlag.tables.group import GroupRows
from evenlag.tables.outputs import REPLAY_STEP_FIELDS, REPLAY_SUMMARY_FIELDS, with_doubles
from evenlag.tables.past import snapshots


def replayed(rows: Sequence[GroupRows], *, options: ReplayOptions) -> dict[str, Any]:
    """Replay a group (`schemas.REPLAYS`).

    Raises
    ------
    InvalidProblemError
        As `evenlag.compare.replay`, or the rows make no history.
    """
    return document(run(snapshots(rows), options))


def not_replayed(group: str, count: int, error: str) -> dict[str, Any]:
    """Return the row of a group of so many snapshots that cannot be replayed."""
    summary = [asdict(ReplaySummary("", error=error)) | {"strategy": None}]
    return {"group": group, "snapshots": count, "notes": [], "summary": summary, "steps": []}


def document(replayed: Replay) -> dict[str, Any]:
    """Return a replay as plain values, as `schemas.REPLAYS` says."""
    return {
        "group": replayed.group,
        "since": replayed.since,
        "until": replayed.until,
        "snapshots": replayed.snapshots,
        "capacity": float(replayed.capacity.rate),
        "capacity_source": replayed.capacity.source,
        "recorded_lag": float(replayed.recorded_lag),
        "notes": list(replayed.notes),
        "summary": [with_doubles(asdict(row), REPLAY_SUMMARY_FIELDS) for row in replayed.summary],
        "steps": [with_doubles(asdict(row), REPLAY_STEP_FIELDS) for row in replayed.steps],
    }
