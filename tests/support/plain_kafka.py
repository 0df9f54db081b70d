"""Followers of a plan on a Kafka of plain Python, whose clock stands still between calls."""

from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from evenlag.errors import EvenlagError
from evenlag.live.follow import Follow
from evenlag.live.followed_plan import FollowedPlan
from evenlag.live.ownership import Ownership
from evenlag.simulation.cluster import SimulatedMessage

Partition = tuple[str, int]

PARTITIONS = [("t", number) for number in range(4)]
LEASE = 30.0


class Kafka:
    """Messages, the commits of one group, and the clock of its consumers."""

    def __init__(self, partitions: Iterable[Partition], messages: int = 0) -> None:
        self.now = 1000.0
        self.ends = dict.fromkeys(partitions, messages)
        self.commits: dict[Partition, tuple[int, str | None]] = {}
        self.failing: set[str] = set()  # calls that fail
        self.error = KafkaError._TIMED_OUT  # how they do
        self.leaderless: set[Partition] = set()  # partitions whose offsets time out
        self.subscribed = False  # the group has members that subscribe
        self.meanwhile: Callable[[], object] = lambda: None  # called just before a commit counts
        self.reading: Callable[[], object] = lambda: None  # called just after the commits were read

    def clock(self) -> float:
        return self.now

    def answer(self, call: str) -> None:
        if call in self.failing:
            raise KafkaException(KafkaError(self.error))


class Consumer:
    """The part of confluent-kafka's consumer that `Follow` calls."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka
        self.positions: dict[Partition, int] = {}
        self.errors: list[KafkaError] = []
        self.cut_off = False  # from the group's coordinator

    def _answer(self, call: str) -> None:
        if self.cut_off:
            raise KafkaException(KafkaError(KafkaError.NOT_COORDINATOR))
        self.kafka.answer(call)

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
        self._answer("committed")
        found = [(each, self.kafka.commits.get((each.topic, each.partition), (-1001, None))) for each in parts]
        self.kafka.reading()
        return [
            TopicPartition(each.topic, each.partition, offset, metadata or "") for each, (offset, metadata) in found
        ]

    def commit(self, offsets: Sequence[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        assert not asynchronous
        self._answer("commit")
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

    def poll(self, timeout: float) -> SimulatedMessage | None:
        assert timeout >= 0
        if self.errors:
            return SimulatedMessage(("t", 0), 0, self.errors.pop())
        for key in sorted(self.positions, key=lambda key: self.positions[key]):
            if self.positions[key] < self.kafka.ends.get(key, 0):
                self.positions[key] += 1
                return SimulatedMessage(key, self.positions[key] - 1)
        return None

    def consume(self, num_messages: int, timeout: float) -> list[SimulatedMessage]:
        polled = (self.poll(timeout) for _ in range(num_messages))
        return [message for message in polled if message is not None]


class Inbox:
    """Plans that a test delivers to one follower."""

    def __init__(self, group: str = "billing") -> None:
        self.group = group
        self.unread: list[FollowedPlan | EvenlagError] = []
        self.closed = False

    def news(self) -> list[FollowedPlan | EvenlagError]:
        unread, self.unread = self.unread, []
        return unread

    def write(self, plan: FollowedPlan) -> None:
        self.unread.append(plan)

    def close(self) -> None:
        self.closed = True


def plan(version: int, **members: str) -> FollowedPlan:
    """Return a plan of topic t: `c1="01"` gives c1 its partitions 0 and 1."""
    return FollowedPlan(
        "billing", version, {name: tuple(("t", int(n)) for n in mine) for name, mine in members.items()}
    )


class Group:
    """Followers on a Kafka of plain Python."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka
        self.inboxes: dict[str, Inbox] = {}
        self.follows: dict[str, Follow] = {}
        self.processed: list[tuple[str, Partition, int]] = []
        self.callbacks: list[tuple[str, str, list[Partition]]] = []  # member, event, partitions

    def start(self, *names: str, **config: Any) -> None:
        """Start members; a restarted one finds the plans that it had not read."""
        for name in names:
            before = self.inboxes.get(name)
            self.inboxes[name] = Inbox()
            if before is not None and before.unread:
                self.inboxes[name].unread = before.unread
            callbacks = {f"on_{event}": self._recorder(name, event) for event in ("assign", "revoke", "lost")}
            self.follows[name] = Follow(
                Consumer(self.kafka), self.inboxes[name], name,
                auto_offset_reset="earliest", lease=LEASE, **callbacks | config,
            )  # fmt: skip

    def _recorder(self, name: str, event: str) -> Callable[[Follow, list[Partition]], None]:
        return lambda _, partitions: self.callbacks.append((name, event, partitions))

    def deliver(self, news: FollowedPlan | EvenlagError, *names: str) -> None:
        """Deliver a plan, or an error in its place, to these members or to all."""
        for name in names or self.inboxes:
            self.inboxes[name].unread.append(news)

    def run_once(self, name: str) -> None:
        """Run one turn of a member's loop, which processes a message at most."""
        for message in self.follows[name].consume(0):
            self.processed.append((name, (message.topic(), message.partition()), message.offset()))

    def run_for(self, seconds: float = 10.0) -> None:
        """Let each member run once a second, and check the owners after each second."""
        for _ in range(round(seconds)):
            self.kafka.now += 1.0
            for name in list(self.follows):
                self.run_once(name)
            self.check_owners()

    def check_owners(self) -> None:
        """Assert that no partition has two owners."""
        held = [key for follow in self.follows.values() for key in follow.holds]
        assert len(held) == len(set(held)), {name: follow.holds for name, follow in self.follows.items()}

    def holds(self) -> dict[str, str]:
        """Return the numbers of each member's partitions, in a row."""
        return {name: "".join(str(number) for _, number in each.holds) for name, each in self.follows.items()}


def committed_owner(kafka: Kafka, number: int) -> Ownership | None:
    """Return the owner that the commit of a partition of topic t names."""
    return Ownership.decode(kafka.commits["t", number][1])
