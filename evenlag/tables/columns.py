"""Declarations of the input tables' columns, from which types, checks, headers and the docs' tables are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

from evenlag.errors import SourceError
from evenlag.model.figure_tables import arrow_types
from evenlag.model.values import LARGEST_AMOUNT, LARGEST_WEIGHT, MAX_PARTITION

Row = dict[str, object]
Numbered = tuple[int, Mapping[str, Any]]
"""A row and its number in its source."""

TableKind = Literal["offsets", "members"]
Kind = Literal["string", "int", "integer", "number", "boolean", "strings", "racks", "bytes"]

DDL_TYPES: dict[str, str] = {
    "string": "STRING",
    "int": "INT",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
    "strings": "ARRAY<STRING>",
    "racks": "ARRAY<STRING>",
    "bytes": "BINARY",
}
WORDS: dict[str, str] = {
    "string": "text",
    "int": "integer",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "strings": "list of texts",
    "racks": "list of texts",
    "struct": "a row",
    "structs": "list of rows",
}
"""The name of each type in the docs."""


class Column(NamedTuple):
    """A column of a table.

    Attributes
    ----------
    kind : str
        The type of its values. Messages are "number" (DOUBLE) where sums can pass 64 bits, else "integer" (BIGINT).
        Lists of texts are "strings", or "racks" if texts in them may be empty.
    about : str
        Description for the docs, with the unit of its values.
    required : bool
        True if every row must have a value.
    least, most : float or None
        The range of its values, both ends included.
    planned : bool
        True if a plan depends on it. In the members table such a column is an attribute of the member: copies of a row
        must agree on it, Spark sends it to the tasks, and `model.from_rows.Member` has a field for it.
    of : Table or None
        The columns of a "struct" (one row) or "structs" (a list of rows).
    also : tuple of str
        Other names of the column in inputs; see `tables.column_names`.
    """

    name: str
    kind: Kind | Literal["struct", "structs"]
    about: str = ""
    required: bool = False
    least: float | None = None
    most: float | None = None
    planned: bool = False
    of: Table | None = None
    also: tuple[str, ...] = ()

    @property
    def checked(self) -> bool:
        """True if an invalid value raises an error, or on Spark rejects its row."""
        return self.required or self.planned or self.least is not None or self.most is not None

    @property
    def ddl(self) -> str:
        """The type as Spark DDL."""
        if self.of is None:
            return DDL_TYPES[self.kind]
        return f"STRUCT<{self.of.ddl}>" if self.kind == "struct" else f"ARRAY<STRUCT<{self.of.ddl}>>"


class Table(tuple[Column, ...]):
    """The columns of a table, in order."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in the order of a CSV header."""
        return tuple(column.name for column in self)

    @cached_property
    def doubles(self) -> tuple[str, ...]:
        """The names of the DOUBLE columns."""
        return tuple(column.name for column in self if column.kind == "number")

    @cached_property
    def ddl(self) -> str:
        """The columns and their types, as Spark DDL."""
        return ", ".join(f"`{column.name}` {column.ddl}" for column in self)

    def arrow(self) -> Any:
        """Return the Arrow schema. Needs pyarrow."""
        import pyarrow as pa

        texts = pa.list_(pa.string())
        types = {**arrow_types(), "strings": texts, "racks": texts, "bytes": pa.binary()}
        for column in self:
            if column.of is not None:
                row = pa.struct(list(column.of.arrow()))
                types[column.name] = row if column.kind == "struct" else pa.list_(row)
        return pa.schema([(column.name, types[column.kind if column.of is None else column.name]) for column in self])

    def markdown(self) -> str:
        """Return the columns as a Markdown table for the docs, with the names of required columns in bold."""
        rows = [
            (f"**`{column.name}`**" if column.required else f"`{column.name}`", WORDS[column.kind], column.about)
            for column in self
        ]
        return "\n".join(f"| {' | '.join(row)} |" for row in [("column", "type", "meaning"), ("---",) * 3, *rows])


LOG_ONLY = "log_only"
"""The column that marks rows of a time at which nothing but the log is known, so that no commit means no knowledge."""

_TIME, _MEMBER = ("timestamp", "time", "datetime", "ts"), ("member", "member_id", "consumer")
_GROUP = ("group_id", "group_name", "consumer_group", "consumer_group_id")

OFFSETS = Table(
    (
        Column(
            "snapshot_ts", "string",
            "Time of the snapshot, ISO 8601. **Required** on Spark and by `evenlag replay`. A table may hold several.",
            also=_TIME,
        ),
        Column("group", "string", "Group id.", required=True, also=_GROUP),
        Column("topic", "string", "Topic.", required=True, also=("topic_name",)),
        Column(
            "partition", "integer", "Partition id.",
            required=True, least=0, most=MAX_PARTITION, also=("partition_id",),
        ),
        Column(
            "log_start_offset", "integer", "Offset of the first message still in the log.",
            planned=True, also=("start_offset", "beginning_offset", "earliest_offset"),
        ),
        Column(
            "log_end_offset", "integer", "Offset that the next message will get.",
            planned=True, also=("end_offset", "latest_offset", "log_size"),
        ),
        Column(
            "current_offset", "integer", "Committed offset; null: never committed.",
            planned=True, also=("committed_offset", "offset"),
        ),
        Column(
            "lag", "integer", "Lag in messages; used where offsets are missing.",
            planned=True, also=("consumer_lag", "offset_lag"),
        ),
        Column(
            "consumer_id", "string", "Member id of the owner; null: no owner.", planned=True, also=(*_MEMBER, "owner")
        ),
        Column("client_id", "string", "Client id of the owner."),
        Column("host", "string", "Host of the owner."),
        Column(
            "auto_offset_reset", "string",
            "The consumers' `auto.offset.reset`: `latest`, `earliest` or `none`. Brokers do not know it, so snapshots "
            "leave it null.",
            planned=True,
        ),
        Column(
            "replica_racks", "racks",
            "Racks of the replicas, the preferred leader's first; an empty text for a replica whose rack is not known.",
            planned=True,
        ),
        Column(
            "move_size", "integer",
            "Size of the state that moves with the partition, in any unit; null: 1. Snapshots leave it null.",
            least=0, most=LARGEST_AMOUNT, planned=True,
        ),
        Column(
            "traffic", "integer",
            "Traffic of the partition, such as bytes per second; null: 1. Snapshots leave it null.",
            least=0, most=LARGEST_AMOUNT, planned=True,
        ),
        Column(
            LOG_ONLY, "boolean",
            "True: only the log's offsets are known for this time; commit, lag and owner are not "
            "([log ends alone](past.md#log-ends-alone)). Null: false.",
            planned=True,
        ),
    )
)  # fmt: skip
MEMBERS = Table(
    (
        Column(
            "snapshot_ts", "string",
            "Time of the snapshot, ISO 8601, the same instant as `snapshot_ts` of the offsets table.",
            also=_TIME,
        ),
        Column("group", "string", "Group id.", required=True, also=_GROUP),
        Column("consumer_id", "string", "Member id.", required=True, also=_MEMBER),
        Column("client_id", "string", "Client id."),
        Column("host", "string", "Host."),
        Column("group_instance_id", "string", "Instance id of a static member.", also=("instance_id",)),
        Column(
            "topics", "strings", "Subscribed topics; null: all topics of the group.",
            planned=True, also=("subscribed_topics",),
        ),
        Column(
            "weight", "number", "Capacity of the member, relative to the others.",
            least=1 / float(LARGEST_WEIGHT), most=float(LARGEST_WEIGHT), planned=True,
        ),
        Column("max_partitions", "integer", "Most partitions that the member may hold.", least=0, planned=True),
        Column(
            "generation", "integer", "Generation of the member's claim to its partitions.",
            planned=True, also=("member_epoch",),
        ),
        Column(
            "protocol", "string",
            "Protocol of the group: `classic`, `consumer` (KIP-848) or `follow` ([followers of a plan](follow.md)).",
        ),
        Column("assignor", "string", "Kafka's name of the assignor that the group uses.", planned=True),
        Column("rack", "string", "Rack of the member.", planned=True),
        Column("group_state", "string", "Kafka's name of the group's state, such as `Stable`.", also=("state",)),
        Column("topics_regex", "string", "Regular expression of its subscription, in RE2 syntax."),
        Column(
            "group_epoch", "integer",
            "Epoch of a KIP-848 group. In a group that follows a plan: version of the plan.",
        ),
        Column("assignment_epoch", "integer", "Epoch of the target assignment of a KIP-848 group."),
        Column("claimed", "strings", "Partitions that it claimed to hold when it last joined, such as `orders-0`."),
        Column("claimed_generation", "integer", "Generation in which it was assigned them."),
        Column(
            "assignment_user_data", "integer",
            "Bytes of user data that the leader of a classic group sent with its assignment; if there are any, the "
            "group cannot be [upgraded to KIP-848](migrate.md) without a stop.",
        ),
    )
)  # fmt: skip
TABLES: dict[TableKind, Table] = {"offsets": OFFSETS, "members": MEMBERS}
PLANNED = Table(column for column in MEMBERS if column.planned)
"""The columns of the members table that `Problem` uses."""

# Additional columns on Spark, which also keeps lines that are not rows.
MALFORMED = "_corrupt_record"  # Spark's name for the text of a line that it could not parse
LINE = "_line"  # the text of every line, if the reader keeps it


def check_columns(names: Sequence[str], kind: TableKind, place: str, *, many_snapshots: bool = False) -> None:
    """Raise an error if a table lacks a required column or has one of its columns twice.

    Parameters
    ----------
    names : sequence of str
        The table's columns.
    kind : {"offsets", "members"}
    place : str
        Name of the table in the message, such as its file.
    many_snapshots : bool
        True if the table may hold several snapshots, so that it needs `snapshot_ts`.

    Raises
    ------
    SourceError
        The message names the columns.
    """
    known = TABLES[kind].names
    needed = {column.name for column in TABLES[kind] if column.required}
    if many_snapshots:
        needed.add("snapshot_ts")
    missing = [name for name in known if name in needed and name not in names]
    if kind == "offsets" and "log_end_offset" not in names and "lag" not in names:
        missing.append("log_end_offset (or lag)")
    if missing:
        alone = len(names) == 1 and any(mark in names[0] for mark in ";\t|")
        hint = "; separate columns by commas" if alone else ""
        raise SourceError(f"{place}: no column {', '.join(missing)}; the {kind} table has {', '.join(known)}{hint}")
    check_once([name for name in names if name in known], place)


def check_once(names: Iterable[str], place: str) -> None:
    """Raise an error if a table has a column twice.

    Raises
    ------
    SourceError
        The message names the columns.
    """
    twice = [name or "without a name" for name, count in Counter(names).items() if count > 1]
    if twice:
        raise SourceError(f"{place}: column {', '.join(twice)} appears twice; keep one")
