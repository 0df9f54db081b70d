"""Reader of `kafka-consumer-groups --describe` and of rpk and kcl `group describe`, which never drops a row silently.

A line with the words of a header is a header, anywhere in the text. A line whose fields fit a header is a row. A line
that may be a row but does not fit raises an error that names it. All other lines are skipped and counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from evenlag.model.facts import CLASSIC, CONSUMER, protocol_by
from evenlag.tables.columns import Numbered, TableKind
from evenlag.tables.formats.base import Format, Reading, Subscriptions
from evenlag.tables.formats.describe.consistency import Fields
from evenlag.tables.formats.describe.headers import looks_like_a_header
from evenlag.tables.formats.describe.lines import Line, lines_of
from evenlag.tables.formats.describe.scanner import Parsed, check_descriptions, parse

_EXTRAS = re.compile(  # kcl's, behind the host
    r"(?P<host>\S+) \((?:instance=(?P<group_instance_id>[^,)]+))?,?(?:rack=(?P<rack>[^)]+))?\)"
)
_TOPICS = re.compile(r"([\w.-]+)(?:\(|:)[\d, ]+\)?", re.ASCII)


def recognises(text: str) -> bool:
    """Return whether a text has a header of such a table."""
    return any(map(looks_like_a_header, lines_of(text)))


def read(text: str, source: str) -> Reading:
    r"""Read the offsets and members of a text; members are only those in its members tables, without other owners.

    Raises
    ------
    SourceError
        The text has no header or an unknown one, a line may be a row but does not fit its header, or a partition is
        described several times without a time for each.

    Examples
    --------
    >>> text = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID\nbilling orders 0 - 70 - app-1"
    >>> [(number, row["topic"], row["current_offset"]) for number, row in read(text, "text").offsets]
    [(2, 'orders', None)]
    """
    parsed = parse(text, source)
    if parsed.doubtful:
        raise parsed.refusal(parsed.doubtful[0])
    check_descriptions(parsed)
    return _reading(parsed)


def _reading(parsed: Parsed) -> Reading:
    members = [_member(line, row) for line, row in parsed.members]
    subscriptions: Subscriptions = "assignment" if any(row["topics"] for _, row in members) else "unknown"
    if any(row.get("subscribed") for _, row in parsed.members):
        subscriptions = "listed"
    return Reading(
        offsets=[(line.number, row) for line, row in parsed.offsets],
        members=members,
        notes=_notes(parsed),
        notes_of=_warnings(parsed),
        passed_over=[(line.number, line.raw) for line in parsed.passed_over],
        source=parsed.source,
        group=parsed.group,
        facts=parsed.facts,
        subscriptions=subscriptions,
    )


def described_lines(text: str, kind: TableKind, *, source: str, group: str) -> Iterable[tuple[str, Fields | None]]:
    """Yield the text of each line with its row in a table; the row is None for doubtful and skipped lines.

    Members are those that the text lists and the owners of partitions, each once.

    Parameters
    ----------
    kind : {"offsets", "members"}
    source : str
        Name of the text in errors.
    group : str
        The group, if the text does not name it.

    Raises
    ------
    SourceError
        The text has no header, or an unknown one.
    """
    parsed = parse(text, source)
    found = _reading(parsed)
    raw = {line.number: line.raw for line in parsed.lines}
    for number, row in found.offsets if kind == "offsets" else found.named_members():
        yield raw[number], {**row, "group": row["group"] or found.group or group}
    for line in sorted([*parsed.doubtful, *parsed.passed_over], key=lambda line: line.number):
        yield line.raw, None


def _member(line: Line, row: Fields) -> Numbered:
    """Return a member with its subscribed or assigned topics joined by `;`; None if the text shows neither.

    kcl writes a member's instance id and rack after its host.
    """
    extras = _EXTRAS.fullmatch(row.get("host") or "")
    if extras is not None:
        row = row | {name: value for name, value in extras.groupdict().items() if value}
    subscribed = [name for name in (row.get("subscribed") or "").split(",") if name]
    topics = subscribed or sorted({match[1] for match in _TOPICS.finditer(row.get("assignment") or "")})
    return line.number, row | {"topics": ";".join(topics) or None, "protocol": _protocol(row)}


def _protocol(row: Fields) -> str | None:
    """Return the protocol that a member uses: only members of KIP-848 groups have an epoch or are called upgraded.

    None without a column of epochs, which older tools lack.
    """
    if row.get("UPGRADED") is not None:
        return CONSUMER if row["UPGRADED"] == "true" else CLASSIC
    return protocol_by(row["generation"]) if "generation" in row else None


def _warnings(parsed: Parsed) -> dict[str, list[str]]:
    """Return Kafka's warnings on each group as notes."""
    lines: dict[str, list[Line]] = {}
    for group, line in parsed.warnings:
        lines.setdefault(group, []).append(line)
    return {group: _printed(parsed, each) for group, each in lines.items()}


def _printed(parsed: Parsed, lines: Sequence[Line]) -> list[str]:
    """Return messages of Kafka as notes, each once; if there are several descriptions, the latest and their number."""
    if parsed.stamps is None or len(lines) < 2:
        first = {str(line): line for line in reversed(lines)}
        lines = sorted(first.values(), key=lambda line: line.number)
        return [f"{parsed.source}, line {line.number}: Kafka printed: {line}" for line in lines]
    last = lines[-1]
    return [f"{parsed.source}: Kafka printed {len(lines)} such messages; the last is line {last.number}: {last}"]


def _notes(parsed: Parsed) -> list[str]:
    notes = _printed(parsed, parsed.errors)
    if parsed.stamps is not None:
        notes += parsed.stamps.notes()
    if parsed.passed_over:
        first, number = parsed.passed_over[0], len(parsed.passed_over)
        lines = "1 line that is not a row" if number == 1 else f"{number} lines that are not rows"
        where = f"line {first.number}" if number == 1 else f"the first is line {first.number}"
        missing = next((line for line in parsed.passed_over if line.is_ellipsis), None)
        left_out = ""
        if missing is not None:
            left_out = "; rows may be missing " + (
                "there" if missing is first else f"at line {missing.number}: {missing}"
            )
        notes.append(f"{parsed.source}: skipped {lines}; {where}: {first}{left_out}")
    notes += [
        f"{parsed.source}, line {line.number}: the header has no HOST and CLIENT-ID; if they were cut off, member ids "
        "may be cut too"
        for line in parsed.doubtful_ids
    ]
    return notes


FORMAT = Format("describe", "the text of `kafka-consumer-groups --describe` or `rpk group describe`", recognises, read)

__all__ = ["FORMAT", "described_lines", "read", "recognises"]
