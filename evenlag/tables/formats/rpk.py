"""The JSON of `rpk group describe --format json`: groups with their partitions and all of their members."""

from __future__ import annotations

from typing import Any

from evenlag.errors import SourceError
from evenlag.model.values import shown
from evenlag.tables.formats.base import Format, Reading
from evenlag.tables.formats.json_texts import documents, first_document, whole_number

_NAMES = ("topic", "member_id", "client_id", "host")
_NUMBERS = ("partition", "current_offset", "log_start_offset", "log_end_offset", "lag")


def recognises(text: str) -> bool:
    """Return whether a text is what rpk writes of groups."""
    document = first_document(text)
    groups = document if isinstance(document, list) else [document]
    return bool(groups) and all(map(_is_group, groups))


def _is_group(group: object) -> bool:
    return isinstance(group, dict) and {"group_name", "partitions"} <= group.keys()


def read(text: str, source: str) -> Reading:
    """Read one or several groups; members without a partition are among `members_details`.

    Raises
    ------
    SourceError
        It is not what rpk writes, or an item is broken; the message names the item.
    """
    reading = Reading(source=source, unit="item", subscriptions="unknown")
    groups = [
        (line, group)
        for line, document in documents(text, source)
        for group in (document if isinstance(document, list) else [document])
    ]
    item = 0
    for line, group in groups:
        if not _is_group(group) or not isinstance(group["group_name"], str):
            raise SourceError(f"{source}, line {line}: is no group of rpk: {shown(group)}; give all of what rpk wrote")
        name = {"group": group["group_name"]}
        for each in group["partitions"] or ():
            item += 1
            reading.offsets.append((item, name | _partition(each, f"{source}, item {item}")))
        for member in group.get("members_details") or ():
            item += 1
            reading.members.append((item, name | _member(member, f"{source}, item {item}")))
    return reading


def _partition(item: Any, place: str) -> dict[str, Any]:
    """Return the row of a partition: -1 is no commit, and a lag below 0 one that rpk could not work out."""
    if not isinstance(item, dict):
        raise SourceError(f"{place}: is no partition: {shown(item)}")
    names = {name: item.get(name) for name in _NAMES}
    numbers = {name: whole_number(item.get(name)) for name in _NUMBERS}
    if not names["topic"] or None in numbers.values():
        raise SourceError(f"{place}: lacks its topic or a whole number: {shown(item)}")
    unknown = (numbers["lag"] or 0) < 0
    return {
        "topic": names["topic"],
        "partition": numbers["partition"],
        "current_offset": None if numbers["current_offset"] == -1 else numbers["current_offset"],
        "log_start_offset": None if unknown else numbers["log_start_offset"],
        "log_end_offset": None if unknown else numbers["log_end_offset"],
        "lag": None if unknown else numbers["lag"],  # counts where nothing was committed, as in rpk's text
        "consumer_id": names["member_id"] or None,
        "client_id": names["client_id"] or None,
        "host": names["host"] or None,
    }


def _member(item: Any, place: str) -> dict[str, Any]:
    if not isinstance(item, dict) or not item.get("member_id"):
        raise SourceError(f"{place}: is no member: {shown(item)}")
    return {"consumer_id": item["member_id"], "client_id": item.get("client_id"), "host": item.get("host")}


RPK = Format("rpk", "the JSON of `rpk group describe --format json`", recognises, read)
