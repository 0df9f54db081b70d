"""Spark jobs for whole fleets: from tables of many groups to tables of plans, audits and rejected rows.

Importing this package does not need Spark; a module is imported on first use of one of its names below. Names in
capitals are the tables that jobs read (`OFFSETS`, `MEMBERS`) and write: objects that list their columns. They do not
need Spark either.
"""

from typing import TYPE_CHECKING

from evenlag.lazy import lazily

if TYPE_CHECKING:
    from evenlag.report.progress import progress_bar
    from evenlag.spark.driver.kafka import add_connector
    from evenlag.spark.driver.session import local_session
    from evenlag.spark.driver.sources import read_table
    from evenlag.spark.jobs.api import SolvedFleet, audit, plans, rejects, solve
    from evenlag.spark.jobs.batch import run
    from evenlag.spark.jobs.by_history import Replays, replay, size
    from evenlag.spark.jobs.commit_stream import CommitBatch, stream_commits
    from evenlag.spark.jobs.history import History, history
    from evenlag.spark.jobs.micro_batches import Batch, stream
    from evenlag.spark.jobs.run_report import Note, RunReport
    from evenlag.spark.jobs.summary import AuditSummary, summary
    from evenlag.spark.jobs.table_checks import check_members, check_offsets, with_rates
    from evenlag.spark.offsets.packed_source import read_packing
    from evenlag.spark.offsets.packing import OffsetRange, Packing, Task, pack_offset_ranges
    from evenlag.tables.outputs import (
        AUDIT,
        COMMITS,
        GROUPS,
        PASSED_OVER,
        PAST_GROUPS,
        PLANS,
        REBALANCES,
        REJECTS,
        REPLAY_STEPS,
        REPLAY_SUMMARY,
        REPLAYS,
        SIZES,
        SUMMARY_BINDING,
        SUMMARY_GROUPS,
        SUMMARY_REMEDIES,
        SUMMARY_STRATEGIES,
    )
    from evenlag.tables.schemas import MEMBERS, OFFSETS, Schema

_HOMES = {
    "AUDIT": "evenlag.tables.outputs",
    "COMMITS": "evenlag.tables.outputs",
    "GROUPS": "evenlag.tables.outputs",
    "MEMBERS": "evenlag.tables.schemas",
    "OFFSETS": "evenlag.tables.schemas",
    "PASSED_OVER": "evenlag.tables.outputs",
    "PAST_GROUPS": "evenlag.tables.outputs",
    "PLANS": "evenlag.tables.outputs",
    "REBALANCES": "evenlag.tables.outputs",
    "REJECTS": "evenlag.tables.outputs",
    "REPLAYS": "evenlag.tables.outputs",
    "REPLAY_STEPS": "evenlag.tables.outputs",
    "REPLAY_SUMMARY": "evenlag.tables.outputs",
    "SIZES": "evenlag.tables.outputs",
    "SUMMARY_BINDING": "evenlag.tables.outputs",
    "SUMMARY_GROUPS": "evenlag.tables.outputs",
    "SUMMARY_REMEDIES": "evenlag.tables.outputs",
    "SUMMARY_STRATEGIES": "evenlag.tables.outputs",
    "AuditSummary": "evenlag.spark.jobs.summary",
    "Batch": "evenlag.spark.jobs.micro_batches",
    "CommitBatch": "evenlag.spark.jobs.commit_stream",
    "History": "evenlag.spark.jobs.history",
    "Note": "evenlag.spark.jobs.run_report",
    "OffsetRange": "evenlag.spark.offsets.packing",
    "Packing": "evenlag.spark.offsets.packing",
    "Replays": "evenlag.spark.jobs.by_history",
    "RunReport": "evenlag.spark.jobs.run_report",
    "Schema": "evenlag.tables.schemas",
    "SolvedFleet": "evenlag.spark.jobs.api",
    "Task": "evenlag.spark.offsets.packing",
    "add_connector": "evenlag.spark.driver.kafka",
    "audit": "evenlag.spark.jobs.api",
    "check_members": "evenlag.spark.jobs.table_checks",
    "check_offsets": "evenlag.spark.jobs.table_checks",
    "history": "evenlag.spark.jobs.history",
    "local_session": "evenlag.spark.driver.session",
    "pack_offset_ranges": "evenlag.spark.offsets.packing",
    "plans": "evenlag.spark.jobs.api",
    "progress_bar": "evenlag.report.progress",
    "read_packing": "evenlag.spark.offsets.packed_source",
    "read_table": "evenlag.spark.driver.sources",
    "rejects": "evenlag.spark.jobs.api",
    "replay": "evenlag.spark.jobs.by_history",
    "run": "evenlag.spark.jobs.batch",
    "size": "evenlag.spark.jobs.by_history",
    "solve": "evenlag.spark.jobs.api",
    "stream": "evenlag.spark.jobs.micro_batches",
    "stream_commits": "evenlag.spark.jobs.commit_stream",
    "summary": "evenlag.spark.jobs.summary",
    "with_rates": "evenlag.spark.jobs.table_checks",
}

__all__ = [
    "AUDIT",
    "COMMITS",
    "GROUPS",
    "MEMBERS",
    "OFFSETS",
    "PASSED_OVER",
    "PAST_GROUPS",
    "PLANS",
    "REBALANCES",
    "REJECTS",
    "REPLAYS",
    "REPLAY_STEPS",
    "REPLAY_SUMMARY",
    "SIZES",
    "SUMMARY_BINDING",
    "SUMMARY_GROUPS",
    "SUMMARY_REMEDIES",
    "SUMMARY_STRATEGIES",
    "AuditSummary",
    "Batch",
    "CommitBatch",
    "History",
    "Note",
    "OffsetRange",
    "Packing",
    "Replays",
    "RunReport",
    "Schema",
    "SolvedFleet",
    "Task",
    "add_connector",
    "audit",
    "check_members",
    "check_offsets",
    "history",
    "local_session",
    "pack_offset_ranges",
    "plans",
    "progress_bar",
    "read_packing",
    "read_table",
    "rejects",
    "replay",
    "run",
    "size",
    "solve",
    "stream",
    "stream_commits",
    "summary",
    "with_rates",
]

if not TYPE_CHECKING:  # with `__getattr__`, a type checker would accept any name
    __getattr__, __dir__ = lazily(__name__, _HOMES)
