"""Declarations of the output tables of Spark jobs and commands, column by column.

Figures in messages are "number" (DOUBLE): with unequal weights they are fractions, and their sums can pass 64 bits.
Whole numbers are exact up to 2**53. Lags are "integer" (BIGINT) and always exact. `snapshot_ts` is text between jobs;
the output tables have it in its input type.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from evenlag.compare.members_needed import SIZE_FIGURES
from evenlag.compare.replay_result import REPLAY_FIGURES, Replay, ReplayStep, ReplaySummary
from evenlag.compare.strategies import AuditRow
from evenlag.model import figure_tables
from evenlag.model.figure_tables import Figure, values_of
from evenlag.tables.columns import Column, Table
from evenlag.tables.schemas import Schema


def table_of(figures: Iterable[Figure]) -> Table:
    """Return figures as the columns of a table."""
    return Table(Column(*figure) for figure in figures)


def figures_of(row: type) -> Table:
    """Return the columns of a dataclass: types from its annotations, descriptions from its docstring."""
    return table_of(figure_tables.figures_of(row))


def _rows(name: str, fields: Table, about: str) -> Column:
    """Return a column of lists of rows."""
    return Column(name, "structs", f"{about}: {', '.join(f'`{each}`' for each in fields.names)}.", of=fields)


SNAPSHOT_TS, GROUP = Column("snapshot_ts", "string", "Time of the snapshot."), Column(*figure_tables.GROUP)

KEY_FIELDS = Table((SNAPSHOT_TS, GROUP))
"""Columns that identify a group in a snapshot."""

KEY = KEY_FIELDS.names

PLAN_FIELDS = Table(
    (
        Column("topic", "string", "Topic."),
        Column("partition", "int", "Partition id."),
        Column("lag", "integer", "Lag in messages."),
        Column("previous_consumer_id", "string", "Owner in the snapshot; null: no owner."),
        Column("consumer_id", "string", "Member in the plan; null: no member subscribes, or the group failed."),
        Column("move", "string", "`kept`, `moved`, `forced` (no owner), `unassigned`; null: the group failed."),
    )
)  # fmt: skip

_KEPT = "`snapshot_ts` has the same type as in the input."

PLANS = Schema((*KEY_FIELDS, *PLAN_FIELDS), f"One row per accepted row of the offsets table. {_KEPT}")

_FIGURES = figures_of(AuditRow)
_BEFORE_SECONDS = _FIGURES.names.index("seconds")
AUDIT_FIELDS = Table(
    (
        *_FIGURES[:_BEFORE_SECONDS],
        Column("rejected_rows", "integer", "Rows of the group that were rejected."),
        *_FIGURES[_BEFORE_SECONDS:],
    )
)

AUDIT = Schema((*KEY_FIELDS, *AUDIT_FIELDS), f"One row per group, strategy and balance. {_KEPT}")

REJECTS = Schema(
    (
        Column("source", "string", "Input table: `offsets` or `members`."),
        *KEY_FIELDS,
        Column("topic", "string", "Topic."),
        Column("partition", "int", "Partition id."),
        Column("consumer_id", "string", "Owner or member."),
        Column("reason", "string", "Reason for the rejection."),
        Column("row", "string", "The input row as JSON; the line itself if it could not be parsed."),
    ),
    "One row per rejected row.",
)

GROUPS = Schema(
    (
        *KEY_FIELDS,
        Column("status", "string", "Status of the plan, or of the audit if no plan was requested."),
        Column("method", "string", "Stage or strategy that found the plan."),
        Column("objective", "number", "Spread plus the price of moves and other costs of pairs, in messages."),
        Column("bound", "number", "Proven lower bound of the objective, in messages."),
        Column("bound_by", "string", "Stage that proved the bound; null: there is no bound."),
        Column("gap", "number", "Objective − bound, as a share of the mean load."),
        Column("crossings", "integer", "Traffic (without it: partitions) read across racks; null: racks unknown."),
        Column("traffic", "integer", "Traffic of all its partitions; null: unknown, so `crossings` counts partitions."),
        Column("moved_size", "integer", "Total size of the partitions that leave their owner; null: sizes unknown."),
        Column("cause", "string", "Cause of the group's state (docs/diagnose.md); null: not audited, or no time."),
        Column("verdict", "string", "The cause and the first remedy in one sentence."),
        Column("remedy", "string", "Kind of the first remedy."),
        Column("change", "string", "The first remedy, without names and numbers of the group."),
        Column("recovers", "number", "Share of today's spread (or drain time) that it saves; null: not comparable."),
        Column("pays", "boolean", "True if the plan saves as much as `only_if_better` requires; null: not requested."),
        Column("late", "boolean", "True if the call's time limit had passed before the group was solved."),
        Column("seconds", "number", "Time spent on the group, in seconds."),
        Column("attempt", "int", "Number of failed attempts of its Spark task before this one."),
        Column("error", "string", "Reason why the group has no plan; else null."),
        Column("warnings", "strings", "Notes on the input, and on stages that failed."),
        Column("beyond_end", "integer", "Commits beyond the log end; their lag is taken as 0."),
        Column("before_start", "integer", "Commits before the log start; lag is counted from the log start."),
        Column("rejected_rows", "integer", "Rows of the group that were rejected."),
    ),
    f"One row per group with its result. The last three columns are null if no task processed the group. {_KEPT}",
)  # fmt: skip

SOLVED = Table(
    (
        *GROUPS,
        Column("audit", "structs", of=AUDIT_FIELDS),
        Column("task", "int", "Number of the task."),
        Column("plans", "bytes", "Plans of several groups (`PLANS`), as a stream of Arrow."),
        Column("rejects", "structs", of=REJECTS),
        Column("log_ends", "integer", "Usable rows of log ends alone."),
        Column("offsets", "integer", "Rows of the offsets table that the task read."),
        Column("members", "integer", "Rows of the members table that the task read."),
    )
)
"""One row per group with its result and audit, as executors return it; and rows without a group that have what the task
read and returns for many groups at once: the columns from `task` on."""

QUANTILES = {"median": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
_WORDS = {"median": "median", "p90": "90th percentile", "p99": "99th percentile", "max": "maximum"}
_DISTANCES = {
    "excess": "Excess of the objective over the optimum's, in messages",
    "share": "Excess as a share of the optimum's largest load",
}
_BINDING = Column("binding", "string", "Rules that limit the optimum, joined by `;`; null: none was found.")

SUMMARY_GROUPS = Schema(
    (
        *KEY_FIELDS,
        Column("status", "string", "Status of the optimum."),
        Column("spread_today", "number", "Spread of the current assignment, in messages; null: no owners."),
        Column("spread_best", "number", "Spread of the optimum, in messages."),
        Column("recoverable", "number", "`spread_today` − `spread_best`, in messages."),
        Column("drain_today", "number", "Largest load of the current assignment, in messages; null: no owners."),
        Column("drain_best", "number", "Largest load of the optimum, in messages."),
        Column("drain_saved", "number", "`drain_today` − `drain_best`, in messages."),
        _BINDING,
    ),
    f"One row per group and snapshot, most to recover first. {_KEPT}",
)

SUMMARY_STRATEGIES = Schema(
    (
        Column("strategy", "string", "Strategy."),
        Column("balance", "string", "Balance that it promises."),
        Column("groups", "integer", "Number of groups and snapshots."),
        Column("broken", "integer", "Number of those in which it breaks its promise. They have no excess."),
        Column("optimal", "integer", "Number of those in which no better plan was found."),
        Column("optimal_share", "number", "`optimal` as a share of `groups`."),
        *(
            Column(f"{figure}_{name}", "number", f"{about}: {_WORDS[name]}.")
            for figure, about in _DISTANCES.items()
            for name in QUANTILES
        ),
    ),
    "One row per strategy, the one nearest to the optimum first.",
)

SUMMARY_BINDING = Schema(
    (
        Column("balance", "string", "Balance of the optimum."),
        Column("binding", "string", "Rule that limits the optimum."),
        Column("groups", "integer", "Number of groups and snapshots in which it does."),
        Column("share", "number", "`groups` as a share of those that were solved under this balance."),
    ),
    "One row per balance and rule that limits optima, the most frequent first.",
)

SUMMARY_REMEDIES = Schema(
    (
        Column("cause", "string", "Cause of the groups' state."),
        Column("remedy", "string", "Kind of the first remedy."),
        Column("change", "string", "The first remedy."),
        Column("groups", "integer", "Number of groups, by their latest snapshots."),
        Column(
            "recovers", "number", "Mean share of today's spread (or drain time) that it saves; null: not comparable."
        ),
    ),
    "One row per cause and first remedy, the most frequent first.",
)

REPLAY_SUMMARY_FIGURES = figures_of(ReplaySummary)
REPLAY_STEP_FIGURES = figures_of(ReplayStep)

REPLAY_KEY = table_of(REPLAY_FIGURES)

REPLAY_SUMMARY = Schema(
    (*REPLAY_KEY, *REPLAY_SUMMARY_FIGURES),
    "One row per group and strategy. A group that could not be replayed has one row, without strategy, with its error.",
)

REPLAY_STEPS = Schema((GROUP, *REPLAY_STEP_FIGURES), "One row per group, strategy and interval.")

_NOTES = Column("notes", "strings", "Assumptions, and notes on the snapshots.")

REPLAYS = Schema(
    (
        *REPLAY_KEY,
        _NOTES,
        _rows("summary", REPLAY_SUMMARY_FIGURES, "One entry per strategy"),
        _rows("steps", REPLAY_STEP_FIGURES, "One entry per strategy and interval"),
    ),
    "One row per group with its replay.",
)

SIZE_FIELDS = table_of(SIZE_FIGURES)
"""One entry per number of members; a null time means that the group never drains."""

SIZES = Schema(
    (
        GROUP,
        SNAPSHOT_TS,
        Column("snapshots", "integer", "Number of snapshots."),
        Column("members", "integer", "Current number of members."),
        Column("capacity", "number", "Messages per second that a member of weight 1 reads."),
        Column("capacity_source", "string", "`given`, or the method of estimation: `backlog` or `highest`."),
        Column("incoming", "number", "Messages produced per second."),
        Column("fewest", "integer", "Fewest members that meet the deadline; null: no number does."),
        Column("proven", "boolean", "True if fewer members are proven not to meet the deadline."),
        Column("binding_from", "integer", "Number of members from which on more do not help."),
        Column("hottest_topic", "string", "Topic of the hottest partition, the one with the longest drain time."),
        Column("hottest_partition", "integer", "Partition id of the hottest partition."),
        Column("hottest_seconds", "number", "Drain time of the hottest partition alone, in seconds."),
        Column(
            "handover_moves",
            "integer",
            "Partitions that leave their owner when the group changes to `fewest` members; null: not found.",
        ),
        Column("handover_units", "integer", "Total size of these partitions; their number if sizes are unknown."),
        Column("handover_bound", "integer", "Proven lower bound of the units that move under the deadline."),
        _NOTES,
        Column("error", "string", "Reason why the group cannot be sized; else null."),
        _rows("sizes", SIZE_FIELDS, "One entry per number of members"),
    ),
    "One row per group with the number of members it needs, by its latest snapshot. A null time means that the group "
    "never drains. A group that cannot be sized has an error and no sizes.",
)


REBALANCES = Schema(
    (
        Column("ts", "string", "End of the rebalance; of a KIP-848 group, when its target assignment was made."),
        GROUP,
        Column("protocol", "string", "Protocol of the group: `classic` or `consumer` (KIP-848)."),
        Column("generation", "integer", "Generation after it; of a KIP-848 group, epoch of the assignment."),
        Column(
            "why", "string",
            "Causes joined by `+`: `join`, `leave`, `subscription` (a member has other topics), `metadata` (topics or "
            "their partitions changed; KIP-848 alone), or `other`: records show none of these.",
        ),
        Column("members_before", "integer", "Number of members before it."),
        Column("members_after", "integer", "Number of members after it."),
        Column("joined", "integer", "Members that are new. A static member that restarts is not."),
        Column("left", "integer", "Members that are gone."),
        Column("resubscribed", "integer", "Members that stayed and have other topics."),
        Column("partitions", "integer", "Partitions with an owner after it."),
        Column("moved", "integer", "Partitions that were taken from an owner that stayed."),
        Column("forced", "integer", "Partitions whose owner left."),
        Column("settled_seconds", "number",
               "Seconds until every member had its assignment, for KIP-848 groups; null: not seen."),
        Column("last_commit_seconds", "number", "Seconds since the group's last commit before it; null: none within "
               "ten minutes."),
        Column("next_commit_seconds", "number", "Seconds until the group's first commit after it; null: none within "
               "ten minutes."),
        Column("pause_seconds", "number", "Seconds for which the partitions that got another owner were not read, by "
               "their commits; null: none did, or they have no commits within ten minutes."),
        Column("pause_ts", "string", "Time at which this pause began."),
    ),
    "One row per rebalance that a group's records show.",
)  # fmt: skip

COMMITS = Schema(
    (
        GROUP,
        Column("topic", "string", "Topic."),
        Column("partition", "int", "Partition id."),
        Column("commits", "integer", "Number of commits."),
        Column("deleted", "integer", "Number of times that the commit was deleted or expired."),
        Column("backward", "integer", "Commits with an offset below the one before."),
        Column(
            "usual_seconds",
            "number",
            "Median time between two commits, to a tenth of a second and at most ten minutes.",
        ),
        Column("first_ts", "string", "Time of the first commit."),
        Column("last_ts", "string", "Time of the last commit."),
        Column("first_offset", "integer", "Offset of the first commit."),
        Column("last_offset", "integer", "Offset of the last commit."),
    ),
    "One row per group and partition with a commit.",
)

CAUSES = {
    "joins": "join",
    "leaves": "leave",
    "subscriptions": "subscription",
    "metadata": "metadata",
    "others": "other",
}
"""Columns of `PAST_GROUPS` that count rebalances by their cause."""

PAST_GROUPS = Schema(
    (
        GROUP,
        Column("since", "string", "Time of the group's first commit or rebalance."),
        Column("until", "string", "Time of the last record of all groups."),
        Column("members", "integer", "Largest number of members after a rebalance."),
        Column("partitions", "integer", "Partitions with a commit."),
        Column("commits", "integer", "Number of commits."),
        Column("rebalances", "integer", "Number of rebalances."),
        Column("rebalances_per_hour", "number", "Rebalances in an hour; a shorter past counts as an hour."),
        *(Column(name, "integer", f"Rebalances with the cause `{cause}`.") for name, cause in CAUSES.items()),
        Column("moved", "integer", "Partitions that were taken from an owner that stayed, in all rebalances."),
        Column("forced", "integer", "Partitions whose owner left, in all rebalances."),
        Column("pauses", "integer", "Rebalances with a `pause_seconds`."),
        Column("pause_seconds", "number", "Median of these; null: there are none."),
        Column("paused_seconds", "number", "Time within at least one of these pauses."),
        Column("paused_share", "number", "`paused_seconds` as a share of the time from `since` to `until`."),
        Column("capacity", "number", "Messages per second that a member of weight 1 reads; null: not seen."),
        Column("capacity_source", "string", "`backlog`: the median of the minutes in which a member had messages left; "
               "`highest`: 99 % of the minutes are below, and members may be faster."),
        Column("capacity_cases", "integer", "Number of these minutes."),
    ),
    "One row per group of a history: how often it rebalances, what that costs, and how fast its members read.",
)  # fmt: skip

PASSED_OVER = Schema(
    (
        Column("reason", "string", "Reason why records were not used."),
        Column("records", "integer", "Number of records."),
    ),
    "One row per reason why records of a history were not used.",
)


def with_doubles(row: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """Return a row with floats in its DOUBLE columns, as Arrow refuses large ints there."""
    return {**row, **{name: float(row[name]) for name in table.doubles if row[name] is not None}}


def audit_fields(row: AuditRow, rejected_rows: int) -> dict[str, Any]:
    """Return a row of an audit with the columns of `AUDIT_FIELDS`."""
    binding = ";".join(row.binding) or None
    return {**with_doubles(vars(row), AUDIT_FIELDS), "binding": binding, "rejected_rows": rejected_rows}


def replay_row(replayed: Replay) -> dict[str, Any]:
    """Return a replay as a row of `REPLAYS`, with plain Python values."""
    summary, steps = (figure_tables.figures_of(row) for row in (ReplaySummary, ReplayStep))
    return {
        **replayed.figures,
        "notes": list(replayed.notes),
        "summary": [values_of(row, summary) for row in replayed.summary],
        "steps": [values_of(row, steps) for row in replayed.steps],
    }
