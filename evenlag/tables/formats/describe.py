"""Kafka's own text: the tables that `kafka-consumer-groups --describe` prints, read as they are."""

import re
from collections.abc import Iterable, Iterator

from evenlag.errors import SourceError
from evenlag.tables.columns import TableKind
from evenlag.tables.copies import Numbered
from evenlag.tables.formats.base import Format, Reading

_NAMES = {
    "GROUP": "group",
    "TOPIC": "topic",
    "PARTITION": "partition",
    "CURRENT-OFFSET": "current_offset",
    "LOG-END-OFFSET": "log_end_offset",
    "LAG": "lag",
    "CONSUMER-ID": "consumer_id",
    "HOST": "host",
    "CLIENT-ID": "client_id",
}
_REQUIRED: dict[TableKind, set[str]] = {
    "offsets": {"TOPIC", "PARTITION", "CURRENT-OFFSET"},
    "members": {"CONSUMER-ID", "CLIENT-ID"},
}
_MESSAGE = re.compile(r"(Error|Warning|Note): |Consumer group '")


def is_header(line: str, kind: TableKind) -> bool:
    """Whether the line is a header that `kafka-consumer-groups --describe` prints above such rows."""
    return set(line.split()) >= _REQUIRED[kind]


def describe_rows(
    lines: Iterable[str], kind: TableKind, *, source: str, group: str | None = None
) -> Iterator[dict[str, str | None]]:
    r"""Read the text of `kafka-consumer-groups --describe`; members also from `--describe --members`.

    Columns go by the names in the header, which is repeated for each group; `-` is null, and lines such as
    `Consumer group 'x' has no active members.` say nothing about partitions. Members are those that the text names:
    Kafka 4.1 leaves out the ones without a partition, unless asked with `--members`.

    Parameters
    ----------
    lines
        The text, line by line.
    kind
        The table to read from it.
    source
        What messages call the text, as the file's name.
    group
        The group where the text has no column GROUP, as in Kafka 1 and before.

    Raises
    ------
    SourceError
        There is no header, or a line does not fit its header.

    Examples
    --------
    >>> text = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG\nbilling orders 0 - 70 -"
    >>> [(row["topic"], row["current_offset"]) for row in describe_rows(text.splitlines(), "offsets", source="text")]
    [('orders', None)]
    """
    for number, (line, row) in enumerate(describe_lines(lines, kind, source=source, group=group), 1):
        if line is not None and row is None:
            raise SourceError(f"{source}, line {number}: does not fit its header; give the text as Kafka printed it")
        if row is not None:
            yield row


def describe_lines(
    lines: Iterable[str], kind: TableKind, *, source: str, group: str | None = None
) -> Iterator[tuple[str | None, dict[str, str | None] | None]]:
    """Give for each line of the text the line and its row, or None for both where it says nothing.

    A line that does not fit its header comes without a row. Otherwise as `describe_rows`.

    Raises
    ------
    SourceError
        There is no header.
    """
    header: list[re.Match[str]] = []
    members: set[tuple[str | None, str]] = set()
    empty = True
    for line in lines:
        row, is_row, empty = None, False, empty and not line.strip()
        if is_header(line, kind):
            header = list(re.finditer(r"\S+", line))
        elif header and line.strip() and not _MESSAGE.match(line):
            fields = _fields(line.rstrip(), header)
            row = None if fields is None else {"group": group} | fields
            is_row = row is None or _is_row(row, kind, members)
        yield (line, row) if is_row else (None, None)
    if not header:
        wrong = "is empty" if empty else f"no header with {', '.join(sorted(_REQUIRED[kind]))}"
        raise SourceError(f"{source}: {wrong}; give the text of `kafka-consumer-groups --describe`")


def _is_row(row: dict[str, str | None], kind: TableKind, members: set[tuple[str | None, str]]) -> bool:
    """Whether a line is a row of the table; `members` are those that were met."""
    if kind == "offsets":
        return row["topic"] is not None  # Kafka 1 prints members without a partition like this
    member, key = row["consumer_id"], (row["group"], row["consumer_id"] or "")
    if member is None or key in members:
        return False
    members.add(key)
    return True


def _fields(line: str, header: list[re.Match[str]]) -> dict[str, str | None] | None:
    values = line.split()
    if len(values) != len(header):  # a group or client id with spaces: go by where the header's names begin
        starts = [name.start() for name in header]
        if any(start > len(line) or (start and line[start - 1] != " ") for start in starts):
            return None
        ends = [*starts[1:], len(line)]
        values = [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]
    pairs = zip(header, values, strict=True)
    return {_NAMES[name[0]]: None if value in {"", "-"} else value for name, value in pairs if name[0] in _NAMES}


def recognises(text: str) -> bool:
    """Whether a text has a header of `kafka-consumer-groups --describe`."""
    return any(is_header(line, kind) for line in text.splitlines() for kind in _REQUIRED)


def read(text: str, source: str) -> Reading:
    """Read the offsets and the members of a text.

    Raises
    ------
    SourceError
        It has no header, or a line does not fit its header.
    """
    lines = text.splitlines()
    kinds = [kind for kind in _REQUIRED if any(is_header(line, kind) for line in lines)] or ["offsets"]
    rows: dict[TableKind, list[Numbered]] = {
        kind: [(number, row) for number, row in enumerate(describe_rows(lines, kind, source=source), 1)]
        for kind in kinds
    }
    return Reading(rows.get("offsets", []), rows.get("members", []), source=source, subscriptions="unknown")


DESCRIBE = Format("describe", "the text of `kafka-consumer-groups --describe`", recognises, read)
