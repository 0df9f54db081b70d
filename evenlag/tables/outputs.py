"""The tables that Spark jobs and commands give, column by column.

Figures in messages are "number" (DOUBLE): with unequal weights they are fractions, and their sums can pass 64 bits.
Whole numbers are exact up to 2**53. Lags are "integer" (BIGINT), always exact. `snapshot_ts` is text on the way; the
tables give it back in the type it came with.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from inspect import getdoc
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from evenlag.compare.replay_result import Replay, ReplayStep, ReplaySummary
from evenlag.compare.strategies import AuditRow
from evenlag.tables.columns import PLANNED, Column, Kind, Table

_ATTRIBUTE = re.compile(r"^(\w[\w, ]*) : .*\n((?:    .*\n?|\n(?=    ))*)", re.MULTILINE)


def figures_of(row: type) -> Table:
    """Return the columns of a dataclass: types from its annotations, sentences from its docstring's attributes."""
    kinds: dict[type, Kind] = {
        str: "string", tuple: "string", bool: "boolean", float: "number", Fraction: "number", int: "integer"
    }  # fmt: skip
    about = {
        name: " ".join(text.split())
        for names, text in _ATTRIBUTE.findall((getdoc(row) or "").partition("Attributes\n----------\n")[2])
        for name in names.split(", ")
    }
    columns = []
    for name, hint in get_type_hints(row).items():
        parts = get_args(hint) if get_origin(hint) is UnionType else (get_origin(hint) or hint,)
        kind = next(kinds[each] for each in kinds if any(issubclass(part, each) for part in parts))
        columns.append(Column(name, kind, about.get(name, "")))
    return Table(columns)


SNAPSHOT_TS, GROUP = Column("snapshot_ts", "string", "Time of the snapshot."), Column("group", "string", "Group id.")

KEY_FIELDS = Table((SNAPSHOT_TS, GROUP))
"""A row per group and snapshot."""

KEY = KEY_FIELDS.names

PLAN_FIELDS = Table(
    (
        Column("topic", "string", "Topic."),
        Column("partition", "int", "Partition id."),
        Column("lag", "integer", "Messages still to read."),
        Column("previous_consumer_id", "string", "Owner in the snapshot; null: none."),
        Column("consumer_id", "string", "Member in the plan; null: nobody subscribes, or the group failed."),
        Column("move", "string", "`kept`, `moved`, `forced` (no owner), `unassigned`; null: the group failed."),
    )
)  # fmt: skip

PLANS = Table((*KEY_FIELDS, *PLAN_FIELDS))
"""A row per accepted offsets row."""

_FIGURES = figures_of(AuditRow)
_BEFORE_SECONDS = _FIGURES.names.index("seconds")
AUDIT_FIELDS = Table(
    (
        *_FIGURES[:_BEFORE_SECONDS],
        Column("rejected_rows", "integer", "Rows of the group that were rejected."),
        *_FIGURES[_BEFORE_SECONDS:],
    )
)

AUDIT = Table((*KEY_FIELDS, *AUDIT_FIELDS))
"""A row per group, strategy and balance."""

REJECTS = Table(
    (
        Column("source", "string", "Table it came in: `offsets` or `members`."),
        *KEY_FIELDS,
        Column("topic", "string", "Topic, to filter by."),
        Column("partition", "int", "Partition id, to filter by."),
        Column("consumer_id", "string", "Owner or member, to filter by."),
        Column("reason", "string", "Why the row was left out."),
        Column("row", "string", "The row as it came, as JSON text; the line itself where it could not be read."),
    )
)
"""A row per row that was not accepted."""

ROWS = Table(
    (
        *KEY_FIELDS,
        Column("topic", "string"),
        Column("partition", "int"),
        Column("lag", "integer"),
        Column("consumer_id", "string"),
        Column("clamped", "string"),
        Column("rejected", "boolean"),
        Column("mark", "integer", "Tells which of several copies counts."),
        Column("log_start_offset", "integer"),
        Column("log_end_offset", "integer"),
        Column("current_offset", "integer"),
        Column("predicted", "boolean"),
        Column("replica_racks", "string", "A JSON array."),
        Column("move_size", "integer"),
        Column("traffic", "integer"),
        Column("member", "struct", "Null in rows of partitions.", of=PLANNED),
    )
)
"""Rows on their way to the executors, of partitions and of members. A column from `mark` on may be absent; without
`member` there is no members table."""

GROUPS = Table(
    (
        *KEY_FIELDS,
        Column("status", "string", "Status of the plan, or of the audit where no plan was asked for."),
        Column("method", "string", "Stage or strategy that found the plan."),
        Column("objective", "number", "Spread, and the price of moves and other costs of pairs; messages."),
        Column("bound", "number", "No plan has a lower objective; messages."),
        Column("bound_by", "string", "Stage that proved the bound; null: nothing did."),
        Column("gap", "number", "Objective − bound, as a share of the mean load."),
        Column("crossings", "integer", "Traffic, or without it partitions, read across racks; null: racks unknown."),
        Column("moved_size", "integer", "Sizes of the partitions that leave their owner; null: sizes unknown."),
        Column("pays", "boolean", "Whether the plan saves what `only_if_better` asks for; null: not asked."),
        Column("late", "boolean", "Whether its turn came after the time of the call was up."),
        Column("seconds", "number", "Time spent on the group."),
        Column("attempt", "int", "How many attempts at its task failed before."),
        Column("error", "string", "Why the group has no plan; else null."),
        Column("warnings", "strings", "Notes on its input, and stages that failed."),
        Column("beyond_end", "integer", "Commits beyond the log end: their lag is taken as 0."),
        Column("before_start", "integer", "Commits before the log start: lag is counted from there."),
        Column("rejected_rows", "integer", "Rows of the group that were rejected."),
    )
)  # fmt: skip
"""A row per group: the outcome. The last three are null where no task came to the group: nobody read its rows."""

SOLVED = Table((*GROUPS, Column("plan", "structs", of=PLAN_FIELDS), Column("audit", "structs", of=AUDIT_FIELDS)))
"""The same with its plan and its audit, as the executors give it."""

REPLAY_SUMMARY_FIGURES = figures_of(ReplaySummary)
REPLAY_STEP_FIGURES = figures_of(ReplayStep)

REPLAY_KEY = Table(
    (
        GROUP,
        Column("since", "string", "First snapshot."),
        Column("until", "string", "Last snapshot."),
        Column("snapshots", "integer", "Number of snapshots."),
        Column("capacity", "number", "Messages per second that a member of weight 1 reads."),
        Column("capacity_source", "string", "`given`, or how it was estimated: `backlog`, `highest`."),
        Column("recorded_lag", "number", "Mean lag of the group as recorded; messages."),
    )
)

REPLAY_SUMMARY = Table((*REPLAY_KEY, *REPLAY_SUMMARY_FIGURES))
"""A row per group and strategy; a group that could not be replayed is one row without strategy, with its error."""

REPLAY_STEPS = Table((GROUP, *REPLAY_STEP_FIGURES))
"""A row per group, strategy and interval; see `evenlag.compare.replay_result.ReplayStep`."""

_NOTES = Column("notes", "strings", "Assumptions, and what to know about the record.")

REPLAYS = Table(
    (
        *REPLAY_KEY,
        _NOTES,
        Column("summary", "structs", of=REPLAY_SUMMARY_FIGURES),
        Column("steps", "structs", of=REPLAY_STEP_FIGURES),
    )
)
"""A row per group as the executors give it."""

SIZE_FIELDS = Table(
    (
        Column("members", "integer", "Number of members."),
        Column("drain_seconds", "number", "Until the best plan found has read everything."),
        Column("bound_seconds", "number", "No plan that keeps the balance is faster."),
        Column("range_seconds", "number", "Until `range` has read everything."),
        Column("cooperative_sticky_seconds", "number", "Until `cooperative-sticky` has."),
        Column("uniform_seconds", "number", "Until `uniform` has."),
        Column("without_balance_seconds", "number", "Until the best plan without any count rule has."),
        Column("balance_costs_seconds", "number", "What the count rule costs."),
    )
)
"""An entry per number of members; null: never."""

SIZES = Table(
    (
        GROUP,
        SNAPSHOT_TS,
        Column("snapshots", "integer", "Number of snapshots."),
        Column("members", "integer", "Members today."),
        Column("capacity", "number", "Messages per second that a member of weight 1 reads."),
        Column("capacity_source", "string", "`given`, or how it was estimated: `backlog`, `highest`."),
        Column("incoming", "number", "Messages per second that come in."),
        Column("fewest", "integer", "The fewest members that meet the deadline; null: none do."),
        Column("proven", "boolean", "Whether fewer are proven not to do."),
        Column("binding_from", "integer", "From how many members on more do not help."),
        Column("hottest_topic", "string", "Topic of the partition that takes longest."),
        Column("hottest_partition", "integer", "Partition id of it."),
        Column("hottest_seconds", "number", "How long it takes alone."),
        Column(
            "handover_moves", "integer", "Partitions that leave their owner on the way to `fewest`; null: not found."
        ),
        Column("handover_units", "integer", "Their total size; their number where sizes are not known."),
        Column("handover_bound", "integer", "No plan that meets the deadline moves fewer units."),
        _NOTES,
        Column("error", "string", "Why the group cannot be sized; else null."),
        Column("sizes", "structs", of=SIZE_FIELDS),
    )
)
"""A row per group: how many members it needs, from its latest snapshot; seconds that are null: never. A group that
cannot be sized has its error, and no sizes."""


def with_doubles(row: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """Return a row with its DOUBLE figures as such: Arrow refuses whole numbers that a double cannot tell apart."""
    return {**row, **{name: float(row[name]) for name in table.doubles if row[name] is not None}}


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
        "summary": [with_doubles(asdict(row), REPLAY_SUMMARY_FIGURES) for row in replayed.summary],
        "steps": [with_doubles(asdict(row), REPLAY_STEP_FIGURES) for row in replayed.steps],
    }
