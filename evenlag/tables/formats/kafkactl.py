"""`kafkactl describe consumer-group`: its two tables, of partitions and of members, or its JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from evenlag.errors import SourceError
from evenlag.model.facts import Facts
from evenlag.model.values import shown
from evenlag.tables.columns import Numbered
from evenlag.tables.formats.base import Format, Reading
from evenlag.tables.formats.json_texts import documents, first_document, whole_number
from evenlag.tables.formats.without_ids import Client, add_group

_OFFSETS = "TOPIC PARTITION NEWEST_OFFSET OLDEST_OFFSET CONSUMER_OFFSET LEAD LAG"
_MEMBERS = "CLIENT_HOST CLIENT_ID TOPIC ASSIGNED_PARTITIONS"
_ROW = re.compile(r"(\S+)\s+([0-9]{1,10})((?:\s+-?[0-9]{1,19}){5})")
_MEMBER = re.compile(r"(\S+)\s+(?:(\S.*?)\s+)?(\S+)\s+([0-9]{1,10}(?:,[0-9]{1,10})*)")
_NUMBERS = ("Partition", "newestOffset", "oldestOffset", "consumerOffset", "Lag")


def recognises(text: str) -> bool:
    """Return whether a text is the table or the JSON of kafkactl."""
    document = first_document(text)
    if document is None:
        return "CONSUMER_OFFSET" in text and any(_headed(line) == _OFFSETS for line in text.splitlines())
    return _is_group(document)


def _headed(line: str) -> str:
    return " ".join(line.split())


def _is_group(document: object) -> bool:
    return isinstance(document, dict) and isinstance(document.get("Group"), dict) and "Topics" in document


def read(text: str, source: str) -> Reading:
    """Read the description of one group; its name is in the JSON alone.

    Raises
    ------
    SourceError
        A line or an item is invalid. The message names it.
    """
    if first_document(text) is None:
        return _of_tables(text, source)
    reading = Reading(source=source, unit="item", subscriptions="unknown")
    for line, document in documents(text, source):
        if not _is_group(document):
            raise SourceError(f"{source}, line {line}: not a group of kafkactl: {shown(document)}")
        _add_document(reading, document, source)
    return reading


def _of_tables(text: str, source: str) -> Reading:
    reading = Reading(source=source, subscriptions="unknown")
    header, rows, clients = "", list[Numbered](), None
    for number, line in enumerate(text.splitlines(), start=1):
        place, titles = f"{source}, line {number}", _headed(line)
        if titles in (_OFFSETS, _MEMBERS):
            if titles == header or (titles == _OFFSETS and rows):
                raise SourceError(f"{place}: a second group, and the text names none; give each as a text of its own")
            header = titles
            clients = list[Client]() if titles == _MEMBERS else clients
        elif not titles:
            continue
        elif header == _OFFSETS and (match := _ROW.fullmatch(line.strip())):
            partition, (newest, oldest, current, _, lag) = int(match[2]), map(int, match[3].split())
            rows.append((number, _offsets(match[1], partition, newest, oldest, current, lag, place)))
        elif header == _MEMBERS and clients is not None and (match := _MEMBER.fullmatch(line.strip())):
            _hold(clients, number, match)
        elif header:
            raise SourceError(f"{place}: does not fit its header {header}: {line.strip()}")
    add_group(reading, None, rows, clients, Facts(), "kafkactl")
    return reading


def _hold(clients: list[Client], number: int, match: re.Match[str]) -> None:
    """Add the partitions of a line to its member: the last one, or another if that one has this topic already."""
    host, client, topic, partitions = match.groups()
    last = clients[-1] if clients else None
    same = last is not None and (last.host, last.client_id) == (host, client or "")
    if last is None or not same or topic in {name for name, _ in last.held}:
        last = Client(number, client or "", host)
        clients.append(last)
    last.held += [(topic, int(partition)) for partition in partitions.split(",")]


def _add_document(reading: Reading, document: dict[str, Any], source: str) -> None:
    item = len(reading.offsets) + len(reading.members)
    rows: list[Numbered] = []
    for topic, each in _partitions(document["Topics"], source):
        item += 1
        place = f"{source}, item {item}"
        numbers = [whole_number(each.get(name)) for name in _NUMBERS] if isinstance(each, dict) else [None]
        known = [number for number in numbers if number is not None]
        if len(known) < len(_NUMBERS):
            raise SourceError(f"{place}: not a partition with its offsets: {shown(each)}")
        partition, newest, oldest, current, lag = known
        rows.append((item, _offsets(topic, partition, newest, oldest, current, lag, place)))
    members, clients = document.get("Members"), list[Client]()
    for member in _listed(members, source):
        item += 1
        place = f"{source}, item {item}"
        if not isinstance(member, dict):
            raise SourceError(f"{place}: not a member: {shown(member)}")
        held = [(topic, whole_number(each)) for topic, each in _partitions(member.get("assignedPartitions"), place)]
        clients.append(Client(item, str(member.get("clientId") or ""), str(member.get("clientHost") or ""), held))
    facts = Facts(state=document.get("State") or None, assignor=document.get("Protocol") or None)
    add_group(
        reading, str(document["Group"].get("Name")), rows, None if members is None else clients, facts, "kafkactl"
    )


def _partitions(topics: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield each partition in a list of topics, with the name of its topic."""
    for topic in _listed(topics, place):
        if isinstance(topic, dict):
            for each in _listed(topic.get("Partitions"), place):
                yield str(topic.get("Name")), each


def _listed(value: Any, place: str) -> list[Any]:
    """Return a list; null is the empty list.

    Raises
    ------
    SourceError
        The value is neither.
    """
    if not isinstance(value, list | None):
        raise SourceError(f"{place}: must be a list of topics, partitions or members: {shown(value)}")
    return value or []


def _offsets(
    topic: str, partition: int, newest: int, oldest: int, current: int, lag: int, place: str
) -> dict[str, Any]:  # fmt: skip
    """Return the row of a partition; a consumer offset of -1 means no commit."""
    if lag != newest - current:
        raise SourceError(f"{place}: lag {lag} of {topic}-{partition} does not follow from its offsets")
    return {
        "topic": topic, "partition": partition, "log_start_offset": oldest, "log_end_offset": newest,
        "current_offset": None if current < 0 else current,
    }  # fmt: skip


FORMAT = Format("kafkactl", "the tables or the JSON of `kafkactl describe consumer-group`", recognises, read)
