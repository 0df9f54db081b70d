"""Snapshot tables as files and rows: their columns, readers and writers (no Spark)."""

from typing import TYPE_CHECKING

from evenlag.lazy import lazily

if TYPE_CHECKING:
    from evenlag.tables.read import both_tables as both_tables
    from evenlag.tables.read import read_group, read_recorded_group, read_snapshots, records
    from evenlag.tables.writing import replay_document, write_replay

__all__ = [
    "read_group",
    "read_recorded_group",
    "read_snapshots",
    "records",
    "replay_document",
    "write_replay",
]

_HOMES = {
    "both_tables": "evenlag.tables.read",
    "read_group": "evenlag.tables.read",
    "read_recorded_group": "evenlag.tables.read",
    "read_snapshots": "evenlag.tables.read",
    "records": "evenlag.tables.read",
    "replay_document": "evenlag.tables.writing",
    "write_replay": "evenlag.tables.writing",
}

if not TYPE_CHECKING:  # with `__getattr__`, a type checker would accept any name
    __getattr__, __dir__ = lazily(__name__, _HOMES)
