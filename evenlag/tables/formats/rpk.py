"""The JSON of `rpk group describe --format json`: groups with their partitions and members."""

from __future__ import annotations

from typing import Any

from evenlag.errors import SourceError
from evenlag.model.facts import Facts
from evenlag.model.values import shown
from evenlag.tables.formats.base import Format, Reading
from evenlag.tables.formats.json_texts import documents, first_document, whole_number

_NAMES = ("topic", "member_id", "client_id", "host")
_FACTS = {"state": "state", "balancer": "assignor"}
_NUMBERS = ("partition", "current_offset", "log_start_offset", "log_end_offset", "lag")


def recognises(text: str) -> bool:
    """Return whether a text is rpk's JSON of groups."""
    document = first_document(text)
    groups = document if isinstance(document, list) else [document]
    return bool(groups) and all(map(_is_group, groups))


def _is_group(group: object) -> bool:
    return isinstance(group, dict) and {"group_name", "partitions"} <= group.keys()


def read(text: str, source: str) -> Reading:
    """Read one or several groups, with all members in `members_details`.

    Raises
    ------
    SourceError
        The text is not rpk's JSON, or an item is invalid. The message names the item.
    """
    reading = Reading(source=source, unit="item", subscriptions="unknown")
    groups = [
        (line, group)
        for line, document in documents(text, source)
        for group in (document if isinstance(document, list) else [document])
    ]
    item = 0
    for line, group in groups:
        lists = [group.get(name) or [] for name in ("partitions", "members_details")] if _is_group(group) else []
        if not lists or not isinstance(group["group_name"], str) or not all(isinstance(each, list) for each in lists):
            raise SourceError(f"{source}, line {line}: not a group of rpk: {shown(group)}; give rpk's complete output")
        name = {"group": group["group_name"]}
        words: dict[str, Any] = {fact: str(group[field]) for field, fact in _FACTS.items() if group.get(field)}
        count = whole_number(group.get("members"))
        reading.facts[group["group_name"]] = Facts(members=count, **words)
        for each in lists[0]:
            item += 1
            reading.offsets.append((item, name | _partition(each, f"{source}, item {item}")))
        for member in lists[1]:
            item += 1
            reading.members.append((item, name | _member(member, f"{source}, item {item}")))
    return reading


def _partition(item: Any, place: str) -> dict[str, Any]:
    """Return the row of a partition; an offset of -1 means no commit, and a negative lag an unknown lag."""
    if not isinstance(item, dict):
        raise SourceError(f"{place}: not a partition: {shown(item)}")
    names = {name: item.get(name) for name in _NAMES}
    numbers = {name: whole_number(item.get(name)) for name in _NUMBERS}
    if not names["topic"] or None in numbers.values():
        raise SourceError(f"{place}: the topic or a number is missing or invalid: {shown(item)}")
    unknown = (numbers["lag"] or 0) < 0
    return {
        "topic": names["topic"],
        "partition": numbers["partition"],
        "current_offset": None if numbers["current_offset"] == -1 else numbers["current_offset"],
        "log_start_offset": None if unknown else numbers["log_start_offset"],
        "log_end_offset": None if unknown else numbers["log_end_offset"],
        "lag": None if unknown else numbers["lag"],  # used for partitions without a commit, as in rpk's text
        "consumer_id": names["member_id"] or None,
        "client_id": names["client_id"] or None,
        "host": names["host"] or None,
    }


def _member(item: Any, place: str) -> dict[str, Any]:
    if not isinstance(item, dict) or not item.get("member_id"):
        raise SourceError(f"{place}: not a member: {shown(item)}")
    named = {"consumer_id": item["member_id"], "client_id": item.get("client_id"), "host": item.get("host")}
    return named | {"group_instance_id": item.get("instance_id")}


FORMAT = Format("rpk", "the JSON of `rpk group describe --format json`", recognises, read)
