"""Conversion of the brokers' answers to rows of the snapshot tables, without requests to the cluster."""

from collections.abc import Iterable, Mapping

from evenlag.figures import some
from evenlag.live.group_state import Failure, Group, TopicPartition
from evenlag.live.wording import UNKNOWN_TOPIC, explained
from evenlag.protocol.subscriptions import matching
from evenlag.tables.columns import MEMBERS, OFFSETS, Row

Layout = Mapping[str, Mapping[int, tuple[str, ...]] | Failure]  # racks of the replicas, by topic and partition
LogOffsets = Mapping[TopicPartition, tuple[int | Failure, int | Failure]]
Subscriptions = Mapping[str, tuple[str, ...] | None]  # topics of each member; None if unknown


def subscriptions_of(
    group: Group, topics: Iterable[str] | Failure
) -> tuple[dict[str, tuple[str, ...] | None], list[str]]:
    """Return the topics that each member subscribes to, and warnings about unreadable subscriptions.

    A regular expression is replaced by those of `topics` that it matches. If the expression, the topics, or the data
    that a member sent cannot be read, the topics of the member's partitions are used, to which it certainly subscribes.
    """
    names = None if isinstance(topics, Failure) else list(topics)
    why_unknown = f" ({explained(topics)})" if isinstance(topics, Failure) else ""
    resolved: dict[str, tuple[str, ...] | None] = {}
    subscribed: dict[str, tuple[str, ...] | None] = {}
    unread: dict[str, list[str]] = {}
    for member in group.description.members:
        subscription = member.subscription
        if subscription is None:
            subscribed[member.consumer_id] = None
            continue
        mine = set(subscription.topics)
        if subscription.regex is not None:
            if subscription.regex not in resolved:
                resolved[subscription.regex] = None if names is None else matching(subscription.regex, names)
            matched = resolved[subscription.regex]
            if matched is None:
                what = f"the matches of the regular expression {subscription.regex}{why_unknown}"
                unread.setdefault(what, []).append(member.consumer_id)
                matched = tuple(topic for topic, _ in member.known())
            mine |= set(matched)
        if subscription.trouble is not None:
            unread.setdefault(f"the data sent on joining ({subscription.trouble})", []).append(member.consumer_id)
        subscribed[member.consumer_id] = tuple(sorted(mine))
    warnings = [
        f"group '{group.name}', members {some(members)}: {what} cannot be read; only the topics that are certain are "
        "used"
        for what, members in unread.items()
    ]
    return subscribed, warnings


def partitions_of(group: Group, subscribed: Subscriptions, layout: Layout) -> tuple[list[TopicPartition], list[str]]:
    """Return all partitions of the topics that the group reads or has read, and warnings about deleted ones.

    If the broker does not describe a topic (authorization), only the partitions known from the group remain.
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
            warnings.append(f"group '{group.name}', topic {topic}: partitions {some(gone)} no longer exist; left out")
        partitions |= existing
    if absent:
        warnings.append(f"group '{group.name}' subscribes to topics that do not exist: {some(absent)}")
    return sorted(partitions), warnings


def why_unread(
    group: Group, subscribed: Subscriptions, partitions: Iterable[TopicPartition], layout: Layout
) -> str | None:
    """Return why a group's partitions are missing or incomplete; None if all of them are known."""
    topics, seen = topics_of(group, subscribed), {topic for topic, _ in partitions}
    hidden = [
        f"topic {topic}: {explained(listed)}"
        for topic in sorted(topics - seen)
        if isinstance(listed := layout[topic], Failure) and listed.name != UNKNOWN_TOPIC
    ]
    if hidden or seen:
        return "; ".join(hidden) or None
    if topics:
        return f"none of its topics exists: {some(sorted(topics))}"
    if group.description.members:
        return "its members subscribe to no existing topic"
    return (
        "neither members nor committed offsets can be seen: the user needs the ACL Describe on the topics, unless the "
        "group is new"
    )


def topics_of(group: Group, subscribed: Subscriptions) -> set[str]:
    """Return the topics that the group has committed to, holds partitions of, or subscribes to."""
    return {topic for topic, _ in group.known()} | {topic for topics in subscribed.values() for topic in topics or ()}


def offset_rows(
    snapshot_ts: str, group: Group, partitions: Iterable[TopicPartition], layout: Layout, log: LogOffsets
) -> tuple[list[Row], list[str]]:
    """Return an offsets row per partition, with null for unknown offsets, and warnings about unknown ones."""
    owners = group.owners()
    rows: list[Row] = []
    unknown: dict[tuple[str, str], list[int]] = {}
    for topic, partition in partitions:
        start, end = log[topic, partition]
        commit = group.commits.offsets.get((topic, partition))
        for answer in (commit, end if isinstance(end, Failure) else start):
            if isinstance(answer, Failure):
                unknown.setdefault((topic, explained(answer)), []).append(partition)
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
        for (topic, why), missing in unknown.items()
    ]
    return rows, warnings


def member_rows(snapshot_ts: str, group: Group, subscribed: Subscriptions) -> list[Row]:
    """Return a row of the members table for each member."""
    description = group.description
    rows: list[Row] = []
    for member in description.members:
        topics, subscription = subscribed[member.consumer_id], member.subscription
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
            "group_state": description.state,
            "assignor": description.assignor,
            "group_epoch": description.epoch,
            "assignment_epoch": description.assignment_epoch,
            "assignment_user_data": member.assignment_user_data,
        }
        if subscription is not None:
            row |= {
                "weight": subscription.weight,
                "rack": subscription.rack,
                "topics_regex": subscription.regex,
                "claimed": [f"{topic}-{partition}" for topic, partition in subscription.owned] or None,
                "claimed_generation": subscription.generation,
            }
        rows.append({column.name: row.get(column.name) for column in MEMBERS})
    return rows
