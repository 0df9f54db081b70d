"""JSON of consumer groups with lists of their partitions and members, as several tools and APIs write it.

Their names of fields differ in case and spelling, so fields are matched as headings of tables are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evenlag.errors import SourceError
from evenlag.model.facts import Facts, protocol_by, state_named
from evenlag.model.values import shown
from evenlag.tables.column_names import matched, plain
from evenlag.tables.columns import TABLES, TableKind
from evenlag.tables.formats import rpk
from evenlag.tables.formats.base import Format, Reading
from evenlag.tables.formats.json_texts import check_texts, documents, first_document, whole_number

_NAMES = ("group", "groupid", "groupname", "consumergroup", "consumergroupid")  # fields with a group's name
_NUMBERS = {column.name for column in TABLES["offsets"] if column.kind == "integer"}
_ASSIGNORS = ("balancer", "partitionassignor", "assignor")
_EPOCH = "memberepoch"  # null in classic groups
_OFFSETS = ("log_start_offset", "log_end_offset", "current_offset")


def recognises(text: str) -> bool:
    """Return whether a text is JSON of groups, one of which has a list of partitions with offsets or lags."""
    document = first_document(text)
    groups = [*_groups(document)]
    return any(_partitions(group) for group in groups) and not rpk.recognises(text)


def _groups(document: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects with the name of a group: the document itself, or those in its list."""
    if isinstance(document, dict) and isinstance(document.get("groups"), list):
        document = document["groups"]
    for each in document if isinstance(document, list) else [document]:
        if isinstance(each, dict) and _name(each) is not None:
            yield each


def _name(group: Mapping[str, Any]) -> str | None:
    return next((value for key, value in group.items() if plain(key) in _NAMES and isinstance(value, str)), None)


def _partitions(group: Mapping[str, Any]) -> list[Any] | None:
    """Return the list of a group's partitions; None if it has none."""
    for value in group.values():
        first = value[0] if isinstance(value, list) and value else None
        if isinstance(first, dict):
            names = {plain(key) for key in first}
            if {"topic", "partition"} <= names and any(name.endswith(("lag", "offset")) for name in names):
                return list(value)
    return None


def read(text: str, source: str) -> Reading:
    """Read the groups of one document or several.

    The owner of a partition is named in its item, or it is the member whose list of partitions has it.

    Raises
    ------
    SourceError
        An item is invalid. The message names it.
    """
    reading = Reading(source=source, unit="item", subscriptions="unknown")
    item = 0
    for line, document in documents(text, source):
        groups = [*_groups(document)]
        if not groups:
            raise SourceError(f"{source}, line {line}: no group with partitions: {shown(document)}")
        for group in groups:
            name = {"group": _name(group)}
            if group.get("error"):
                reading.notes.append(f"{source}: group {name['group']!r} has an error: {group['error']}")
            owners: dict[tuple[Any, Any], str] = {}
            members = group.get("members")
            reading.facts[name["group"]] = _facts(group)
            for member in members if isinstance(members, list) else []:
                item += 1
                row = _row(member, "members", f"{source}, item {item}")
                for epoch in (value for key, value in member.items() if plain(key) == _EPOCH):
                    row["protocol"] = protocol_by(epoch)
                reading.members.append((item, name | row))
                owners |= dict.fromkeys(_held(member), row["consumer_id"])
            for partition in _partitions(group) or []:
                item += 1
                row = _partition(partition, f"{source}, item {item}")
                owner = row.get("consumer_id") or owners.get((row["topic"], row["partition"]))
                reading.offsets.append((item, name | row | {"consumer_id": owner}))
    if any(row.get("topics") for _, row in reading.members):
        reading.subscriptions = "listed"
    return reading


def _facts(group: Mapping[str, Any]) -> Facts:
    """Return what the fields of a group tell of it."""
    told = {plain(key): value for key, value in group.items() if isinstance(value, str) and value}
    members = group.get("members")
    return Facts(
        state=state_named(told.get("state")),
        assignor=next((told[name] for name in _ASSIGNORS if name in told), None),
        members=len(members) if isinstance(members, list) else whole_number(members),
    )


def _held(member: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the partitions in a member's list of them."""
    for value in member.values():
        for each in value if isinstance(value, list) else []:
            if isinstance(each, dict) and isinstance(each.get("topic"), str):
                yield each["topic"], whole_number(each.get("partition"))


def _row(item: Any, kind: TableKind, place: str) -> dict[str, Any]:
    """Return the fields of an item by column, with null for empty texts.

    Raises
    ------
    SourceError
        The item is not an object, lacks a required field, or has a name that is not a text.
    """
    if not isinstance(item, dict):
        raise SourceError(f"{place}: not an object: {shown(item)}")
    row = {column: item[key] for column, key in matched([*item], kind, place).items()}
    needed = [column.name for column in TABLES[kind] if column.required and column.name != "group"]
    lacking = [name for name in needed if row.get(name) in (None, "")]
    if lacking:
        raise SourceError(f"{place}: no {', '.join(lacking)}: {shown(item)}")
    check_texts(row, ("topic", "consumer_id"), place)
    return {name: None if value == "" else value for name, value in row.items()}


def _partition(item: Any, place: str) -> dict[str, Any]:
    """Return the row of a partition; an offset of -1 is unknown, and so is the lag without a log end offset."""
    row = _row(item, "offsets", place)
    for name in _NUMBERS & row.keys():
        number = whole_number(row[name])
        if number is None and row[name] is not None:
            raise SourceError(f"{place}: {name} must be a whole number, not {shown(row[name])}: {shown(item)}")
        row[name] = number
    for name in _OFFSETS:
        if row.get(name) == -1:
            row[name] = None
    if "log_end_offset" in row and row["log_end_offset"] is None:
        row["lag"] = None
    return row


FORMAT = Format(
    "groups", "JSON of groups with lists of partitions, as kcl, Kestra and Kafbat write it", recognises, read
)
