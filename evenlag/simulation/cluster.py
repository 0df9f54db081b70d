"""A model of Kafka for followers: logs that grow, the commits of one group, brokers and a network that fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, TopicPartition

from evenlag.simulation.link import Link
from evenlag.simulation.world import World

Key = tuple[str, int]
Commit = tuple[int, str]  # offset and metadata


class Cluster:
    """The brokers.

    Attributes
    ----------
    rates : dict of (topic, partition) to float
        Messages per second, changed by `set_rate`; a log begins at offset 0 with the world.
    commits : dict of (topic, partition) to (offset, metadata)
    down_until, moving_until : float
        Times until which no broker answers, and until which the group has no coordinator.
    on_commit : callable
        Called with the consumer, the partition, the commit before and the new one, as it arrives.
    """

    def __init__(self, world: World, rates: dict[Key, float]) -> None:
        self.world, self.rates = world, rates
        self._from: dict[Key, tuple[float, float]] = dict.fromkeys(
            rates, (0.0, 0.0)
        )  # time of a rate, messages until then
        self.commits: dict[Key, Commit] = {}
        self.down_until = self.moving_until = 0.0
        self.on_commit: Callable[[SimulatedConsumer, Key, Commit, Commit], None] = lambda *_: None

    def end(self, key: Key) -> int:
        """Return the end of a partition's log."""
        at, before = self._from[key]
        return int(before + self.rates[key] * (self.world.now - at))

    def set_rate(self, key: Key, rate: float) -> None:
        """Let a log grow faster or more slowly from now on."""
        at, before = self._from[key]
        self._from[key] = self.world.now, before + self.rates[key] * (self.world.now - at)
        self.rates[key] = rate


class SimulatedConsumer:
    """The part of confluent-kafka's consumer that `Follow` calls.

    Attributes
    ----------
    link : Link
    looked : float
        When it sent the last request for commits that was answered.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._world = cluster, cluster.world
        self._positions: dict[Key, int] = {}
        self.link, self.looked = Link(cluster.world, cluster), 0.0

    # ---- requests ------------------------------------------------------------------------------------------------

    def list_topics(self, topic: str, timeout: float) -> Any:
        """Return the partitions of a topic."""
        self.link.ask(timeout, coordinator=False)
        partitions = {number: None for name, number in self._cluster.rates if name == topic}
        self.link.answer(timeout)
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions=partitions)})

    def get_watermark_offsets(self, part: TopicPartition, timeout: float, cached: bool) -> tuple[int, int]:
        """Return the offsets of a log's beginning and end."""
        assert not cached
        self.link.ask(timeout, coordinator=False)
        end = self._cluster.end((part.topic, part.partition))
        self.link.answer(timeout)
        return 0, end

    def committed(self, parts: Sequence[TopicPartition], timeout: float) -> list[TopicPartition]:
        """Return the group's commits."""
        began = self._world.now
        self.link.ask(timeout, coordinator=True)
        found = [(each, self._cluster.commits.get((each.topic, each.partition), (-1001, ""))) for each in parts]
        self.link.answer(timeout)
        self.looked = began
        return [TopicPartition(each.topic, each.partition, offset, metadata) for each, (offset, metadata) in found]

    def commit(self, offsets: Sequence[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        """Commit offsets with metadata."""
        assert not asynchronous
        self.link.ask(15.0, coordinator=True)  # as long as librdkafka was seen to try
        self.link.dawdle()
        for each in offsets:
            key = each.topic, each.partition
            made = each.offset, each.metadata or ""
            self._cluster.on_commit(self, key, self._cluster.commits.get(key, (0, "")), made)
            self._cluster.commits[key] = made
        self.link.answer(5.0)
        return list(offsets)

    # ---- messages ------------------------------------------------------------------------------------------------

    def incremental_assign(self, parts: Sequence[TopicPartition]) -> None:
        """Begin to fetch partitions."""
        for each in parts:
            key = each.topic, each.partition
            assert key not in self._positions, f"{key} is assigned twice"
            self._positions[key] = each.offset

    def incremental_unassign(self, parts: Sequence[TopicPartition]) -> None:
        """Fetch partitions no more."""
        for each in parts:
            del self._positions[each.topic, each.partition]

    def poll(self, timeout: float) -> Any:
        """Return the next message of the partition that is furthest behind, or None after some seconds."""
        end = self._world.now + timeout
        while True:
            behind = {} if self.link.unreachable() else {
                key: waiting for key, at in self._positions.items() if (waiting := self._cluster.end(key) - at) > 0
            }  # fmt: skip
            if behind:
                key = max(behind, key=lambda key: (behind[key], key))
                self._positions[key] += 1
                return SimulatedMessage(key, self._positions[key] - 1)
            if (left := end - self._world.now) <= 0:
                return None
            self._world.sleep(min(left, 0.5))


class SimulatedMessage:
    """The message at an offset, or an error in its place."""

    def __init__(self, key: Key, offset: int, error: KafkaError | None = None) -> None:
        self._key, self._offset, self._error = key, offset, error

    def __len__(self) -> int:
        return 0  # as that of confluent-kafka where the value is empty

    def topic(self) -> str:
        """Return its topic."""
        return self._key[0]

    def partition(self) -> int:
        """Return its partition."""
        return self._key[1]

    def offset(self) -> int:
        """Return its offset."""
        return self._offset

    def error(self) -> KafkaError | None:
        """Return the error, if it is one."""
        return self._error
