"""Conversion of brokers' answers to plain values, including failures."""

from collections.abc import Iterable
from typing import Any, TypeVar

from kafka import errors

from evenlag.errors import UserDataError
from evenlag.live.group_state import CLASSIC, CONSUMER, Commits, Description, Failure, Member, TopicPartition
from evenlag.protocol.subscriptions import Subscription, assignment_user_data, decode_assignment, decode_subscription

Item = TypeVar("Item")
Answers = dict[Item, Any]
"""The answer or a `Failure` for each requested item."""


def failure(error: Exception) -> Failure:
    """Return the failure for an error of kafka-python."""
    if isinstance(error, errors.BrokerResponseError):
        return failure_of(error.errno)
    return Failure(type(error).__name__, one_line(error))


def failure_of(code: int) -> Failure:
    """Return the failure for an error code of Kafka's protocol."""
    kind = errors.for_code(code)
    text = (kind.description or kind.message).replace("Returned by the broker when", "").strip().rstrip(".")
    return Failure(kind.message, f"{kind.message}: {text}")


def one_line(text: object) -> str:
    """Return a text as one line, with single blanks and without a final full stop."""
    return " ".join(str(text).split()).rstrip(".")


def classic_groups(answer: Any) -> Answers[str]:
    """Read an answer to `DescribeGroups`, which has the members' subscriptions and assignments in stable groups."""
    described: Answers[str] = {}
    for group in answer.groups:
        if group.error_code:
            described[group.group_id] = failure_of(group.error_code)
            continue
        assignor = group.protocol_data or None
        members = [_classic_member(member, assignor) for member in group.members]
        described[group.group_id] = Description(group.group_state, _sorted(members), CLASSIC, assignor)
    return described


def _classic_member(member: Any, assignor: str | None) -> Member:
    subscription: Subscription | None = None
    held: tuple[TopicPartition, ...] = ()
    trouble = user_data = None
    try:
        assignment = bytes(member.member_assignment or b"")
        held = decode_assignment(assignment)
        user_data = assignment_user_data(assignment) if assignment else None
        if member.member_metadata:
            subscription = decode_subscription(bytes(member.member_metadata), assignor)
    except UserDataError as error:
        trouble = str(error)
    if trouble is not None:  # a member must have subscribed to its partitions' topics
        subscription = Subscription(tuple(sorted({topic for topic, _ in held})), trouble=trouble)
    return Member(
        consumer_id=member.member_id,
        client_id=member.client_id or None,
        host=member.client_host or None,
        group_instance_id=member.group_instance_id or None,
        partitions=held,
        subscription=subscription,
        assignment_user_data=user_data,
    )


def consumer_groups(answer: Any) -> Answers[str]:
    """Read an answer to `ConsumerGroupDescribe`."""
    described: Answers[str] = {}
    for group in answer.groups:
        if group.error_code:
            described[group.group_id] = failure_of(group.error_code)
            continue
        members = [
            Member(
                consumer_id=member.member_id,
                client_id=member.client_id or None,
                host=member.client_host or None,
                group_instance_id=member.instance_id or None,
                partitions=_assigned(member.assignment),
                target=_assigned(member.target_assignment),
                subscription=Subscription(
                    tuple(sorted(member.subscribed_topic_names)),
                    regex=member.subscribed_topic_regex or None,
                    rack=member.rack_id or None,
                ),
                epoch=member.member_epoch,
            )
            for member in group.members
        ]
        described[group.group_id] = Description(
            group.group_state, _sorted(members), CONSUMER, group.assignor_name or None, group.group_epoch,
            group.assignment_epoch,
        )  # fmt: skip
    return described


def _sorted(members: Iterable[Member]) -> tuple[Member, ...]:
    return tuple(sorted(members, key=lambda member: member.consumer_id))


def _assigned(assignment: Any) -> tuple[TopicPartition, ...]:
    return tuple((each.topic_name, partition) for each in assignment.topic_partitions for partition in each.partitions)


def commits_of(group: Any) -> Commits | Failure:
    """Read the part of an answer to `OffsetFetch` on one group."""
    if group.error_code:
        return failure_of(group.error_code)
    offsets: dict[TopicPartition, int | Failure] = {}
    metadata: dict[TopicPartition, str] = {}
    for topic in group.topics:
        for partition in topic.partitions:
            key = topic.name, partition.partition_index
            if partition.error_code:
                offsets[key] = failure_of(partition.error_code)
            elif partition.committed_offset >= 0:  # -1 means no commit
                offsets[key] = partition.committed_offset
                if partition.metadata:
                    metadata[key] = partition.metadata
    return Commits(offsets, metadata)


def offsets_of(answer: Any) -> Answers[TopicPartition]:
    """Read an answer to `ListOffsets` on log starts or ends."""
    return {key: found if isinstance(found, Failure) else found[0] for key, found in messages_of(answer).items()}


def messages_of(answer: Any) -> Answers[TopicPartition]:
    """Read an answer to `ListOffsets` on a time: offset and timestamp (milliseconds) of a message, -1 without one."""
    return {
        (topic.name, each.partition_index): (
            failure_of(each.error_code) if each.error_code else (each.offset, each.timestamp)
        )
        for topic in answer.topics
        for each in topic.partitions
    }
