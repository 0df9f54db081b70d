"""A consumer's membership in a KIP-848 group: it sends heartbeats and takes what they bring, as clients of Kafka do.

Reference: KIP-848, and the consumer of Apache Kafka with `group.protocol=consumer`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from confluent_kafka import KafkaException

from evenlag.live.cluster.stopped import LEFT_FOR_NOW
from evenlag.simulation.classic_membership import PATIENCE, POLLS_WITHIN, FencedError, Keeper
from evenlag.simulation.cluster import Key
from evenlag.simulation.consumer_group import JOIN, LEAVE, ConsumerGroup, Heartbeat
from evenlag.simulation.group_answers import Code
from evenlag.simulation.link import Link
from evenlag.simulation.world import World

INTERVAL = 3.0  # seconds between heartbeats (`group.consumer.heartbeat.interval.ms`)


class Holder(Keeper, Protocol):
    """The consumer that has a membership."""

    @property
    def holds(self) -> Iterable[Key]:
        """The partitions that it reads."""

    def take(self, keys: Collection[Key]) -> bool:
        """Give up all partitions but these, and take the others."""


class HeartbeatMembership:
    """One member, driven by `step`.

    Attributes
    ----------
    member_id : str
        Chosen by the client.
    epoch : int
        `JOIN` if the member is not in the group.
    """

    def __init__(
        self, world: World, coordinator: ConsumerGroup, holder: Holder, link: Link, name: str, member_id: str, *,
        topics: Collection[str], instance: str | None = None,
    ) -> None:  # fmt: skip
        self._world, self._coordinator, self._holder, self._link = world, coordinator, holder, link
        self._name, self._instance, self._topics = name, instance, topics
        self.member_id, self.epoch = member_id, JOIN
        self._beaten = -math.inf
        self._told: frozenset[Key] | None = None  # the partitions that the coordinator knows this member to hold
        self._given: frozenset[Key] | None = None  # an assignment that has not been taken yet
        self._fenced = False

    @property
    def counts(self) -> bool:
        """True while the coordinator counts it as a member."""
        return self._coordinator.counts(self._world.now, self.member_id)

    def step(self) -> None:
        """Do what is due.

        Raises
        ------
        FencedError
        """
        if self._fenced:
            self._holder.lost()
            self._fenced, self._given, self._beaten = False, None, -math.inf
        self.beat()
        if self._given is not None and not self._fenced:
            given, self._given = self._given, None
            self._holder.take(given)
            if frozenset(self._holder.holds) != self._told:
                self._beaten = -math.inf
                self.beat()

    def beat(self) -> None:
        """Send a heartbeat if one is due, as a client does in the background.

        Raises
        ------
        FencedError
        """
        if self._fenced or self._world.now - self._beaten < INTERVAL:
            return
        self._beaten = self._world.now
        owned, complete = frozenset(self._holder.holds), self._told is None
        try:
            self._link.ask(PATIENCE, coordinator=True)
            asked = Heartbeat(
                self.member_id, self.epoch, self._name, self._instance, self._topics if complete else None,
                owned if owned != self._told else None, rebalance=POLLS_WITHIN if complete else None,
            )  # fmt: skip
            answer = self._coordinator.heartbeat(self._world.now, asked)
            self._link.answer(PATIENCE)
        except KafkaException:  # the next one has everything, since this one may have arrived or not
            self._told = None
            return
        if answer.code is Code.NONE:
            self.epoch, self._told = answer.generation, owned
            self._given = self._given if answer.assignment is None else answer.assignment
            return
        self._world.tell(f"{self._name} is refused: {answer.code}")
        if answer.code is Code.FENCED_INSTANCE_ID:
            raise FencedError(self._name)
        if answer.code is not Code.UNRELEASED_INSTANCE_ID:  # the session of its predecessor may end soon: try again
            self.epoch, self._told, self._fenced = JOIN, None, True

    def commit(self, offsets: Mapping[Key, int]) -> None:
        """Commit offsets, if the coordinator takes them."""
        if not offsets or self.epoch == JOIN:
            return
        try:
            self._link.ask(PATIENCE, coordinator=True)
            if self._coordinator.commit(self._world.now, self.member_id, self.epoch) is Code.NONE:
                self._holder.keep(offsets)
            self._link.answer(PATIENCE)
        except KafkaException:
            self._world.tell(f"{self._name} does not know whether its commit was taken")

    def leave(self) -> None:
        """Leave the group; a static member leaves it for now."""
        epoch = LEAVE if self._instance is None else LEFT_FOR_NOW
        try:
            self._link.ask(PATIENCE, coordinator=True)
            self._coordinator.heartbeat(self._world.now, Heartbeat(self.member_id, epoch, instance=self._instance))
        except KafkaException:
            self._world.tell(f"{self._name} leaves without a word")
