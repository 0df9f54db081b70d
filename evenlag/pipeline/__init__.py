"""Whole fleets with Spark: tables of many groups in, tables of plans, audits and rejected rows out.

Importing this package needs no Spark; a module is imported when one of its names below is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenlag.errors import lacking

if TYPE_CHECKING:
    from evenlag.pipeline.columns.checks import check_members, check_offsets
    from evenlag.pipeline.columns.lags import with_lags
    from evenlag.pipeline.columns.rates import with_rates
    from evenlag.pipeline.jobs.batch import Note, RunReport, run
    from evenlag.pipeline.jobs.plans import SolvedFleet, audit, plans, rejects, solve
    from evenlag.pipeline.jobs.replays import Replays, replay
    from evenlag.pipeline.jobs.sizes import size
    from evenlag.pipeline.jobs.streaming import Batch, stream
    from evenlag.pipeline.jobs.summary import AuditSummary, summary
    from evenlag.pipeline.offsets.packing import OffsetRange, Packing, Task, pack_offset_ranges
    from evenlag.pipeline.offsets.reading import read_packing
    from evenlag.pipeline.spark.kafka import add_connector
    from evenlag.pipeline.spark.progress import progress_bar
    from evenlag.pipeline.spark.session import local_session
    from evenlag.pipeline.spark.sources import read_table

_HOMES = {
    "AuditSummary": "jobs.summary",
    "Batch": "jobs.streaming",
    "Note": "jobs.batch",
    "OffsetRange": "offsets.packing",
    "Packing": "offsets.packing",
    "Replays": "jobs.replays",
    "RunReport": "jobs.batch",
    "SolvedFleet": "jobs.plans",
    "Task": "offsets.packing",
    "add_connector": "spark.kafka",
    "audit": "jobs.plans",
    "check_members": "columns.checks",
    "check_offsets": "columns.checks",
    "local_session": "spark.session",
    "pack_offset_ranges": "offsets.packing",
    "plans": "jobs.plans",
    "progress_bar": "spark.progress",
    "read_packing": "offsets.reading",
    "read_table": "spark.sources",
    "rejects": "jobs.plans",
    "replay": "jobs.replays",
    "run": "jobs.batch",
    "size": "jobs.sizes",
    "solve": "jobs.plans",
    "stream": "jobs.streaming",
    "summary": "jobs.summary",
    "with_lags": "columns.lags",
    "with_rates": "columns.rates",
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


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:  # to a type checker every name would be there

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        except ModuleNotFoundError as error:
            if (text := lacking(error)) is None:
                raise
            raise ModuleNotFoundError(f"{__name__}.{name}: {text}", name=error.name) from error
