"""The states of groups at times, by applying records of `__consumer_offsets` one by one in plain Python."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from evenlag.protocol.coordinator_records import COMMITS
from evenlag.protocol.membership import GroupRecords
from evenlag.protocol.record_decoding import CoordinatorRecord, decode_record
from tests.support.group_records import Raw

Rows = set[tuple[Any, ...]]


def millis(ts: str) -> int:
    """Return a time as milliseconds since the epoch."""
    return round(datetime.fromisoformat(ts).timestamp() * 1000)


def states_in_python(
    records: Sequence[Raw], times: Sequence[str], topic_names: Mapping[str, str] | None = None
) -> tuple[Rows, Rows]:
    """Return the rows of the offsets and the members table: at each time, all records until then are applied in order.

    A row of the first is `(ts, group, topic, partition, current_offset, consumer_id)`, of the second `(ts, group,
    consumer_id, generation, topics)`.
    """
    offsets: Rows = set()
    members: Rows = set()
    for ts in times:
        commits: dict[Any, int] = {}
        groups: dict[str, GroupRecords] = {}
        for each in records:
            found = decode_record(each.key, each.value)
            if each.timestamp > millis(ts) or not isinstance(found, CoordinatorRecord):
                continue
            if found.kind not in COMMITS:
                name = found.key.get("group", found.key.get("groupId"))
                groups.setdefault(name, GroupRecords(topic_names or {})).add(each.timestamp, each.key, each.value)
                continue
            key = (found.key["group"], found.key["topic"], found.key["partition"])
            commits.pop(key, None)
            if found.value is not None:
                commits[key] = found.value["offset"]
        owners = {}
        for name, state in groups.items():
            group = state.group()
            for member in () if group is None else group.members:
                members.add((ts, name, member.consumer_id, member.epoch, member.subscription.topics))
                owners |= {(name, *key): member.consumer_id for key in member.partitions}
        offsets |= {(ts, *key, commits.get(key), owners.get(key)) for key in commits | owners}
    return offsets, members
