"""Layout of the records in `__consumer_offsets`, from Kafka's message definitions (4.1).

A key begins with 16 bits that name its type, a value with 16 bits that name its version. Fields follow without gaps, in
the order of their declaration. From the first flexible version on, lengths are varints and tagged fields end a message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["int8", "int16", "int32", "int64", "string", "bytes", "uuid", "array", "struct"]

NEVER = 1 << 15
"""A version that no message has."""


@dataclass(frozen=True)
class Field:
    """A field of a message, under Kafka's name.

    Attributes
    ----------
    since, until : int
        First and last version that has the field.
    nullable : bool
        True if the value may be null.
    of : tuple of Field, or Field
        Fields of a "struct"; of an "array", the declaration of its elements.
    tag : int or None
        Number of a tagged field, which a message may omit.
    """

    name: str
    kind: Kind
    since: int = 0
    until: int = NEVER
    nullable: bool = False
    of: tuple[Field, ...] = ()
    tag: int | None = None

    def present(self, version: int) -> bool:
        """Return whether messages of a version have the field."""
        return self.since <= version <= self.until


@dataclass(frozen=True)
class RecordType:
    """A type of record.

    Attributes
    ----------
    name : str
        Kafka's name of it.
    last : int
        Last known version of values; the first is 0.
    flexible : int
        First version of values with varints and tagged fields. Keys have neither.
    """

    name: str
    key: tuple[Field, ...]
    value: tuple[Field, ...]
    last: int = 0
    flexible: int = 0


def _array(name: str, *of: Field) -> Field:
    return Field(name, "array", of=of)


def _texts(name: str) -> Field:
    return _array(name, Field("", "string"))


def _partitions(name: str, *more: Field) -> Field:
    return _array(name, Field("topicId", "uuid"), _array("partitions", Field("", "int32")), *more)


_ASSIGNMENT_EPOCHS = Field("assignmentEpochs", "array", nullable=True, of=(Field("", "int32"),), tag=0)
_GROUP, _MEMBER = Field("groupId", "string"), Field("memberId", "string")
_COMMIT_KEY = (Field("group", "string"), Field("topic", "string"), Field("partition", "int32"))
_COMMIT_VALUE = (
    Field("offset", "int64"),
    Field("leaderEpoch", "int32", since=3),
    Field("metadata", "string"),
    Field("commitTimestamp", "int64"),
    Field("expireTimestamp", "int64", since=1, until=1),
    Field("topicId", "uuid", since=4, tag=0),
)
_CLASSIC_MEMBERS = _array(
    "members",
    Field("memberId", "string"),
    Field("groupInstanceId", "string", since=3, nullable=True),
    Field("clientId", "string"),
    Field("clientHost", "string"),
    Field("rebalanceTimeout", "int32", since=1),
    Field("sessionTimeout", "int32"),
    Field("subscription", "bytes"),
    Field("assignment", "bytes"),
)
_CLASSIC_PROTOCOLS = _array("supportedProtocols", Field("name", "string"), Field("metadata", "bytes"))

LEGACY_COMMIT, COMMIT, CLASSIC_GROUP = 0, 1, 2
GROUP_EPOCH, TOPICS, MEMBER, TARGET_EPOCH, TARGET, CURRENT, REGEX = 3, 4, 5, 6, 7, 8, 16

COMMITS = (LEGACY_COMMIT, COMMIT)

TYPES = {
    LEGACY_COMMIT: RecordType("LegacyOffsetCommit", _COMMIT_KEY, _COMMIT_VALUE, last=4, flexible=4),
    COMMIT: RecordType("OffsetCommit", _COMMIT_KEY, _COMMIT_VALUE, last=4, flexible=4),
    CLASSIC_GROUP: RecordType(
        "GroupMetadata",
        (Field("group", "string"),),
        (
            Field("protocolType", "string"),
            Field("generation", "int32"),
            Field("protocol", "string", nullable=True),
            Field("leader", "string", nullable=True),
            Field("currentStateTimestamp", "int64", since=2),
            _CLASSIC_MEMBERS,
        ),
        last=4,
        flexible=4,
    ),
    GROUP_EPOCH: RecordType(
        "ConsumerGroupMetadata", (_GROUP,), (Field("epoch", "int32"), Field("metadataHash", "int64", tag=0))
    ),
    TOPICS: RecordType(
        "ConsumerGroupPartitionMetadata",
        (_GROUP,),
        (
            _array(
                "topics",
                Field("topicId", "uuid"),
                Field("topicName", "string"),
                Field("numPartitions", "int32"),
                _array("partitionMetadata", Field("partition", "int32"), _texts("racks")),
            ),
        ),
    ),
    MEMBER: RecordType(
        "ConsumerGroupMemberMetadata",
        (_GROUP, _MEMBER),
        (
            Field("instanceId", "string", nullable=True),
            Field("rackId", "string", nullable=True),
            Field("clientId", "string"),
            Field("clientHost", "string"),
            _texts("subscribedTopicNames"),
            Field("subscribedTopicRegex", "string", nullable=True),
            Field("rebalanceTimeoutMs", "int32"),
            Field("serverAssignor", "string", nullable=True),
            Field(
                "classicMemberMetadata",
                "struct",
                nullable=True,
                of=(Field("sessionTimeoutMs", "int32"), _CLASSIC_PROTOCOLS),
                tag=0,
            ),
        ),
    ),
    TARGET_EPOCH: RecordType(
        "ConsumerGroupTargetAssignmentMetadata",
        (_GROUP,),
        (Field("assignmentEpoch", "int32"), Field("assignmentTimestamp", "int64", tag=0)),
    ),
    TARGET: RecordType("ConsumerGroupTargetAssignmentMember", (_GROUP, _MEMBER), (_partitions("topicPartitions"),)),
    CURRENT: RecordType(
        "ConsumerGroupCurrentMemberAssignment",
        (_GROUP, _MEMBER),
        (
            Field("memberEpoch", "int32"),
            Field("previousMemberEpoch", "int32"),
            Field("state", "int8"),
            _partitions("assignedPartitions", _ASSIGNMENT_EPOCHS),
            _partitions("partitionsPendingRevocation", _ASSIGNMENT_EPOCHS),
        ),
    ),
    REGEX: RecordType(
        "ConsumerGroupRegularExpression",
        (_GROUP, Field("regularExpression", "string")),
        (_texts("topics"), Field("version", "int64"), Field("timestamp", "int64")),
    ),
}
"""Types of records that are read, by the first 16 bits of their keys."""

LEFT_OUT = {**dict.fromkeys(range(9, 16), "share group"), **dict.fromkeys(range(17, 25), "Streams group")}
"""Types of records of groups that are not consumer groups, by the first 16 bits of their keys."""
