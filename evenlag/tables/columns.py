"""The contract of the snapshot tables: which columns they have, of which type, and which of them are needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

from evenlag.errors import SourceError

Row = dict[str, object]
TableKind = Literal["offsets", "members"]


class Column(NamedTuple):
    """A column of a table; a row without a value in a `required` one says nothing."""

    name: str
    kind: Literal["string", "integer", "number", "boolean", "strings"]
    required: bool = False


OFFSETS = (
    Column("snapshot_ts", "string"),
    Column("group", "string", required=True),
    Column("topic", "string", required=True),
    Column("partition", "integer", required=True),
    Column("log_start_offset", "integer"),
    Column("log_end_offset", "integer"),
    Column("current_offset", "integer"),
    Column("lag", "integer"),
    Column("consumer_id", "string"),
    Column("client_id", "string"),
    Column("host", "string"),
    Column("auto_offset_reset", "string"),
    Column("replica_racks", "strings"),
)
MEMBERS = (
    Column("snapshot_ts", "string"),
    Column("group", "string", required=True),
    Column("consumer_id", "string", required=True),
    Column("client_id", "string"),
    Column("host", "string"),
    Column("group_instance_id", "string"),
    Column("topics", "strings"),
    Column("weight", "number"),
    Column("max_partitions", "integer"),
    Column("generation", "integer"),
    Column("protocol", "string"),
    Column("assignor", "string"),
    Column("rack", "string"),
    Column("topics_regex", "string"),
    Column("group_epoch", "integer"),
    Column("assignment_epoch", "integer"),
    Column("claimed", "strings"),
    Column("claimed_generation", "integer"),
)
TABLES: dict[TableKind, tuple[Column, ...]] = {"offsets": OFFSETS, "members": MEMBERS}

# Columns beside them, for Spark, which reads lines that are no rows too.
MALFORMED = "_corrupt_record"  # Spark's own name for the text of a line that it could not read
LINE = "_line"  # the text of every line, where the reader has it


def check_columns(names: Sequence[str], kind: TableKind, place: str, *, many_snapshots: bool = False) -> None:
    """Refuse a table that lacks a required column, or has one of its columns twice.

    Parameters
    ----------
    names : sequence of str
        The columns it has.
    kind : {"offsets", "members"}
    place : str
        What the message calls the table, such as its file.
    many_snapshots : bool
        Its rows are told apart by `snapshot_ts` too, so that is needed.

    Raises
    ------
    SourceError
        The message names the columns.
    """
    known = [column.name for column in TABLES[kind]]
    needed = {column.name for column in TABLES[kind] if column.required}
    if many_snapshots:
        needed.add("snapshot_ts")
    missing = [name for name in known if name in needed and name not in names]
    if kind == "offsets" and "log_end_offset" not in names and "lag" not in names:
        missing.append("log_end_offset (or lag)")
    if missing:
        alone = len(names) == 1 and any(mark in names[0] for mark in ";\t|")
        hint = "; columns are to be separated by commas" if alone else ""
        raise SourceError(f"{place}: no column {', '.join(missing)}; the {kind} table has {', '.join(known)}{hint}")
    check_once([name for name in names if name in known], place)


def check_once(names: Sequence[str], place: str) -> None:
    """Refuse a table that has a column twice.

    Raises
    ------
    SourceError
        The message names the columns.
    """
    twice = [name or "without a name" for name, count in Counter(names).items() if count > 1]
    if twice:
        raise SourceError(f"{place}: column {', '.join(twice)} comes twice; keep one")
