"""The function that `mapInArrow` calls to size or replay groups from all their snapshots (no Spark import)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa

from evenlag.compare.members_needed import SizeOptions
from evenlag.compare.members_needed import run_with_handover as run_size
from evenlag.compare.replay_result import ReplaySummary
from evenlag.compare.simulation import ReplayOptions
from evenlag.compare.simulation import run as run_replay
from evenlag.compare.speeds import speeds
from evenlag.spark.worker.arrow_groups import group_rows
from evenlag.spark.worker.task import Counter
from evenlag.tables.fleet_data import NO_FLEET_DATA, FleetData
from evenlag.tables.group import GroupRows
from evenlag.tables.outputs import replay_row
from evenlag.tables.past import snapshots

Row = dict[str, Any]


@dataclass(frozen=True)
class ByHistory:
    """Task function that returns a row of `schema` for each group.

    Attributes
    ----------
    work : callable
        Returns the row of a group from its rows in all snapshots, in order of `snapshot_ts`.
    failure : callable
        Returns the row of a group that failed, from its name, the number of its snapshots, and the error.
    """

    work: Callable[[Sequence[GroupRows]], Row]
    failure: Callable[[str, int, str], Row]
    schema: Any
    done: Counter | None = None
    failed: Counter | None = None

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the rows of the groups of one task, from their input rows (`outputs.ROWS`)."""
        for group, each in groupby(group_rows(batches), key=lambda rows: rows.group):
            history, failed = list(each), False
            try:
                row = self.work(history)
            except Exception as error:  # an error of one group must not affect the others
                row, failed = self.failure(group, len(history), f"{type(error).__name__}: {error}"), True
            yield pa.RecordBatch.from_pylist([row], schema=self.schema)
            if self.done is not None:
                self.done.add(1)
            if self.failed is not None and failed:
                self.failed.add(1)


def sized(rows: Sequence[GroupRows], *, options: SizeOptions, data: FleetData = NO_FLEET_DATA) -> dict[str, Any]:
    """Size a group by its latest snapshot (`outputs.SIZES`).

    Raises
    ------
    InvalidProblemError
        As in `evenlag.compare.size`; or the rows do not form a history, or the capacity of members is unknown.
    """
    usable = [snapshot for snapshot in rows if snapshot.topics]
    record = snapshots(usable) if len(usable) > 1 or any(snapshot.past for snapshot in usable) else []
    latest = usable[0] if usable else rows[0]
    problem, of_data = data.added(record[-1].problem if record else latest.problem())
    given = None if options.capacity is None else float(options.capacity)
    known = speeds(problem, record, given)
    found = run_size(problem, options, known.capacity.rate, known.rates)
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
        "notes": [*problem.warnings, *of_data, *found.notes],
        "error": None,
        **{f"handover_{name}": (figures["handover"] or {}).get(name) for name in ("moves", "units", "bound")},
        **{name: figures[name] for name in ("fewest", "proven", "binding_from", "hottest_seconds", "sizes")},
    }


def unsized(group: str, count: int, error: str) -> dict[str, Any]:
    """Return the row of a group with `count` snapshots that cannot be sized."""
    return {"group": group, "snapshots": count, "notes": [], "sizes": [], "error": error}


def replayed(rows: Sequence[GroupRows], *, options: ReplayOptions) -> dict[str, Any]:
    """Replay a group (`outputs.REPLAYS`).

    Raises
    ------
    InvalidProblemError
        As in `evenlag.compare.replay`; or the rows do not form a history.
    """
    return replay_row(run_replay(snapshots(rows), options))


def not_replayed(group: str, count: int, error: str) -> dict[str, Any]:
    """Return the row of a group with `count` snapshots that cannot be replayed."""
    summary = [asdict(ReplaySummary("", error=error)) | {"strategy": None}]
    return {"group": group, "snapshots": count, "notes": [], "summary": summary, "steps": []}
