"""Spark jobs for whole fleets: from tables of many groups to tables of plans, audits and rejected rows.

Importing this package does not need Spark; a module is imported on first use of one of its names below. Names in
capitals are the tables that jobs read (`OFFSETS`, `MEMBERS`) and write: objects that list their columns. They do not
need Spark either.
"""

from typing import TYPE_CHECKING

from evenlag.lazy import lazily

if TYPE_CHECKING:
    from evenlag.report.progress import progress_bar as progress_bar
    from evenlag.spark.driver.kafka import add_connector as add_connector
    from evenlag.spark.driver.session import local_session as local_session
    from evenlag.spark.driver.sources import read_table as read_table
    from evenlag.spark.jobs.api import SolvedFleet as SolvedFleet
    from evenlag.spark.jobs.api import audit as audit
    from evenlag.spark.jobs.api import plans as plans
    from evenlag.spark.jobs.api import rejects as rejects
    from evenlag.spark.jobs.api import solve as solve
    from evenlag.spark.jobs.batch import run as run
    from evenlag.spark.jobs.by_history import Replays as Replays
    from evenlag.spark.jobs.by_history import replay as replay
    from evenlag.spark.jobs.by_history import size as size
    from evenlag.spark.jobs.commit_stream import CommitBatch as CommitBatch
    from evenlag.spark.jobs.commit_stream import stream_commits as stream_commits
    from evenlag.spark.jobs.history import History as History
    from evenlag.spark.jobs.history import history as history
    from evenlag.spark.jobs.micro_batches import Batch as Batch
    from evenlag.spark.jobs.micro_batches import stream as stream
    from evenlag.spark.jobs.run_report import Note as Note
    from evenlag.spark.jobs.run_report import RunReport as RunReport
    from evenlag.spark.jobs.summary import AuditSummary as AuditSummary
    from evenlag.spark.jobs.summary import summary as summary
    from evenlag.spark.jobs.table_checks import check_members as check_members
    from evenlag.spark.jobs.table_checks import check_offsets as check_offsets
    from evenlag.spark.jobs.table_checks import with_rates as with_rates
    from evenlag.spark.offsets.packed_source import read_packing as read_packing
    from evenlag.spark.offsets.packing import OffsetRange as OffsetRange
    from evenlag.spark.offsets.packing import Packing as Packing
    from evenlag.spark.offsets.packing import Task as Task
    from evenlag.spark.offsets.packing import pack_offset_ranges as pack_offset_ranges
    from evenlag.tables.outputs import AUDIT as AUDIT
    from evenlag.tables.outputs import COMMITS as COMMITS
    from evenlag.tables.outputs import GROUPS as GROUPS
    from evenlag.tables.outputs import PASSED_OVER as PASSED_OVER
    from evenlag.tables.outputs import PAST_GROUPS as PAST_GROUPS
    from evenlag.tables.outputs import PLANS as PLANS
    from evenlag.tables.outputs import REBALANCES as REBALANCES
    from evenlag.tables.outputs import REJECTS as REJECTS
    from evenlag.tables.outputs import REPLAY_STEPS as REPLAY_STEPS
    from evenlag.tables.outputs import REPLAY_SUMMARY as REPLAY_SUMMARY
    from evenlag.tables.outputs import REPLAYS as REPLAYS
    from evenlag.tables.outputs import SIZES as SIZES
    from evenlag.tables.outputs import SUMMARY_BINDING as SUMMARY_BINDING
    from evenlag.tables.outputs import SUMMARY_GROUPS as SUMMARY_GROUPS
    from evenlag.tables.outputs import SUMMARY_REMEDIES as SUMMARY_REMEDIES
    from evenlag.tables.outputs import SUMMARY_STRATEGIES as SUMMARY_STRATEGIES
    from evenlag.tables.schemas import MEMBERS as MEMBERS
    from evenlag.tables.schemas import OFFSETS as OFFSETS
    from evenlag.tables.schemas import Schema as Schema

_HOMES = {
    "evenlag.report.progress": "progress_bar",
    "evenlag.spark.driver.kafka": "add_connector",
    "evenlag.spark.driver.session": "local_session",
    "evenlag.spark.driver.sources": "read_table",
    "evenlag.spark.jobs.api": "SolvedFleet audit plans rejects solve",
    "evenlag.spark.jobs.batch": "run",
    "evenlag.spark.jobs.by_history": "Replays replay size",
    "evenlag.spark.jobs.commit_stream": "CommitBatch stream_commits",
    "evenlag.spark.jobs.history": "History history",
    "evenlag.spark.jobs.micro_batches": "Batch stream",
    "evenlag.spark.jobs.run_report": "Note RunReport",
    "evenlag.spark.jobs.summary": "AuditSummary summary",
    "evenlag.spark.jobs.table_checks": "check_members check_offsets with_rates",
    "evenlag.spark.offsets.packed_source": "read_packing",
    "evenlag.spark.offsets.packing": "OffsetRange Packing Task pack_offset_ranges",
    "evenlag.tables.outputs": (
        "AUDIT COMMITS GROUPS PASSED_OVER PAST_GROUPS PLANS REBALANCES REJECTS REPLAYS REPLAY_STEPS REPLAY_SUMMARY "
        "SIZES SUMMARY_BINDING SUMMARY_GROUPS SUMMARY_REMEDIES SUMMARY_STRATEGIES"
    ),
    "evenlag.tables.schemas": "MEMBERS OFFSETS Schema",
}

if not TYPE_CHECKING:  # type checkers read the imports above
    __all__, __getattr__, __dir__ = lazily(__name__, _HOMES)
