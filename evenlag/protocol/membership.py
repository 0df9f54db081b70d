"""A group's members and rebalances, from its records in `__consumer_offsets` in order.

A classic group writes one record when a rebalance ends, with all members and their assignments. A KIP-848 group writes
a record for each change: members, epochs, target and current assignments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evenlag.errors import UserDataError
from evenlag.protocol.coordinator_records import (
    CLASSIC_GROUP,
    COMMITS,
    CURRENT,
    GROUP_EPOCH,
    MEMBER,
    REGEX,
    TARGET,
    TARGET_EPOCH,
    TOPICS,
)
from evenlag.protocol.record_decoding import CoordinatorRecord, PassedOver, decode_record
from evenlag.protocol.subscriptions import Subscription, decode_assignment, decode_subscription
from evenlag.protocol.user_data import Partition

CLASSIC, CONSUMER = "classic", "consumer"
STABLE = 0  # state of a KIP-848 member that has all that it should have and nothing else

OTHER_KIND = "a record of a classic group that is not one of consumers"
BAD_SUBSCRIPTION = "the subscription of a member cannot be decoded"
BAD_ASSIGNMENT = "the assignment of a member cannot be decoded"

JOIN, LEAVE, SUBSCRIPTION, METADATA, OTHER = "join", "leave", "subscription", "metadata", "other"
"""Causes of a rebalance, as far as records show them. METADATA: the topics or their partitions changed (KIP-848)."""


@dataclass(frozen=True)
class SeenMember:
    """A member at one time.

    Attributes
    ----------
    epoch : int or None
        Member epoch (KIP-848).
    partitions : tuple of (topic, partition)
        Its assignment.
    """

    consumer_id: str
    client_id: str
    host: str
    group_instance_id: str | None
    subscription: Subscription
    partitions: tuple[Partition, ...] = ()
    epoch: int | None = None

    @property
    def identity(self) -> str:
        """The instance id of a static member, else its member id: it stays when a static member restarts."""
        return self.group_instance_id or self.consumer_id


@dataclass(frozen=True)
class SeenGroup:
    """A group at one time; epochs are defined by KIP-848."""

    protocol: str
    assignor: str | None = None
    epoch: int | None = None
    assignment_epoch: int | None = None
    members: tuple[SeenMember, ...] = ()


@dataclass
class Rebalance:
    """A rebalance.

    Attributes
    ----------
    millis : int
        When it ended (classic), or when its target assignment was made (KIP-848), in milliseconds since the epoch.
    generation : int
        Generation, or epoch of the assignment (KIP-848), after it.
    why : str
        Causes joined by `+`; see `JOIN` and the words next to it.
    members_before, members_after : int
        Numbers of members.
    joined, left, resubscribed : int
        Numbers of members that are new, gone, or have other topics. A static member that restarts is the same.
    partitions : int
        Partitions that have an owner after it.
    moved, forced : int
        Partitions that were taken from an owner who stays, and partitions whose owner left.
    settled_seconds : float or None
        Seconds until every member had its assignment (KIP-848); None if the records do not show it.
    handed : list of (topic, partition, int)
        Partitions that it took from an owner, each with the time in milliseconds when another member had it.
    """

    millis: int
    protocol: str
    generation: int
    why: str
    members_before: int
    members_after: int
    joined: int
    left: int
    resubscribed: int
    partitions: int
    moved: int
    forced: int
    settled_seconds: float | None = None
    handed: list[tuple[str, int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class _Look:
    """The basis for comparison of a rebalance: topics by member, and members by partition."""

    topics: Mapping[str, tuple[str, ...]]
    owners: Mapping[Partition, str]


class GroupRecords:
    """The state of one group, changed by one record after another.

    Parameters
    ----------
    topic_names : mapping of str to str
        Topic names by topic id. Records of KIP-848 groups contain only ids.

    Attributes
    ----------
    rebalances : list of Rebalance
        Rebalances seen so far. A group's first record is not counted if its past is unknown.
    unnamed : set of str
        Ids of topics without a name; their partitions are left out.
    """

    def __init__(self, topic_names: Mapping[str, str]) -> None:
        self._names = dict(topic_names)
        self.rebalances: list[Rebalance] = []
        self.unnamed: set[str] = set()
        self._classic: SeenGroup | None = None
        self._generation = -1
        self._epoch: int | None = None
        self._assignment_epoch: int | None = None
        self._hash: int | None = None
        self._changed_hash = False
        self._members: dict[str, dict[str, Any]] = {}
        self._targets: dict[str, tuple[Partition, ...]] = {}
        self._currents: dict[str, dict[str, Any]] = {}
        self._matches: dict[str, tuple[str, ...]] = {}
        self._before: _Look | None = None
        self._taken: dict[Partition, tuple[Rebalance, str]] = {}  # not yet handed on: rebalance, previous member

    def add(self, millis: int, key: bytes | None, value: bytes | None) -> str | None:
        """Apply a record, and return why it is passed over; None if it is used."""
        record = decode_record(key, value)
        if isinstance(record, PassedOver):
            return record.reason
        if record.kind == CLASSIC_GROUP:
            return self._add_classic(millis, record.value)
        if record.kind not in COMMITS:
            self._add_consumer(millis, record)
        return None

    def group(self) -> SeenGroup | None:
        """Return the group as it is now; None if it has no record, or was deleted."""
        if self._epoch is None:
            return self._classic
        assignors = {each["serverAssignor"] for each in self._members.values()} - {None}
        return SeenGroup(
            CONSUMER,
            min(assignors, default=None),
            self._epoch,
            self._assignment_epoch,
            tuple(self._consumer(name) for name in sorted(self._members)),
        )

    # ---- classic groups ----------------------------------------------------------------------------------------------

    def _add_classic(self, millis: int, value: dict[str, Any] | None) -> str | None:
        if value is None:
            self._classic = self._before = None
            self._taken = {}
            return None
        if value["protocolType"] not in ("", CONSUMER):
            return OTHER_KIND
        members = []
        for each in value["members"]:
            try:
                subscription = decode_subscription(each["subscription"], value["protocol"])
            except UserDataError:
                return BAD_SUBSCRIPTION
            try:
                partitions = decode_assignment(each["assignment"])
            except UserDataError:
                return BAD_ASSIGNMENT
            ids = (each["memberId"], each["clientId"], each["clientHost"], each.get("groupInstanceId"))
            members.append(SeenMember(*ids, subscription, partitions))
        members.sort(key=lambda member: member.consumer_id)
        after = SeenGroup(CLASSIC, value["protocol"] or None, members=tuple(members))
        look = _look(after.members)
        if self._before is not None and (
            value["generation"] != self._generation or look.topics.keys() != self._before.topics.keys()
        ):
            self._note(millis, CLASSIC, value["generation"], look)
        elif self._before is None and value["generation"] == 1:  # its first: nobody was there before
            self._before = _Look({}, {})
            self._note(millis, CLASSIC, 1, look)
        self._hand_on(millis, look.owners)
        self._classic, self._generation, self._before = after, value["generation"], look
        self._epoch = None
        return None

    # ---- KIP-848 -----------------------------------------------------------------------------------------------------

    def _add_consumer(self, millis: int, record: CoordinatorRecord) -> None:
        kind, value = record.kind, record.value
        name = record.key.get("memberId", record.key.get("regularExpression", ""))
        if kind == MEMBER:
            _put(self._members, name, value)
        elif kind == TARGET:
            _put(self._targets, name, value and self._partitions(value["topicPartitions"]))
        elif kind == CURRENT:
            _put(self._currents, name, value)
            if value is not None and self._taken:
                me = self._identity(name)
                held = dict.fromkeys(self._partitions(value["assignedPartitions"]), me)
                self._hand_on(millis, {key: me for key in held if key in self._taken and self._taken[key][1] != me})
            self._settle(millis)
        elif kind == REGEX:
            _put(self._matches, name, value and tuple(value["topics"]))
        elif kind == TOPICS and value is not None:
            self._names |= {each["topicId"]: each["topicName"] for each in value["topics"]}
        elif kind == TARGET_EPOCH:
            self._assignment_epoch = None if value is None else value["assignmentEpoch"]
            if value is not None:
                self._end_round(millis, value["assignmentEpoch"])
        elif kind == GROUP_EPOCH:
            self._add_epoch(millis, value)

    def _add_epoch(self, millis: int, value: dict[str, Any] | None) -> None:
        if value is None:
            self._epoch = self._before = None
            self._taken = {}
            return
        was, self._epoch = self._epoch, value["epoch"]
        if was is None and value["epoch"] == 1:
            self._before = _Look({}, {})
        told = value.get("metadataHash")
        self._changed_hash |= self._hash is not None and told is not None and told != self._hash
        self._hash = told if told is not None else self._hash
        if not self._members:  # nobody is left to whom a target could be given
            self._end_round(millis, value["epoch"])

    def _end_round(self, millis: int, epoch: int) -> None:
        owners = {key: self._identity(name) for name, partitions in self._targets.items() for key in partitions}
        look = _Look({self._identity(name): self._topics(name) for name in self._members}, owners)
        if self._before is not None:
            self._note(millis, CONSUMER, epoch, look, metadata=self._changed_hash)
        self._before, self._changed_hash = look, False

    def _settle(self, millis: int) -> None:
        if not self.rebalances or self.rebalances[-1].settled_seconds is not None or not self._members:
            return
        currents = [self._currents.get(name) for name in self._members]
        done = (
            each is not None and (each["memberEpoch"], each["state"]) == (self._assignment_epoch, STABLE)
            for each in currents
        )
        if self.rebalances[-1].generation == self._assignment_epoch and all(done):
            self.rebalances[-1].settled_seconds = max(millis - self.rebalances[-1].millis, 0) / 1000

    def _identity(self, name: str) -> str:
        return str(self._members.get(name, {}).get("instanceId") or name)

    def _topics(self, name: str) -> tuple[str, ...]:
        member = self._members[name]
        return tuple(
            sorted({*member["subscribedTopicNames"], *self._matches.get(member["subscribedTopicRegex"] or "", ())})
        )

    def _partitions(self, by_id: list[dict[str, Any]]) -> tuple[Partition, ...]:
        self.unnamed |= {each["topicId"] for each in by_id} - self._names.keys()
        named = [(self._names.get(each["topicId"]), each["partitions"]) for each in by_id]
        return tuple(sorted((topic, number) for topic, numbers in named if topic is not None for number in numbers))

    def _consumer(self, name: str) -> SeenMember:
        member, current = self._members[name], self._currents.get(name)
        subscription = Subscription(self._topics(name), member["subscribedTopicRegex"] or None, member["rackId"])
        held = () if current is None else self._partitions(current["assignedPartitions"])
        ids = (name, member["clientId"], member["clientHost"], member["instanceId"])
        return SeenMember(*ids, subscription, held, None if current is None else current["memberEpoch"])

    # ---- both --------------------------------------------------------------------------------------------------------

    def _hand_on(self, millis: int, owners: Mapping[Partition, str]) -> None:
        """Note which partitions that a rebalance took from their owners have another one now."""
        for key in [key for key in self._taken if key in owners]:
            self._taken.pop(key)[0].handed.append((*key, millis))

    def _note(self, millis: int, protocol: str, generation: int, after: _Look, *, metadata: bool = False) -> None:
        """Add a rebalance; its causes are the changes since the last one."""
        before = self._before
        assert before is not None
        stay = before.topics.keys() & after.topics.keys()
        joined, left = len(after.topics.keys() - stay), len(before.topics.keys() - stay)
        resubscribed = sum(before.topics[name] != after.topics[name] for name in stay)
        lost = {key: owner for key, owner in before.owners.items() if after.owners.get(key) != owner}
        seen = [word for word, count in ((JOIN, joined), (LEAVE, left), (SUBSCRIPTION, resubscribed)) if count]
        self.rebalances.append(
            Rebalance(
                millis, protocol, generation, "+".join(seen) or (METADATA if metadata else OTHER),
                len(before.topics), len(after.topics), joined, left, resubscribed, len(after.owners),
                moved=sum(owner in stay for owner in lost.values()),
                forced=sum(owner not in stay for owner in lost.values()),
            )
        )  # fmt: skip
        taken = {key: (self.rebalances[-1], owner) for key, owner in lost.items()} | self._taken
        # Without members, partitions wait for a member and not for the rebalance.
        self._taken = {key: each for key, each in taken.items() if after.topics and after.owners.get(key) != each[1]}


def _look(members: tuple[SeenMember, ...]) -> _Look:
    return _Look(
        {each.identity: each.subscription.topics for each in members},
        {key: each.identity for each in members for key in each.partitions},
    )


def _put(values: dict[str, Any], name: str, value: Any) -> None:
    if value is None:
        values.pop(name, None)
    else:
        values[name] = value
