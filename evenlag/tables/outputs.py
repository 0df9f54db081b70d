"""The tables the pipeline gives, as Spark DDL: the contract of every last `select`.

Figures in messages are DOUBLE: with unequal weights they are fractions, and their sums can pass 64 bits. Whole
numbers are exact up to 2**53. Lags are BIGINT, always exact. `snapshot_ts` is text while it travels; the tables give
it back in the type it came with.
"""

from dataclasses import asdict
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from evenlag.compare.replay_result import Replay
from evenlag.compare.strategies import AuditRow

PLAN_FIELDS = (
    "topic STRING, partition INT, lag BIGINT, previous_consumer_id STRING, consumer_id STRING, move STRING"
)  # fmt: skip


def _audit_fields() -> str:
    """Columns of `AuditRow`, and the group's `rejected_rows`."""
    kinds = {str: "STRING", tuple: "STRING", bool: "BOOLEAN", float: "DOUBLE", int: "BIGINT"}
    names: list[str] = []
    for name, hint in get_type_hints(AuditRow).items():
        parts = get_args(hint) if get_origin(hint) is UnionType else (get_origin(hint) or hint,)
        names += ["rejected_rows BIGINT"] if name == "seconds" else []
        names.append(f"{name} {next(kinds[kind] for kind in kinds if any(issubclass(part, kind) for part in parts))}")
    return ", ".join(names)


AUDIT_FIELDS = _audit_fields()

KEY_FIELDS = "snapshot_ts STRING, `group` STRING"
"""A row per group and snapshot."""

KEY = ("snapshot_ts", "group")

PLANS = f"{KEY_FIELDS}, {PLAN_FIELDS}"
"""A row per accepted offsets row. `consumer_id` is null where nobody subscribes or the group failed; `move` is kept,
moved, forced or unassigned, and null where the group failed."""

AUDIT = f"{KEY_FIELDS}, {AUDIT_FIELDS}"
"""A row per group, strategy and balance; `binding` joins its items with `;`."""

REJECTS = (
    "source STRING, snapshot_ts STRING, `group` STRING, topic STRING, `partition` INT, consumer_id STRING, "
    "reason STRING, row STRING"
)
"""A row per row that was not accepted: `source` is the table (offsets or members), `row` the row as it came, as JSON
text, or the line itself where it could not be read; the columns between are for filtering."""

ROWS = (
    f"{KEY_FIELDS}, topic STRING, partition INT, lag BIGINT, consumer_id STRING, clamped STRING, rejected BOOLEAN, "
    f"mark BIGINT, log_start_offset BIGINT, log_end_offset BIGINT, current_offset BIGINT, predicted BOOLEAN, "
    f"member STRUCT<topics ARRAY<STRING>, weight DOUBLE, max_partitions BIGINT, generation BIGINT, assignor STRING>"
)
"""Rows on their way to the executors, of partitions and of members (`member` is null in those of partitions). `mark`
says which of several copies counts. Columns from `mark` on are there only where they say something; without `member`
there is no members table."""

GROUPS = (
    f"{KEY_FIELDS}, status STRING, method STRING, objective DOUBLE, bound DOUBLE, gap DOUBLE, pays BOOLEAN, "
    "late BOOLEAN, seconds DOUBLE, attempt INT, error STRING, warnings ARRAY<STRING>, beyond_end BIGINT, "
    "before_start BIGINT, rejected_rows BIGINT"
)
"""A row per group: what became of it. `pays`: whether the plan saves what `only_if_better` asks for, null where nothing
was asked. `late`: its turn came after the time of the call was up. `attempt`: how many attempts at its task failed
before."""

SOLVED = f"{GROUPS}, plan ARRAY<STRUCT<{PLAN_FIELDS}>>, audit ARRAY<STRUCT<{AUDIT_FIELDS}>>"
"""The same with its plan and its audit, as the executors give it."""

REPLAY_SUMMARY_FIELDS = (
    "strategy STRING, best BOOLEAN, rebalances BIGINT, moves BIGINT, forced_moves BIGINT, mean_spread DOUBLE, "
    "p99_spread DOUBLE, mean_makespan DOUBLE, cost DOUBLE, mean_lag DOUBLE, seconds_above DOUBLE, error STRING"
)

REPLAY_STEP_FIELDS = (
    "strategy STRING, since STRING, snapshot_ts STRING, seconds DOUBLE, rebalance STRING, moves BIGINT, "
    "forced_moves BIGINT, members BIGINT, spread DOUBLE, makespan DOUBLE, mean_load DOUBLE, lag_before DOUBLE, "
    "produced DOUBLE, consumed DOUBLE, expired DOUBLE, restated DOUBLE, lag DOUBLE"
)

REPLAY_KEY = (
    "`group` STRING, since STRING, until STRING, snapshots BIGINT, capacity DOUBLE, capacity_source STRING, "
    "recorded_lag DOUBLE"
)

REPLAY_SUMMARY = f"{REPLAY_KEY}, {REPLAY_SUMMARY_FIELDS}"
"""A row per group and strategy; a group that could not be replayed is one row without strategy, with its error."""

REPLAY_STEPS = f"`group` STRING, {REPLAY_STEP_FIELDS}"
"""A row per group, strategy and interval; see `evenlag.compare.replay_result.ReplayStep`."""

REPLAYS = (
    f"{REPLAY_KEY}, notes ARRAY<STRING>, summary ARRAY<STRUCT<{REPLAY_SUMMARY_FIELDS}>>, "
    f"steps ARRAY<STRUCT<{REPLAY_STEP_FIELDS}>>"
)
"""A row per group as the executors give it."""


SIZE_FIELDS = (
    "members BIGINT, drain_seconds DOUBLE, bound_seconds DOUBLE, range_seconds DOUBLE, "
    "cooperative_sticky_seconds DOUBLE, uniform_seconds DOUBLE, without_balance_seconds DOUBLE, "
    "balance_costs_seconds DOUBLE"
)

SIZES = (
    f"`group` STRING, snapshot_ts STRING, snapshots BIGINT, members BIGINT, capacity DOUBLE, capacity_source STRING, "
    f"incoming DOUBLE, fewest BIGINT, proven BOOLEAN, binding_from BIGINT, hottest_topic STRING, "
    f"hottest_partition BIGINT, hottest_seconds DOUBLE, notes ARRAY<STRING>, error STRING, "
    f"sizes ARRAY<STRUCT<{SIZE_FIELDS}>>"
)
"""A row per group: how many members it needs, from its latest snapshot; seconds that are null: never. A group that
cannot be sized has its error, and no sizes."""


def with_doubles(row: dict[str, Any], ddl: str) -> dict[str, Any]:
    """Return a row with its DOUBLE figures as such: Arrow refuses whole numbers that a double cannot tell apart."""
    return row | {name: float(row[name]) for name in _doubles(ddl) if row[name] is not None}


@cache
def _doubles(ddl: str) -> tuple[str, ...]:
    kinds = zip(columns(ddl), (field.split()[1] for field in ddl.split(", ")), strict=True)
    return tuple(name for name, kind in kinds if kind == "DOUBLE")


def columns(ddl: str) -> list[str]:
    """Return the column names of one of the tables above."""
    return [field.split()[0].strip("`") for field in ddl.split(", ")]


def replay_row(replayed: Replay) -> dict[str, Any]:
    """Return a replay as a row of `REPLAYS`, in plain values."""
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
