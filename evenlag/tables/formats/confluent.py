"""Confluent's lists of lags: from its command, as JSON or as a table, and from its REST API v3."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from evenlag.errors import SourceError
from evenlag.model.values import shown
from evenlag.tables.formats.base import Format, Reading
from evenlag.tables.formats.json_texts import check_texts, documents, first_document, whole_number
from evenlag.tables.formats.owners import add_owners
from evenlag.tables.formats.remarks import Remarks

_LIST = "KafkaConsumerLagList"
# For each column its name in the REST API, and in the command.
_FIELDS = {
    "cluster": ("cluster_id", "cluster"),
    "group": ("consumer_group_id", "consumer_group"),
    "topic": ("topic_name", "topic"),
    "partition": ("partition_id", "partition"),
    "consumer_id": ("consumer_id", "consumer"),
    "client_id": ("client_id", "client"),
    "group_instance_id": ("instance_id", "instance"),
}
_NUMBERS = ("current_offset", "log_end_offset", "lag")
_TITLES = {"Consumer Group", "Lag", "Log End Offset", "Current Offset", "Topic", "Partition"}
_WHOLE = {*_NUMBERS, "partition"}
_ASK = "use `confluent kafka consumer group lag list GROUP -o json`, or query /consumer-groups/GROUP/lags"


def recognises(text: str) -> bool:
    """Return whether a text is such a list, or one of its lags."""
    document = first_document(text)
    if document is None:
        return "Log End Offset" in text and any(_titles(line) for line in text.splitlines())
    if isinstance(document, list):
        return bool(document) and all(_is_lag(each) for each in document)
    return isinstance(document, dict) and (document.get("kind") == _LIST or _is_lag(document))


def _is_lag(document: object) -> bool:
    return (
        isinstance(document, dict)
        and all(name in document for name in _NUMBERS)
        and all(any(name in document for name in _FIELDS[column]) for column in ("group", "topic", "partition"))
    )


def read(text: str, source: str) -> Reading:
    """Read one list or several: the pages of one group, or several groups.

    Raises
    ------
    SourceError
        A page is missing, or an item is invalid.
    """
    printed = first_document(text) is None
    unit = "line" if printed else "item"
    reading = Reading(source=source, unit=unit, subscriptions="unknown")
    remarks = Remarks()
    clusters: dict[str, str] = {}
    names_owners = False  # an empty text means none; null means unknown
    for number, lag in _printed(text, source) if printed else enumerate(_lags(text, source), start=1):
        row = _row(lag, f"{source}, {unit} {number}")
        names_owners |= any(isinstance(lag.get(name), str) for name in _FIELDS["consumer_id"])
        group, cluster = row["group"], row.pop("cluster")
        if clusters.setdefault(group, cluster) != cluster:
            raise SourceError(
                f"{source}, {unit} {number}: group {group!r} is in cluster {cluster!r}, but before it was in cluster "
                f"{clusters[group]!r}; give the lags of one cluster"
            )
        if row["current_offset"] is None and row["log_end_offset"] is None:
            remarks[group].unknown.add(f"{row['topic']}-{row['partition']}")
        reading.offsets.append((number, row))
    if not reading.offsets:
        raise SourceError(f"{source}: the list is empty: the group has no commits or does not exist; {_ASK}")
    add_owners(reading, remarks, None if names_owners else "Confluent")
    return reading


def _lags(text: str, source: str) -> Iterator[Any]:
    """Yield the lags of all pages."""
    following = None
    for line, document in documents(text, source):
        if isinstance(document, list):
            yield from document
        elif isinstance(document, dict) and document.get("kind") == _LIST and isinstance(document.get("data"), list):
            metadata = document.get("metadata")
            following = metadata.get("next") if isinstance(metadata, dict) else None
            yield from document["data"]
        elif _is_lag(document):
            yield document
        else:
            raise SourceError(f"{source}, line {line}: not a list of lags: {shown(document)}; {_ASK}")
    if following:
        raise SourceError(f"{source}: a page is missing after the last one; add the response of {following}")


def _cells(line: str, framed: bool) -> list[str]:
    """Return the fields of a table's line; if `framed`, the line begins and ends with a bar."""
    line = line.strip()
    return [field.strip() for field in (line.removeprefix("|").removesuffix("|") if framed else line).split("|")]


def _titles(line: str) -> list[str] | None:
    """Return the column titles in a line; None if it is not the table's head."""
    titles = _cells(line, line.lstrip().startswith("|"))
    return titles if set(titles) >= _TITLES else None


def _printed(text: str, source: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of tables that the command prints, each with its line number."""
    titles: list[str] = []
    framed = False
    for number, line in enumerate(text.split("\n"), start=1):
        if named := _titles(line):
            titles = [title.lower().replace(" ", "_") for title in named]
            framed = line.lstrip().startswith("|")
        elif titles and line.strip(" \r-+|"):
            fields = _cells(line, framed)
            if len(fields) != len(titles):
                raise SourceError(
                    f"{source}, line {number}: {len(fields)} fields, but the table has {len(titles)}: {shown(line)}"
                )
            yield number, {title: _value(title, field) for title, field in zip(titles, fields, strict=True)}


def _value(title: str, field: str) -> object:
    return int(field) if title in _WHOLE and re.fullmatch(r"-?[0-9]{1,19}", field) else field


def _row(lag: Any, place: str) -> dict[str, Any]:
    """Return the row of a lag, with its cluster."""
    if not _is_lag(lag):
        raise SourceError(f"{place}: not the lag of a partition: {shown(lag)}; {_ASK}")
    row = {column: next((lag[name] for name in names if name in lag), None) for column, names in _FIELDS.items()}
    partition = whole_number(row["partition"])
    numbers = {name: whole_number(lag[name]) for name in _NUMBERS}
    if not all(isinstance(row[name], str) for name in ("group", "topic")) or partition is None:
        raise SourceError(f"{place}: has no group, topic and partition: {shown(lag)}")
    label = f"{row['topic']}-{partition}"
    for name, number in numbers.items():
        if number is None and lag[name] not in (None, ""):
            raise SourceError(f"{place}: {name} of {label} must be a whole number, not {shown(lag[name])}")
    current, end = numbers["current_offset"], numbers["log_end_offset"]
    if current is None or current < 0:  # never committed
        numbers["current_offset"] = numbers["lag"] = None
        if end is None:
            numbers["lag"] = 0
    elif end is None and numbers["lag"] is None:
        raise SourceError(f"{place}: {label} has neither lag nor log_end_offset: {shown(lag)}")
    texts = {name: row[name] or None for name in ("consumer_id", "client_id", "group_instance_id")}
    check_texts(texts, texts, f"{place}: {label}")
    return row | texts | numbers | {"partition": partition, "cluster": str(row["cluster"])}


FORMAT = Format("confluent", "Confluent's list of lags from its command or its REST API v3", recognises, read)
