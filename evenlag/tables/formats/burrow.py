"""Burrow's JSON of a consumer's lag, from `/v3/kafka/CLUSTER/consumer/GROUP/lag`."""

from __future__ import annotations

from typing import Any

from evenlag.errors import SourceError
from evenlag.model.values import shown
from evenlag.tables.formats.base import Format, Reading
from evenlag.tables.formats.json_texts import check_texts, documents, first_document, whole_number
from evenlag.tables.formats.owners import add_owners
from evenlag.tables.formats.remarks import Remarks

_ASK = "query Burrow for /v3/kafka/CLUSTER/consumer/GROUP/lag"


def recognises(text: str) -> bool:
    """Return whether a text is a response of Burrow, including an error."""
    return _is_answer(first_document(text))


def _is_answer(document: object) -> bool:
    if not isinstance(document, dict) or not isinstance(document.get("error"), bool) or "message" not in document:
        return False
    status, request = document.get("status"), document.get("request")
    asked = isinstance(request, dict) and "/kafka" in str(request.get("url"))
    return asked or (isinstance(status, dict) and "partitions" in status)


def read(text: str, source: str) -> Reading:
    """Read one response, or several of different groups.

    Burrow names the owner of a partition by its host and client id. Member ids are built from these as
    `CLIENT-ID_HOST`, as in Kafka 0.9.

    Raises
    ------
    SourceError
        The response is an error or omits partitions (as `/status` does), or an item is invalid.
    """
    reading = Reading(source=source, unit="item", subscriptions="unknown")
    remarks = Remarks()
    clusters: dict[str, str] = {}
    item = 0
    for line, document in documents(text, source):
        status = _status(document, f"{source}, line {line}")
        group, cluster = status["group"], str(status.get("cluster"))
        if clusters.setdefault(group, cluster) != cluster:
            raise SourceError(
                f"{source}, line {line}: group {group!r} is in cluster {cluster!r}, but before it was in cluster "
                f"{clusters[group]!r}; give the responses of one cluster"
            )
        for partition in status["partitions"]:
            item += 1
            row = _row(partition, f"{source}, item {item}")
            label = f"{row['topic']}-{row['partition']}"
            if row["current_offset"] is None:
                remarks[group].unknown.add(label)
            elif _share(partition) < 1:
                remarks[group].partial.add(label)
            reading.offsets.append((item, {"group": group} | row))
    add_owners(reading, remarks, "Burrow")
    if reading.members:
        reading.notes.append("Burrow names members by client id and host: members that share both count as one")
    return reading


def _status(document: Any, place: str) -> dict[str, Any]:
    """Return the status of a group in a response, after checking that it has all partitions."""
    if not _is_answer(document):
        raise SourceError(f"{place}: not a response of Burrow: {shown(document)}; {_ASK}")
    if document["error"]:
        raise SourceError(f"{place}: Burrow returned an error: {document['message']}")
    status = document.get("status")
    partitions = status.get("partitions") if isinstance(status, dict) else None
    if not isinstance(status, dict) or not isinstance(partitions, list) or not isinstance(status.get("group"), str):
        raise SourceError(f"{place}: has no lag by partition; {_ASK}")
    if not partitions:
        raise SourceError(f"{place}: Burrow knows no partition of group {status['group']!r} ({status.get('status')})")
    count = whole_number(status.get("partition_count"))
    if count is not None and count > len(partitions):
        raise SourceError(
            f"{place}: has only {len(partitions)} of the group's {count} partitions, as /status omits healthy ones; "
            f"{_ASK}"
        )
    return status


def _row(partition: Any, place: str) -> dict[str, Any]:
    """Return the row of a partition, with 0 for an unknown lag."""
    if not isinstance(partition, dict):
        raise SourceError(f"{place}: not a partition: {shown(partition)}")
    topic, number, end = partition.get("topic"), whole_number(partition.get("partition")), partition.get("end")
    if not isinstance(topic, str) or number is None:
        raise SourceError(f"{place}: has no topic and partition: {shown(partition)}")
    current = lag = None
    if isinstance(end, dict):
        current = whole_number(end.get("offset"))
        lag = whole_number(partition["current_lag"] if "current_lag" in partition else end.get("lag"))
        if current is None or lag is None or current < 0 or lag < 0:
            raise SourceError(f"{place}: {topic}-{number}: offset and lag must be whole numbers: {shown(partition)}")
    elif end is not None:
        raise SourceError(f"{place}: {topic}-{number}: `end` must be an offset, not {shown(end)}")
    check_texts(partition, ("owner", "client_id"), f"{place}: {topic}-{number}")
    host, client = partition.get("owner") or None, partition.get("client_id") or None
    return {
        "topic": topic,
        "partition": number,
        "current_offset": current,
        "log_end_offset": None if current is None or lag is None else current + lag,
        "lag": lag or 0,
        "consumer_id": (f"{client}_{host}" if client else host) if host else client,
        "client_id": client,
        "host": host,
    }


def _share(partition: dict[str, Any]) -> float:
    """Return the share of Burrow's time window for which it has data."""
    share = partition.get("complete", 1)
    return float(share) if isinstance(share, int | float) else 1.0


FORMAT = Format("burrow", "Burrow's JSON of a consumer's lag", recognises, read)
