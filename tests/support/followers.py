"""Followers of a plan: on a Kafka of plain Python that stands still between calls, and as processes that can be killed.

`python -m tests.support.followers '{"bootstrap": …}'` is one follower. It says what happens to it, a line of JSON each.
"""

import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from evenlag.errors import EvenlagError
from evenlag.live.followed_plan import FollowedPlan
from tests.support.members import Member, Members, say

Partition = tuple[str, int]


class Message:
    """The message at an offset."""

    def __init__(self, key: Partition, offset: int, error: KafkaError | None = None) -> None:
        self._key, self._offset, self._error = key, offset, error

    def __len__(self) -> int:
        return 0  # as that of confluent-kafka where the value is empty

    def topic(self) -> str:
        return self._key[0]

    def partition(self) -> int:
        return self._key[1]

    def offset(self) -> int:
        return self._offset

    def error(self) -> KafkaError | None:
        return self._error


class Kafka:
    """Messages, and the commits of one group; all its consumers have one clock."""

    def __init__(self, partitions: Iterable[Partition], messages: int = 0) -> None:
        self.now = 1000.0
        self.ends = dict.fromkeys(partitions, messages)
        self.commits: dict[Partition, tuple[int, str | None]] = {}
        self.failing: set[str] = set()  # calls that nobody answers
        self.leaderless: set[Partition] = set()  # partitions whose ends nobody tells
        self.subscribed = False  # whether the group has members that subscribe
        self.meanwhile: Callable[[], object] = lambda: None  # called just before a commit counts

    def clock(self) -> float:
        return self.now

    def answer(self, call: str) -> None:
        if call in self.failing:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


class Consumer:
    """What `Follow` calls of confluent-kafka's consumer."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka
        self.positions: dict[Partition, int] = {}
        self.errors: list[KafkaError] = []

    def list_topics(self, topic: str, **_: float) -> Any:
        self.kafka.answer("list_topics")
        partitions = {number: None for name, number in self.kafka.ends if name == topic}
        error = None if partitions else KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        return SimpleNamespace(topics={topic: SimpleNamespace(error=error, partitions=partitions)})

    def get_watermark_offsets(self, part: TopicPartition, timeout: float, cached: bool) -> tuple[int, int]:
        assert not cached
        self.kafka.answer("get_watermark_offsets")
        if (part.topic, part.partition) in self.kafka.leaderless:
            self.kafka.now += timeout
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        if (part.topic, part.partition) not in self.kafka.ends:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
        return 0, self.kafka.ends[part.topic, part.partition]

    def committed(self, parts: Sequence[TopicPartition], **_: float) -> list[TopicPartition]:
        self.kafka.answer("committed")
        found = [(each, self.kafka.commits.get((each.topic, each.partition), (-1001, None))) for each in parts]
        return [
            TopicPartition(each.topic, each.partition, offset, metadata or "") for each, (offset, metadata) in found
        ]

    def commit(self, offsets: Sequence[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        assert not asynchronous
        self.kafka.answer("commit")
        if self.kafka.subscribed:
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_MEMBER_ID))
        if any((each.topic, each.partition) not in self.kafka.ends for each in offsets):
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
        self.kafka.meanwhile()
        self.kafka.commits |= {(each.topic, each.partition): (each.offset, each.metadata) for each in offsets}
        self.kafka.answer("answer to commit")
        return list(offsets)

    def incremental_assign(self, parts: Sequence[TopicPartition]) -> None:
        for each in parts:
            assert (each.topic, each.partition) not in self.positions
            self.positions[each.topic, each.partition] = each.offset

    def incremental_unassign(self, parts: Sequence[TopicPartition]) -> None:
        for each in parts:
            del self.positions[each.topic, each.partition]

    def poll(self, timeout: float) -> Message | None:
        assert timeout >= 0
        if self.errors:
            return Message(("t", 0), 0, self.errors.pop())
        for key in sorted(self.positions, key=lambda key: self.positions[key]):
            if self.positions[key] < self.kafka.ends.get(key, 0):
                self.positions[key] += 1
                return Message(key, self.positions[key] - 1)
        return None

    def consume(self, num_messages: int, timeout: float) -> list[Message]:
        polled = (self.poll(timeout) for _ in range(num_messages))
        return [message for message in polled if message is not None]


class Told:
    """Plans as a follower is told of them."""

    def __init__(self, group: str = "billing") -> None:
        self.group = group
        self.untold: list[FollowedPlan | EvenlagError] = []
        self.closed = False

    def news(self) -> list[FollowedPlan | EvenlagError]:
        untold, self.untold = self.untold, []
        return untold

    def write(self, plan: FollowedPlan) -> None:
        self.untold.append(plan)

    def close(self) -> None:
        self.closed = True


# ---- processes -------------------------------------------------------------------------------------------------------


class Follower(Member):
    """A follower in a process of its own."""

    MODULE = "tests.support.followers"


class Followers(Members):
    """Those of one group, by name."""

    KIND = Follower

    def processed(self) -> list[tuple[float, str, int, int]]:
        """Time, member, partition and offset of each message that was processed, in order of time."""
        events = ((name, each) for name, member in self.items() for each in member.of("processed"))
        return sorted((each["t"], name, each["partition"], each["offset"]) for name, each in events)


@contextmanager
def followers(bootstrap: str, group: str, **config: Any) -> Iterator[Followers]:
    """Followers that are gone at the end, whatever happens."""
    several = Followers(bootstrap, group, [], **config)
    try:
        yield several
    finally:
        for member in several.values():
            member.end()


def run(config: dict[str, Any]) -> None:
    """Follow until told to leave."""
    import logging

    from confluent_kafka import Consumer as KafkaConsumer

    from evenlag.live.follow import Follow, PlanFile, PlanTopic

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say("log", level=record.levelname, line=record.getMessage())

    logging.getLogger("evenlag").addHandler(Heard())
    logging.getLogger("evenlag").setLevel(logging.INFO)

    def heard(event: str) -> Callable[[Follow, list[Partition]], None]:
        return lambda _, partitions: say(event, partitions=partitions)

    kafka = {
        "bootstrap.servers": config["bootstrap"], "group.id": config["group"], "enable.auto.commit": False,
        "auto.offset.reset": "error", "log_level": 0,
    }  # fmt: skip
    plans = PlanTopic(config["plans"], kafka) if "plans" in config else PlanFile(config["file"], config["group"])
    consumer = KafkaConsumer(kafka)
    words: list[str] = []
    say("ready")
    sys.stdin.readline()
    threading.Thread(target=lambda: words.extend(iter(sys.stdin.readline, "")), daemon=True).start()
    follow = Follow(
        consumer, plans, config["client_id"], auto_offset_reset="earliest", lease=config["lease"],
        rack=config.get("rack"),
        on_assign=heard("assigned"), on_revoke=heard("revoked"), on_lost=heard("lost"),
    )  # fmt: skip
    with follow:
        while "leave\n" not in words:
            for message in follow.consume(0.2):
                say("processed", partition=message.partition(), offset=message.offset())
    say("revoked", partitions=[])
    consumer.close()


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
