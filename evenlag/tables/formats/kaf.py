"""The text of `kaf group describe`: a list of offsets for each topic, then the members with their partitions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from evenlag.errors import SourceError
from evenlag.model.facts import Facts
from evenlag.tables.formats.base import Format, Reading
from evenlag.tables.formats.without_ids import Client, add_group

_HEAD = re.compile(r"\s*Partition\s+Group Offset\s+High Watermark\s+Lag\b.*")
_FIELD = re.compile(r"(Group ID|State|Protocol|Protocol Type|Offsets|Members):\s*(.*?)\s*")
_TITLE = re.compile(r"\s+(\S.*):\s*")  # heading of a topic or a member
_ROW = re.compile(r"\s+([0-9]{1,10})\s+(-?[0-9]{1,19})\s+(-?[0-9]{1,19})\s+(-?[0-9]{1,19})(?:\s.*)?")
_OTHER = re.compile(r"\s*(?:[-\s]*|Total\s.*)")
_HOST = re.compile(r"\s+Host:\s*(\S*)\s*")
_HELD = re.compile(r"\s+(\S+)\s+\[([0-9 ]*)\]\s*")
_INNER = ("Assignments", "Metadata", "Host")


@dataclass
class _Group:
    """A described group: its name, facts, rows and members; members are None if the text does not list them."""

    name: str
    facts: dict[str, str] = field(default_factory=dict)
    rows: list[tuple[int, dict[str, object]]] = field(default_factory=list)
    members: list[Client] | None = None


def recognises(text: str) -> bool:
    """Return whether a text has a group and a header of offsets, as kaf prints them."""
    return "Group ID:" in text and "High Watermark" in text and any(map(_HEAD.fullmatch, text.splitlines()))


def read(text: str, source: str) -> Reading:
    """Read one description or several, of different groups.

    Raises
    ------
    SourceError
        A line below a topic is not a row, or its lag does not follow from its offsets. The message names the line.
    """
    reading = Reading(source=source, subscriptions="unknown")
    for group in _groups(text, source):
        count = None if group.members is None else len(group.members)
        facts = Facts(state=group.facts.get("State"), assignor=group.facts.get("Protocol"), members=count)
        add_group(reading, group.name, group.rows, group.members, facts, "kaf")
    return reading


def _groups(text: str, source: str) -> Iterator[_Group]:
    group: _Group | None = None
    section = topic = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _FIELD.fullmatch(line.rstrip()):
            section, value = match.groups()
            if section == "Group ID":
                if group is not None:
                    yield group
                group = _Group(value)
            elif group is not None and section == "Members":
                group.members = []
            elif group is not None and value:
                group.facts[section] = value
        elif group is None or not line.strip():
            continue
        elif section == "Offsets":
            title = _TITLE.fullmatch(line)
            topic = title[1] if title else topic
            if not title and not _HEAD.fullmatch(line) and not _OTHER.fullmatch(line):
                group.rows.append((number, _row(topic, line, f"{source}, line {number}")))
        elif section == "Members" and group.members is not None:
            _add_member(group.members, number, line)
    if group is not None:
        yield group


def _row(topic: str, line: str, place: str) -> dict[str, object]:
    match = _ROW.fullmatch(line)
    if match is None:
        raise SourceError(f"{place}: not a partition with its offsets and lag: {line.strip()}")
    partition, current, end, lag = map(int, match.groups())
    if lag != end - current:
        raise SourceError(f"{place}: lag {lag} does not follow from the offsets: {line.strip()}")
    known = {"current_offset": None if current < 0 else current, "log_end_offset": end}
    return {"topic": topic, "partition": partition, **known}


def _add_member(members: list[Client], number: int, line: str) -> None:
    """Add what a line tells of a member."""
    title = _TITLE.fullmatch(line)
    if title and title[1] not in _INNER:
        members.append(Client(number, title[1]))
    elif members and (match := _HOST.fullmatch(line)):
        members[-1].host = match[1]
    elif members and (match := _HELD.fullmatch(line)):
        members[-1].held += [(match[1], int(partition)) for partition in match[2].split()]


FORMAT = Format("kaf", "the text of `kaf group describe`", recognises, read)
