"""Whole fleets with Spark: tables of many groups in, tables of plans, audits and rejected rows out.

Importing this package needs no Spark; it is imported when one of the names below is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenlag.pipeline.batch import Note, Summary, run
    from evenlag.pipeline.digest import Digest, summary
    from evenlag.pipeline.jobs import audit, plans, rejects
    from evenlag.pipeline.kafka import add_connector
    from evenlag.pipeline.lags import with_lags
    from evenlag.pipeline.packing import OffsetRange, Packing, Task, pack_offset_ranges
    from evenlag.pipeline.progress import progress_bar
    from evenlag.pipeline.rates import with_rates
    from evenlag.pipeline.reading import read_packing
    from evenlag.pipeline.replays import Replays, replay
    from evenlag.pipeline.session import local_session
    from evenlag.pipeline.sources import read_table
    from evenlag.pipeline.streaming import Batch, stream
    from evenlag.pipeline.validate import check_members, check_offsets

_HOMES = {
    "Batch": "streaming",
    "Digest": "digest",
    "Note": "batch",
    "OffsetRange": "packing",
    "Packing": "packing",
    "Replays": "replays",
    "Summary": "batch",
    "Task": "packing",
    "add_connector": "kafka",
    "audit": "jobs",
    "check_members": "validate",
    "check_offsets": "validate",
    "local_session": "session",
    "pack_offset_ranges": "packing",
    "plans": "jobs",
    "read_packing": "reading",
    "progress_bar": "progress",
    "read_table": "sources",
    "rejects": "jobs",
    "replay": "replays",
    "run": "batch",
    "stream": "streaming",
    "summary": "digest",
    "with_lags": "lags",
    "with_rates": "rates",
}

__all__ = [
    "Batch",
    "Digest",
    "Note",
    "OffsetRange",
    "Packing",
    "Replays",
    "Summary",
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
    "stream",
    "summary",
    "with_lags",
    "with_rates",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
