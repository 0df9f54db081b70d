"""A model of Kafka's coordinator of one KIP-848 group: its answers to requests at given times.

Like the model of a classic group, it has no clock and no network. Regular expressions and classic members are not
modelled. Reference: KIP-848.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial

from evenlag.heuristics.server_side import BROKER, assign_in_broker
from evenlag.live.cluster.stopped import LEFT_FOR_NOW
from evenlag.live.group_state import CONSUMER, Description, Member, TopicPartition
from evenlag.model.literals import BrokerWord
from evenlag.model.problem import Problem
from evenlag.protocol.subscriptions import Subscription
from evenlag.simulation.group_answers import Answer, Code

JOIN, LEAVE = 0, -1  # in place of a member epoch
NOTHING: frozenset[TopicPartition] = frozenset()


class Stage(Enum):
    """State of a member on the way to its target assignment, as in Kafka."""

    STABLE = auto()
    UNREVOKED = auto()
    UNRELEASED = auto()


@dataclass(frozen=True)
class Heartbeat:
    """Kafka's ConsumerGroupHeartbeat request, with which members also join, give up partitions and leave.

    Attributes
    ----------
    member_id : str
    epoch : int
    name, instance : str or None
        Client id, and instance id of a static member.
    topics, owned, assignor, rebalance
        As in `Subscriber`; None means unchanged.
    """

    member_id: str
    epoch: int
    name: str | None = None
    instance: str | None = None
    topics: Collection[str] | None = None
    owned: Collection[TopicPartition] | None = None
    assignor: str | None = None
    rebalance: float | None = None


@dataclass
class Subscriber:
    """A member.

    Attributes
    ----------
    member_id : str
    instance, client_id : str or None
    topics : frozenset of str
    assignor : str or None
        The assignor that it votes for.
    rebalance : float
        Seconds within which it must give up partitions.
    expires, revokes_by : float
        Times at which it is removed.
    epoch, previous : int
        Member epochs.
    stage : Stage
    assigned, revoking : frozenset of (topic, partition)
        Its current assignment, and partitions that it must give up first.
    """

    member_id: str
    instance: str | None = None
    client_id: str | None = None
    topics: frozenset[str] = frozenset()
    assignor: str | None = None
    rebalance: float = 0.0
    expires: float = math.inf
    revokes_by: float = math.inf
    epoch: int = JOIN
    previous: int = JOIN
    stage: Stage = Stage.STABLE
    assigned: frozenset[TopicPartition] = NOTHING
    revoking: frozenset[TopicPartition] = NOTHING


Targets = Mapping[str, Collection[TopicPartition]]
"""Partitions by member id."""
Assignor = Callable[[Collection[Subscriber], Mapping[str, int], Targets], Targets]
"""Gets the members in the order in which they joined, the numbers of partitions of topics, and the last targets."""


def assign_as_broker(
    members: Collection[Subscriber], topics: Mapping[str, int], before: Targets, *, assignor: BrokerWord
) -> Targets:
    """Assign by one of Kafka's assignors."""
    read = {each.member_id: sorted(each.topics & topics.keys()) for each in members}
    some = {topic for several in read.values() for topic in several}
    if not some:
        return {}
    owned = {name: [key for key in before.get(name, ()) if key[0] in several] for name, several in read.items()}
    problem = Problem.from_lags({topic: [0] * topics[topic] for topic in sorted(some)}, read, owned=owned)
    statics = {each.member_id: each.instance for each in members if each.instance is not None}
    return assign_in_broker(problem, assignor, instance_ids=statics, joined=list(read)).assignment


SERVER_SIDE: Mapping[str, Assignor] = {name: partial(assign_as_broker, assignor=name) for name in BROKER}
"""Kafka's assignors, its default first."""


class ConsumerGroup:
    """The coordinator of a group.

    Each method takes place at `now`, after everything that the coordinator does by itself until then. Times are in
    seconds and must not fall.

    Parameters
    ----------
    topics : dict of str to int
        Numbers of partitions; the dictionary may change.
    assignors : mapping of name to Assignor
        The default first.
    session : float
        Seconds without a heartbeat after which a member is removed (`group.consumer.session.timeout.ms`).
    kafka : {"4.1", "4.4"}
        Version of the broker.

    Attributes
    ----------
    epoch, assignment_epoch : int
        Epochs of the group, and of the target assignment.
    """

    def __init__(
        self, topics: Mapping[str, int], assignors: Mapping[str, Assignor] = SERVER_SIDE, session: float = 45.0,
        kafka: str = "4.1",
    ) -> None:  # fmt: skip
        self.epoch = self.assignment_epoch = 0
        self._topics, self._assignors, self._session = topics, assignors, session
        self._later = kafka == "4.4"
        self._members: dict[str, Subscriber] = {}
        self._target: dict[str, frozenset[TopicPartition]] = {}
        self._read: dict[str, int] = {}  # the subscribed topics, as they were at the last change of the epoch
        self._exists = False  # since the first member
        self._now = 0.0

    # ---- requests ------------------------------------------------------------------------------------------------

    def heartbeat(self, now: float, asked: Heartbeat) -> Answer:
        """Take a heartbeat. The answer has the member epoch as its generation, and no assignment if it is the same."""
        self.advance(now)
        member_id, epoch, owned = asked.member_id, asked.epoch, asked.owned
        if (code := self._refusal(asked)) is not Code.NONE:
            return Answer(code)
        if epoch < JOIN:
            self._leave(self._members[member_id], epoch)
            return Answer(Code.NONE, member_id, epoch)
        self._exists = True
        member = self._joined(member_id, asked.instance) if epoch == JOIN else self._members[member_id]
        subscribed, assigned, voted = member.topics, member.assigned, self._assignor()
        member.client_id = asked.name
        member.topics = subscribed if asked.topics is None else frozenset(asked.topics)
        member.assignor = asked.assignor or member.assignor
        member.rebalance = member.rebalance if asked.rebalance is None else asked.rebalance
        elected = self._later and self._assignor() != voted
        if member.topics != subscribed or self._existing() != self._read or elected:
            self._raise_epoch()
        if self.epoch > self.assignment_epoch:
            self._assign()
        self._reconcile(member, None if owned is None else frozenset(owned))
        member.expires = now + self._session
        complete = epoch == JOIN or None not in (asked.topics, owned, asked.rebalance)
        news = member.assigned if complete or member.assigned != assigned else None
        return Answer(Code.NONE, member_id, member.epoch, assignment=news)

    def commit(self, now: float, member_id: str, epoch: int) -> Code:
        """Return `Code.NONE` if a commit of offsets is taken, else the error."""
        self.advance(now)
        if epoch < JOIN and not self._members:
            return Code.NONE
        if not self._exists:
            return Code.GROUP_ID_NOT_FOUND
        if member_id not in self._members:
            return Code.UNKNOWN_MEMBER_ID
        return Code.NONE if epoch == self._members[member_id].epoch else Code.STALE_MEMBER_EPOCH

    def counts(self, now: float, member_id: str) -> bool:
        """Return whether it counts a member."""
        self.advance(now)
        return member_id in self._members and self._members[member_id].epoch > JOIN

    def move(self, now: float, until: float) -> None:
        """Let another broker coordinate the group from a time on: members get a session's time again."""
        self.advance(now)
        for each in self._members.values():
            each.expires = until + self._session
            if each.stage is Stage.UNREVOKED:
                each.revokes_by = until + each.rebalance

    def describe(self, now: float) -> Description:
        """Describe the group."""
        self.advance(now)
        if not self._exists:
            return Description("Dead")
        members = tuple(
            Member(
                each.member_id,
                each.client_id,
                None,
                each.instance,
                tuple(sorted(each.assigned | (each.revoking if self._later else NOTHING))),
                tuple(sorted(self._target.get(each.member_id, ()))),
                Subscription(tuple(sorted(each.topics))),
                each.epoch,
            )
            for _, each in sorted(self._members.items())
        )
        return Description(self._state(), members, CONSUMER, self._assignor(), self.epoch, self.assignment_epoch)

    # ---- what it does by itself ----------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Let time pass."""
        while True:
            due = ((min(each.expires, each.revokes_by), name) for name, each in self._members.items())
            at, name = min(due, default=(math.inf, ""))
            if at > now:
                self._now = now
                return
            self._now = at
            self._remove(name)

    # ---- pieces --------------------------------------------------------------------------------------------------

    def _refusal(self, asked: Heartbeat) -> Code:
        """Return the error of a heartbeat; `Code.NONE` if it is taken."""
        epoch, instance, owned = asked.epoch, asked.instance, asked.owned
        if epoch < LEFT_FOR_NOW or (epoch == LEFT_FOR_NOW and instance is None):
            return Code.INVALID_REQUEST
        if epoch == JOIN and (not asked.topics or owned is None or owned or asked.rebalance is None):
            return Code.INVALID_REQUEST
        if asked.assignor is not None and asked.assignor not in self._assignors:
            return Code.UNSUPPORTED_ASSIGNOR
        if not self._exists:
            return Code.NONE if epoch == JOIN else Code.GROUP_ID_NOT_FOUND
        known = self._members.get(asked.member_id)
        if instance is not None:
            static = self._static(instance)
            if epoch == JOIN:
                left = static is None or static.epoch == LEFT_FOR_NOW
                return Code.NONE if left else Code.UNRELEASED_INSTANCE_ID
            if static is not None and static.member_id != asked.member_id:
                return Code.FENCED_INSTANCE_ID
            known = static
        if known is None:
            return Code.NONE if epoch == JOIN else Code.UNKNOWN_MEMBER_ID
        return Code.NONE if epoch < JOIN or self._in_epoch(known, epoch, owned) else Code.FENCED_MEMBER_EPOCH

    def _in_epoch(self, member: Subscriber, epoch: int, owned: Collection[TopicPartition] | None) -> bool:
        """Return whether an epoch is that of a member, or the one before, because an answer was lost."""
        if self._later and epoch == JOIN:
            return True
        lost = epoch == member.previous and owned is not None and member.assigned.issuperset(owned)
        return epoch == member.epoch or (epoch < member.epoch and lost)

    def _joined(self, member_id: str, instance: str | None) -> Subscriber:
        """Return the member that joins, which has the place of a static member that has left."""
        left = None if instance is None else self._static(instance)
        if left is None:
            return self._members.setdefault(member_id, Subscriber(member_id, instance))
        del self._members[left.member_id]
        if left.member_id in self._target:
            self._target[member_id] = self._target.pop(left.member_id)
        left.member_id, left.epoch, left.previous = member_id, JOIN, JOIN
        self._members[member_id] = left
        return left

    def _static(self, instance: str) -> Subscriber | None:
        return next((each for each in self._members.values() if each.instance == instance), None)

    def _leave(self, member: Subscriber, epoch: int) -> None:
        if epoch == LEAVE:
            self._remove(member.member_id)
        else:
            member.epoch, member.revoking = epoch, NOTHING
            member.revokes_by = math.inf

    def _remove(self, member_id: str) -> None:
        del self._members[member_id]
        self._target.pop(member_id, None)
        self._raise_epoch()
        if self._later and not self._members:
            self.assignment_epoch = self.epoch

    def _raise_epoch(self) -> None:
        self.epoch += 1
        self._read = self._existing()

    def _existing(self) -> dict[str, int]:
        """Return the topics that somebody reads and that exist."""
        read = {topic for each in self._members.values() for topic in each.topics}
        return {topic: self._topics[topic] for topic in sorted(read & self._topics.keys())}

    def _assign(self) -> None:
        made = self._assignors[self._assignor()](self._members.values(), self._topics, self._target)
        self._target = {name: frozenset(made.get(name, ())) for name in self._members}
        self.assignment_epoch = self.epoch

    def _assignor(self) -> str:
        """Return the assignor that most members vote for."""
        votes = Counter(each.assignor for each in self._members.values() if each.assignor is not None)
        return votes.most_common(1)[0][0] if votes else next(iter(self._assignors))

    def _reconcile(self, member: Subscriber, owned: frozenset[TopicPartition] | None) -> None:
        """Let a member go on to its target: it gives up partitions first, and gets others once they are free."""
        epoch = member.epoch
        if member.stage is Stage.STABLE and epoch == self.assignment_epoch:
            return
        if member.stage is Stage.UNREVOKED:
            if owned is None or owned & member.revoking:
                return
            epoch += 0 if self._later else 1  # 4.1 goes on to the next epoch first
        target = self._target.get(member.member_id, NOTHING)
        kept = member.assigned & target
        revoking = member.assigned - kept
        others = [each for each in self._members.values() if each is not member or not self._later]
        held = {key for each in others for key in each.assigned | each.revoking}
        free = target - kept - held
        if revoking and (owned is None or owned & revoking):
            member.stage, member.revokes_by = Stage.UNREVOKED, self._now + member.rebalance
        else:
            member.stage = Stage.STABLE if kept | free == target else Stage.UNRELEASED
            revoking, epoch, kept, member.revokes_by = NOTHING, self.assignment_epoch, kept | free, math.inf
        member.previous, member.epoch = member.epoch, epoch
        member.assigned, member.revoking = kept, revoking

    def _state(self) -> str:
        if not self._members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        settled = all(
            each.stage is Stage.STABLE and each.epoch == self.assignment_epoch for each in self._members.values()
        )
        return "Stable" if settled else "Reconciling"
