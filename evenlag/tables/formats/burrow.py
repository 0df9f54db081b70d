"""Burrow's JSON of a consumer's lag: `/v3/kafka/CLUSTER/consumer/GROUP/lag`."""

from __future__ import annotations

from typing import Any

from evenlag.errors import SourceError
from evenlag.model.values import shown
from evenlag.tables.formats.base import Format, Reading
from evenlag.tables.formats.json_texts import documents, first_document, whole_number
from evenlag.tables.formats.owners import add_owners
from evenlag.tables.formats.remarks import Remarks

_ASK = "ask Burrow for /v3/kafka/CLUSTER/consumer/GROUP/lag"


def recognises(text: str) -> bool:
    """Return whether a text is an answer of Burrow, be it one of an error."""
    return _is_answer(first_document(text))


def _is_answer(document: object) -> bool:
    if not isinstance(document, dict) or not isinstance(document.get("error"), bool) or "message" not in document:
        return False
    status, request = document.get("status"), document.get("request")
    asked = isinstance(request, dict) and "/kafka" in str(request.get("url"))
    return asked or (isinstance(status, dict) and "partitions" in status)


def read(text: str, source: str) -> Reading:
    """Read one answer, or several of several groups.

    Burrow names the owner of a partition by its host and client id. Members are called as Kafka 0.9 did it,
    `CLIENT-ID_HOST`.

    Raises
    ------
    SourceError
        Burrow tells an error, leaves partitions out (as `/status` does), or an item is broken.
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
                f"{source}, line {line}: group {group!r} of cluster {cluster!r} is also there of cluster "
                f"{clusters[group]!r}; give the answers of one cluster"
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
        reading.notes.append("Burrow names members by client id and host: those that have both in common count as one")
    return reading


def _status(document: Any, place: str) -> dict[str, Any]:
    """Return the status of a group, with all its partitions."""
    if not _is_answer(document):
        raise SourceError(f"{place}: is no answer of Burrow: {shown(document)}; {_ASK}")
    if document["error"]:
        raise SourceError(f"{place}: Burrow answered with an error: {document['message']}")
    status = document.get("status")
    partitions = status.get("partitions") if isinstance(status, dict) else None
    if not isinstance(status, dict) or not isinstance(partitions, list) or not isinstance(status.get("group"), str):
        raise SourceError(f"{place}: tells no lag by partition; {_ASK}")
    if not partitions:
        raise SourceError(f"{place}: Burrow knows no partition of group {status['group']!r} ({status.get('status')})")
    count = whole_number(status.get("partition_count"))
    if count is not None and count > len(partitions):
        raise SourceError(
            f"{place}: has {len(partitions)} of the group's {count} partitions, as /status leaves out those that are "
            f"well; {_ASK}"
        )
    return status


def _row(partition: Any, place: str) -> dict[str, Any]:
    """Return the row of a partition; a lag that is unknown is 0."""
    if not isinstance(partition, dict):
        raise SourceError(f"{place}: is no partition: {shown(partition)}")
    topic, number, end = partition.get("topic"), whole_number(partition.get("partition")), partition.get("end")
    if not isinstance(topic, str) or number is None:
        raise SourceError(f"{place}: has no topic and partition: {shown(partition)}")
    current = lag = None
    if isinstance(end, dict):
        current = whole_number(end.get("offset"))
        lag = whole_number(partition["current_lag"] if "current_lag" in partition else end.get("lag"))
        if current is None or lag is None or current < 0 or lag < 0:
            raise SourceError(f"{place}: {topic}-{number} has no whole number as its offset or lag: {shown(partition)}")
    elif end is not None:
        raise SourceError(f"{place}: {topic}-{number} has an end that is no offset: {shown(end)}")
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
    """Return how much of the time that Burrow looks at it has seen."""
    share = partition.get("complete", 1)
    return float(share) if isinstance(share, int | float) else 1.0


BURROW = Format("burrow", "Burrow's JSON of a consumer's lag", recognises, read)
