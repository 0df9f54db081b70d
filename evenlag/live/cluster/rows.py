"""From what the brokers answered to the rows of the snapshot tables; nothing here asks the cluster."""

from collections.abc import Iterable, Mapping

from evenlag.live.group_state import Failure, Group, TopicPartition
from evenlag.live.subscriptions import matching
from evenlag.live.wording import explained, some
from evenlag.tables.columns import MEMBERS, OFFSETS, Row

UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"
Layout = Mapping[str, Mapping[int, tuple[str, ...]] | Failure]  # of each topic the racks of each partition's replicas
LogOffsets = Mapping[TopicPartition, tuple[int | Failure, int | Failure]]
Subscriptions = Mapping[str, tuple[str, ...] | None]  # of each member; None where they are not told


def subscriptions_of(
    group: Group, topics: Iterable[str] | Failure
) -> tuple[dict[str, tuple[str, ...] | None], list[str]]:
    """The topics that each member subscribes to, and warnings of what could not be read.

    A regular expression stands for those of `topics` that it matches. Where it, the topics, or what a member sent of
    itself, cannot be read, the topics that the member has partitions of stand in: it reads those for certain.
    """
    names = None if isinstance(topics, Failure) else list(topics)
    untold = f" ({explained(topics)})" if isinstance(topics, Failure) else ""
    resolved: dict[str, tuple[str, ...] | None] = {}
    subscribed: dict[str, tuple[str, ...] | None] = {}
    unread: dict[str, list[str]] = {}
    for member in group.description.members:
        told = member.subscription
        if told is None:
            subscribed[member.consumer_id] = None
            continue
        mine = set(told.topics)
        if told.regex is not None:
            if told.regex not in resolved:
                resolved[told.regex] = None if names is None else matching(told.regex, names)
            matched = resolved[told.regex]
            if matched is None:
                what = f"what the regular expression {told.regex} stands for{untold}"
                unread.setdefault(what, []).append(member.consumer_id)
                matched = tuple(topic for topic, _ in member.known())
            mine |= set(matched)
        if told.trouble is not None:
            unread.setdefault(f"what it sent when it joined ({told.trouble})", []).append(member.consumer_id)
        subscribed[member.consumer_id] = tuple(sorted(mine))
    warnings = [
        f"group '{group.name}', members {some(members)}: {what} cannot be read; of its topics those are taken that "
        "are certain"
        for what, members in unread.items()
    ]
    return subscribed, warnings


def partitions_of(group: Group, subscribed: Subscriptions, layout: Layout) -> tuple[list[TopicPartition], list[str]]:
    """Every partition of every topic that the group reads or has read, and warnings of those that are gone.

    Of a topic that the broker does not describe (authorisation) only those remain that the group is known to have.
    """
    known = group.known()
    partitions: set[TopicPartition] = set()
    warnings = []
    absent = []
    for topic in sorted(topics_of(group, subscribed)):
        listed = layout[topic]
        mine = {key for key in known if key[0] == topic}
        if isinstance(listed, Failure):
            existing = set() if listed.name == UNKNOWN_TOPIC else mine
            if not mine and listed.name == UNKNOWN_TOPIC:
                absent.append(topic)
            elif not mine:
                warnings.append(f"group '{group.name}', topic {topic}: left out: {explained(listed)}")
        else:
            existing = {(topic, partition) for partition in listed}
        gone = sorted(partition for _, partition in mine - existing)
        if gone:
            warnings.append(f"group '{group.name}', topic {topic}: no more partitions {some(gone)}; left out")
        partitions |= existing
    if absent:
        warnings.append(f"group '{group.name}' subscribes to topics that are not there: {some(absent)}")
    return sorted(partitions), warnings


def topics_of(group: Group, subscribed: Subscriptions) -> set[str]:
    """The topics that it has committed to, has partitions of, or subscribes to."""
    return {topic for topic, _ in group.known()} | {topic for topics in subscribed.values() for topic in topics or ()}


def offset_rows(
    snapshot_ts: str, group: Group, partitions: Iterable[TopicPartition], layout: Layout, log: LogOffsets
) -> tuple[list[Row], list[str]]:
    """A row per partition with the columns of the offsets table; offsets that a broker did not tell are null."""
    owners = group.owners()
    rows: list[Row] = []
    untold: dict[tuple[str, str], list[int]] = {}
    for topic, partition in partitions:
        start, end = log[topic, partition]
        commit = group.commits.offsets.get((topic, partition))
        for answer in (commit, end if isinstance(end, Failure) else start):
            if isinstance(answer, Failure):
                untold.setdefault((topic, explained(answer)), []).append(partition)
        owner = owners.get((topic, partition))
        listed = layout[topic]
        racks = () if isinstance(listed, Failure) else listed[partition]
        row: Row = {
            "snapshot_ts": snapshot_ts,
            "group": group.name,
            "topic": topic,
            "partition": partition,
            "log_start_offset": start if isinstance(start, int) else None,
            "log_end_offset": end if isinstance(end, int) else None,
            "current_offset": commit if isinstance(commit, int) else None,
            "lag": max(end - commit, 0) if isinstance(end, int) and isinstance(commit, int) else None,
            "replica_racks": list(racks) or None,
        }
        if owner is not None:
            row |= {"consumer_id": owner.consumer_id, "client_id": owner.client_id, "host": owner.host}
        rows.append({column.name: row.get(column.name) for column in OFFSETS})
    warnings = [
        f"group '{group.name}', topic {topic}: offsets of partitions {some(missing)} left null: {why}"
        for (topic, why), missing in untold.items()
    ]
    return rows, warnings


def member_rows(snapshot_ts: str, group: Group, subscribed: Subscriptions) -> list[Row]:
    """A row per member with the columns of the members table."""
    description = group.description
    rows: list[Row] = []
    for member in description.members:
        topics, told = subscribed[member.consumer_id], member.subscription
        row: Row = {
            "snapshot_ts": snapshot_ts,
            "group": group.name,
            "consumer_id": member.consumer_id,
            "client_id": member.client_id,
            "host": member.host,
            "group_instance_id": member.group_instance_id,
            "topics": None if topics is None else list(topics),
            "generation": member.epoch,
            "protocol": description.protocol,
            "assignor": description.assignor,
            "group_epoch": description.epoch,
            "assignment_epoch": description.assignment_epoch,
        }
        if told is not None:
            row |= {
                "weight": told.weight,
                "rack": told.rack,
                "topics_regex": told.regex,
                "claimed": [f"{topic}-{partition}" for topic, partition in told.owned] or None,
                "claimed_generation": told.generation,
            }
        rows.append({column.name: row.get(column.name) for column in MEMBERS})
    return rows
