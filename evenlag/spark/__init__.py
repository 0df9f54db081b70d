"""Whole fleets with Spark: tables of many groups in, tables of plans, audits and rejected rows out.

Importing this package needs no Spark; a module is imported when one of its names below is asked for.
"""

from typing import TYPE_CHECKING

from evenlag.lazy import lazily

if TYPE_CHECKING:
    from evenlag.report.progress import progress_bar
    from evenlag.spark.columns.checks import check_members, check_offsets
    from evenlag.spark.columns.lags import with_lags
    from evenlag.spark.columns.rates import with_rates
    from evenlag.spark.driver.kafka import add_connector
    from evenlag.spark.driver.session import local_session
    from evenlag.spark.driver.sources import read_table
    from evenlag.spark.jobs.batch import Note, RunReport, run
    from evenlag.spark.jobs.plans import SolvedFleet, audit, plans, rejects, solve
    from evenlag.spark.jobs.replays import Replays, replay
    from evenlag.spark.jobs.sizes import size
    from evenlag.spark.jobs.streaming import Batch, stream
    from evenlag.spark.jobs.summary import AuditSummary, summary
    from evenlag.spark.offsets.packing import OffsetRange, Packing, Task, pack_offset_ranges
    from evenlag.spark.offsets.reading import read_packing

_HOMES = {
    "AuditSummary": "evenlag.spark.jobs.summary",
    "Batch": "evenlag.spark.jobs.streaming",
    "Note": "evenlag.spark.jobs.batch",
    "OffsetRange": "evenlag.spark.offsets.packing",
    "Packing": "evenlag.spark.offsets.packing",
    "Replays": "evenlag.spark.jobs.replays",
    "RunReport": "evenlag.spark.jobs.batch",
    "SolvedFleet": "evenlag.spark.jobs.plans",
    "Task": "evenlag.spark.offsets.packing",
    "add_connector": "evenlag.spark.driver.kafka",
    "audit": "evenlag.spark.jobs.plans",
    "check_members": "evenlag.spark.columns.checks",
    "check_offsets": "evenlag.spark.columns.checks",
    "local_session": "evenlag.spark.driver.session",
    "pack_offset_ranges": "evenlag.spark.offsets.packing",
    "plans": "evenlag.spark.jobs.plans",
    "progress_bar": "evenlag.report.progress",
    "read_packing": "evenlag.spark.offsets.reading",
    "read_table": "evenlag.spark.driver.sources",
    "rejects": "evenlag.spark.jobs.plans",
    "replay": "evenlag.spark.jobs.replays",
    "run": "evenlag.spark.jobs.batch",
    "size": "evenlag.spark.jobs.sizes",
    "solve": "evenlag.spark.jobs.plans",
    "stream": "evenlag.spark.jobs.streaming",
    "summary": "evenlag.spark.jobs.summary",
    "with_lags": "evenlag.spark.columns.lags",
    "with_rates": "evenlag.spark.columns.rates",
}

__all__ = [
    "AuditSummary",
    "Batch",
    "Note",
    "OffsetRange",
    "Packing",
    "Replays",
    "RunReport",
    "SolvedFleet",
    "Task",
    "add_connector",
    "audit",
    "check_members",
    "check_offsets",
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
    "summary",
    "with_lags",
    "with_rates",
]

if not TYPE_CHECKING:  # to a type checker every name would be there
    __getattr__, __dir__ = lazily(__name__, _HOMES)
