"""A real coordinator of a KIP-848 group that is asked by the requests of Kafka's protocol."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from uuid import UUID

from kafka.protocol.metadata import MetadataRequest

from evenlag.live.cluster.answers import consumer_groups
from evenlag.live.group_state import Description, TopicPartition
from evenlag.live.messages import ConsumerGroupDescribeRequest
from evenlag.simulation.consumer_group import Heartbeat
from evenlag.simulation.group_answers import Answer, Pending
from tests.support.asked_coordinator import Asked, code_of
from tests.support.heartbeat_messages import ConsumerGroupHeartbeatRequest
from tests.support.heartbeat_stories import TOPICS
from tests.support.traffic import add_partitions, create_topics


class AskedHeartbeats(Asked):
    """One KIP-848 group of a broker, with topics of its own beside the common ones."""

    commit_version = 9

    def __init__(self, bootstrap: str, group: str) -> None:
        super().__init__(bootstrap, group)
        self._bootstrap = bootstrap
        self._counts: dict[str, int] = {}

    def group(self) -> Description:
        request = ConsumerGroupDescribeRequest(version=1, group_ids=[self._group], include_authorized_operations=False)
        found = consumer_groups(self.answer(request))[self._group]
        if not isinstance(found, Description):
            return Description("Dead")
        members = (
            replace(each, partitions=self._shown(each.partitions), target=self._shown(each.target))
            for each in found.members
        )
        return replace(found, members=tuple(members))

    def heartbeat(self, asked: Heartbeat) -> Pending:
        kind = ConsumerGroupHeartbeatRequest.TopicPartitions
        ids = self._topic_ids() if asked.owned else {}
        numbers: dict[str, list[int]] = {}
        for topic, number in asked.owned or ():
            numbers.setdefault(topic, []).append(number)
        request = ConsumerGroupHeartbeatRequest(
            version=1, group_id=self._group, member_id=asked.member_id, member_epoch=asked.epoch,
            instance_id=asked.instance, rack_id=None,
            rebalance_timeout_ms=-1 if asked.rebalance is None else int(1000 * asked.rebalance),
            subscribed_topic_names=None if asked.topics is None else [self._named(each) for each in asked.topics],
            subscribed_topic_regex=None, server_assignor=asked.assignor,
            topic_partitions=None if asked.owned is None else [
                kind(topic_id=ids[self._named(topic)], partitions=several)
                for topic, several in numbers.items()
            ],
        )  # fmt: skip
        return self._asked(request, self._heard)

    def grow(self, topic: str, count: int) -> Pending:
        """Create a topic, or give it more partitions."""
        if topic in self._counts:
            add_partitions(self._bootstrap, self._named(topic), count)
        else:
            create_topics(self._bootstrap, {self._named(topic): count})
        self._counts[topic] = count
        return Pending()

    def _heard(self, found: Any) -> Answer:
        assignment = None
        if found.assignment is not None:
            names = {topic_id: name for name, topic_id in self._topic_ids().items()}
            told = found.assignment.topic_partitions
            assignment = frozenset(self._shown((names[each.topic_id], n) for each in told for n in each.partitions))
        return Answer(code_of(found.error_code), found.member_id or "", found.member_epoch, assignment=assignment)

    def _topic_ids(self) -> dict[str, UUID]:
        answer = self.answer(MetadataRequest(version=12, topics=None))
        return {each.name: each.topic_id for each in answer.topics}

    def _named(self, topic: str) -> str:
        """Return the name of a topic in the cluster: all groups share some topics."""
        return topic if topic in TOPICS else f"{self._group}.{topic}"

    def _shown(self, keys: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
        """Return partitions with the names that the story has for their topics."""
        return tuple((name.removeprefix(f"{self._group}."), number) for name, number in keys)
