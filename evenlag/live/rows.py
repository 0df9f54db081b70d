"""From what the brokers answered to the rows of the snapshot tables; nothing here asks the cluster."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evenlag.live.client import Description, Failure, Member, TopicPartition
from evenlag.pipeline.tables.contract import MEMBERS, OFFSETS, Row

UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PART"
ACL_HINTS = {
    "GROUP_AUTHORIZATION_FAILED": "the user needs the ACL Describe on the group",
    "TOPIC_AUTHORIZATION_FAILED": "the user needs the ACL Describe on the topic",
}
SHOWN = 5  # names in a message

Layout = Mapping[str, Sequence[int] | Failure]
LogOffsets = Mapping[TopicPartition, tuple[int | Failure, int | Failure]]


@dataclass(frozen=True)
class Group:
    """A group as described, with its committed offsets (a Failure where the broker did not tell one)."""

    name: str
    description: Description
    commits: Mapping[TopicPartition, int | Failure]

    def known(self) -> set[TopicPartition]:
        """The partitions that it has committed to, that a member holds, or that a member shall come to hold."""
        members = self.description.members
        return {*self.commits, *(key for member in members for key in (*member.partitions, *member.target))}

    def owners(self) -> dict[TopicPartition, Member]:
        """The member that holds each partition; in a group that is rebalancing two may, then the last by id."""
        return {key: member for member in self.description.members for key in member.partitions}


def partitions_of(group: Group, layout: Layout) -> tuple[list[TopicPartition], list[str]]:
    """Every partition of every topic that the group is known to read, and warnings of those that are gone.

    Of a topic that the broker does not describe (authorisation) only those remain that the group is known to have.
    """
    known = group.known()
    partitions: set[TopicPartition] = set()
    warnings = []
    for topic in sorted({topic for topic, _ in known}):
        listed = layout[topic]
        mine = {key for key in known if key[0] == topic}
        if isinstance(listed, Failure):
            existing = set() if listed.name == UNKNOWN_TOPIC else mine
        else:
            existing = {(topic, partition) for partition in listed}
        gone = sorted(partition for _, partition in mine - existing)
        if gone:
            warnings.append(f"group '{group.name}', topic {topic}: no more partitions {some(gone)}; left out")
        partitions |= existing
    return sorted(partitions), warnings


def offset_rows(
    snapshot_ts: str, group: Group, partitions: Iterable[TopicPartition], log: LogOffsets
) -> tuple[list[Row], list[str]]:
    """A row per partition with the columns of the offsets table; offsets that a broker did not tell are null."""
    owners = group.owners()
    rows: list[Row] = []
    untold: dict[tuple[str, str], list[int]] = {}
    for topic, partition in partitions:
        start, end = log[topic, partition]
        commit = group.commits.get((topic, partition))
        for answer in (commit, end if isinstance(end, Failure) else start):
            if isinstance(answer, Failure):
                untold.setdefault((topic, explained(answer)), []).append(partition)
        owner = owners.get((topic, partition))
        lag = max(end - commit, 0) if isinstance(end, int) and isinstance(commit, int) else None
        row: Row = {
            "snapshot_ts": snapshot_ts,
            "group": group.name,
            "topic": topic,
            "partition": partition,
            "log_start_offset": start if isinstance(start, int) else None,
            "log_end_offset": end if isinstance(end, int) else None,
            "current_offset": commit if isinstance(commit, int) else None,
            "lag": lag,
        }
        if owner is not None:
            row |= {"consumer_id": owner.consumer_id, "client_id": owner.client_id, "host": owner.host}
        rows.append({column.name: row.get(column.name) for column in OFFSETS})
    warnings = [
        f"group '{group.name}', topic {topic}: offsets of partitions {some(missing)} left null: {why}"
        for (topic, why), missing in untold.items()
    ]
    return rows, warnings


def member_rows(snapshot_ts: str, group: Group) -> list[Row]:
    """A row per member with the columns of the members table; brokers tell no topics, weights or generations."""
    rows: list[Row] = [
        {
            "snapshot_ts": snapshot_ts,
            "group": group.name,
            "consumer_id": member.consumer_id,
            "client_id": member.client_id,
            "host": member.host,
            "group_instance_id": member.group_instance_id,
        }
        for member in group.description.members
    ]
    return [{column.name: row.get(column.name) for column in MEMBERS} for row in rows]


def explained(failure: Failure) -> str:
    """The failure's text, with what to do about it where that is known."""
    hint = ACL_HINTS.get(failure.name)
    return f"{failure.text} ({hint})" if hint else failure.text


def some(names: Sequence[object]) -> str:
    """The first few of them, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(str, names[:SHOWN])) + more
