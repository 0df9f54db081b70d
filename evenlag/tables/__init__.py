"""Snapshot tables as files and rows: their columns, readers and writers (no Spark)."""

from typing import TYPE_CHECKING

from evenlag.lazy import lazily

if TYPE_CHECKING:
    from evenlag.tables.read import both_tables as both_tables
    from evenlag.tables.read import read_group as read_group
    from evenlag.tables.read import read_recorded_group as read_recorded_group
    from evenlag.tables.read import read_snapshots as read_snapshots
    from evenlag.tables.read import records as records
    from evenlag.tables.writing import replay_document as replay_document
    from evenlag.tables.writing import replay_files as replay_files
    from evenlag.tables.writing import write_replay as write_replay

_HOMES = {
    "evenlag.tables.read": "read_group read_recorded_group read_snapshots records",
    "evenlag.tables.writing": "replay_document write_replay",
}
_INNER = {
    "evenlag.tables.read": "both_tables",
    "evenlag.tables.writing": "replay_files",
}

if not TYPE_CHECKING:  # type checkers read the imports above
    __all__, __getattr__, __dir__ = lazily(__name__, _HOMES, _INNER)
