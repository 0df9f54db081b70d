"""Topics, messages, committed offsets and consumer groups on a running broker, for tests and examples."""

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from queue import SimpleQueue

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

QUIET = {"log_level": 0}
SETTLE_LIMIT = 60.0  # seconds


def create_topics(bootstrap: str, partitions: Mapping[str, int | list[list[int]]], **config: str) -> None:
    """Create topics with numbers of partitions, or with replicas on given brokers; wait until all have a leader."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    news = [
        NewTopic(topic, each, 1, config=config)
        if isinstance(each, int)
        else NewTopic(topic, len(each), replica_assignment=each, config=config)
        for topic, each in partitions.items()
    ]
    for future in admin.create_topics(news).values():
        future.result()
    partitions = {topic: each if isinstance(each, int) else len(each) for topic, each in partitions.items()}
    _wait(lambda: all(_partitions(admin, topic) == count for topic, count in partitions.items()), "topics")


def add_partitions(bootstrap: str, topic: str, count: int) -> None:
    """Raise the number of partitions of a topic, and wait until all have a leader."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    admin.create_partitions([NewPartitions(topic, count)])[topic].result()
    _wait(lambda: _partitions(admin, topic) == count, topic)


def delete_topic(bootstrap: str, topic: str) -> None:
    """Delete a topic and wait until no broker knows it."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    admin.delete_topics([topic])[topic].result()
    _wait(lambda: topic not in admin.list_topics(timeout=SETTLE_LIMIT).topics, topic)


def ends(bootstrap: str, topic: str, partitions: int) -> list[int]:
    """Return the log end offset of each partition of a topic."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "ends", **QUIET})
    found = [consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=30)[1] for p in range(partitions)]
    consumer.close()
    return found


def delete_records(bootstrap: str, before: Mapping[tuple[str, int], int]) -> None:
    """Delete the messages before the given offsets, as retention does."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    for future in admin.delete_records([TopicPartition(*each, offset) for each, offset in before.items()]).values():
        future.result()


def allow_describe(bootstrap: str, user: str, kind: ResourceType, name: str) -> None:
    """Allow a user to describe a group or topic, and wait until the broker applies the rule."""
    allow(bootstrap, user, kind, name, AclOperation.DESCRIBE)


def allow(
    bootstrap: str, user: str, kind: ResourceType, name: str, operation: AclOperation,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
) -> None:  # fmt: skip
    """Allow a user an operation on a group or topic, and wait until the broker applies the rule."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    rule = (kind, name, pattern, f"User:{user}", "*", operation)
    binding = AclBinding(*rule, AclPermissionType.ALLOW)
    admin.create_acls([binding])[binding].result()
    filter_ = AclBindingFilter(*rule, AclPermissionType.ALLOW)
    _wait(lambda: len(admin.describe_acls(filter_).result()) == 1, f"ACL of {name}")


def add_scram_user(bootstrap: str, user: str, password: str) -> None:
    """Add a user who logs in with SCRAM-SHA-512."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion(user, credential, password.encode())
    for future in admin.alter_user_scram_credentials([change]).values():
        future.result()


def produce(bootstrap: str, topic: str, counts: Sequence[int], *, numbered: bool = False) -> None:
    """Append `counts[p]` messages to each partition p: empty ones, or numbers from 0 on."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000, **QUIET}
    )
    number = 0
    for partition, count in enumerate(counts):
        for left in range(count, 0, -1):
            producer.produce(topic, str(number) if numbered else b"", partition=partition)
            number += 1
            if left % 100_000 == 0:
                producer.flush()
    if producer.flush(SETTLE_LIMIT):
        raise RuntimeError(f"{topic}: messages were not taken within {SETTLE_LIMIT:g} s")


@contextmanager
def numbered_messages(bootstrap: str, topic: str, partitions: int, rate: float = 100.0) -> Iterator[set[int]]:
    """Append numbers at a rate until the body ends, more of them to earlier partitions.

    The body gets the set of numbers that the broker has acknowledged; after it, all are.
    """
    taken: set[int] = set()
    over = threading.Event()
    settings = {"enable.idempotence": True, "message.timeout.ms": int(1000 * SETTLE_LIMIT), "linger.ms": 5}
    producer = Producer({"bootstrap.servers": bootstrap, **settings, **QUIET})

    def run() -> None:
        number = 0
        while not over.wait(1 / rate):

            def delivered(error: object, _message: object, number: int = number) -> None:
                if error is None:
                    taken.add(number)

            producer.produce(
                topic, str(number), partition=int(partitions * (number * 0.618 % 1) ** 2), callback=delivered
            )
            producer.poll(0)
            number += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield taken
    finally:
        over.set()
        thread.join()
        if producer.flush(SETTLE_LIMIT):
            raise RuntimeError(f"{topic}: messages were not taken within {SETTLE_LIMIT:g} s")


def commit(bootstrap: str, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Commit offsets for a group that has no members."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **QUIET})
    try:
        consumer.commit(offsets=[TopicPartition(*each, offset) for each, offset in offsets.items()], asynchronous=False)
    finally:
        consumer.close()


def commit_many(bootstrap: str, offsets: Mapping[str, Mapping[tuple[str, int], int]]) -> None:
    """Commit offsets for many groups that have no members, many at a time."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    for start in range(0, len(offsets), 200):
        left = dict(list(offsets.items())[start : start + 200])

        def committed(left: dict[str, Mapping[tuple[str, int], int]] = left) -> bool:
            """Commit for the remaining groups; a coordinator that is not ready returns an error for each partition."""
            futures: dict[str, Future[ConsumerGroupTopicPartitions]] = {}
            for group, commits in left.items():
                partitions = [TopicPartition(*each, offset) for each, offset in commits.items()]
                futures |= admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, partitions)])
            for group, future in futures.items():
                with suppress(KafkaException):
                    if not any(each.error for each in future.result().topic_partitions):
                        del left[group]
            return not left

        _wait(committed, "commits of many groups")


class Member:
    """A consumer in a thread: it polls with its partitions paused, and commits on request.

    All calls come from that thread: while one polls, confluent-kafka can keep another thread waiting for minutes.
    """

    def __init__(self, config: Mapping[str, object], topics: Sequence[str]):
        self._consumer = Consumer(dict(config))
        self._topics = list(topics)
        self._commits: SimpleQueue[tuple[list[TopicPartition], bool, Future[None]]] = SimpleQueue()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def commit(self, offsets: Mapping[tuple[str, int], int], own: bool = False) -> None:
        """Commit offsets, with `own` those of the partitions that it has now."""
        done: Future[None] = Future()
        self._commits.put(([TopicPartition(*each, offset) for each, offset in offsets.items()], own, done))
        done.result(SETTLE_LIMIT)

    def stop(self) -> None:
        """Ask it to leave the group."""
        self._stopped.set()

    def join(self) -> None:
        """Wait until it has left."""
        self._thread.join()

    def _run(self) -> None:
        self._consumer.subscribe(self._topics)
        paused: list[TopicPartition] = []
        try:
            while not self._stopped.is_set():
                self._consumer.poll(0.1)
                assigned = self._consumer.assignment()
                if assigned != paused:
                    self._consumer.pause(assigned)
                    paused = assigned
                while not self._commits.empty():
                    offsets, own, done = self._commits.get()
                    if own:
                        mine = {(each.topic, each.partition) for each in assigned}
                        offsets = [each for each in offsets if (each.topic, each.partition) in mine]
                    if offsets:
                        self._consumer.commit(offsets=offsets, asynchronous=False)
                    done.set_result(None)
        finally:
            self._consumer.close()


@contextmanager
def running_group(
    bootstrap: str,
    group: str,
    subscriptions: Mapping[str, Sequence[str]],
    own: Mapping[str, Mapping[str, str]] | None = None,
    **config: str,
) -> Iterator[dict[str, Member]]:
    """Run a group of members with the given subscriptions, by client id; the body runs when all partitions have owners.

    A subscription that starts with `^` is a regular expression. `config` has `_` for the dots in librdkafka's names;
    `own` is that of single members.
    """
    common: dict[str, object] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "enable.auto.commit": False,
        **QUIET,
    }
    if config.get("group_protocol") != "consumer":  # KIP-848 leaves it to the broker
        common["heartbeat.interval.ms"] = 500
    common |= {name.replace("_", "."): value for name, value in config.items()}
    members: dict[str, Member] = {}
    try:
        for client_id, topics in subscriptions.items():
            members[client_id] = Member({**common, "client.id": client_id, **(own or {}).get(client_id, {})}, topics)
        admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
        names = {name for topics in subscriptions.values() for name in topics}
        there = admin.list_topics(timeout=SETTLE_LIMIT).topics
        wanted = {
            topic for topic in there for name in names if topic == name or (name[0] == "^" and re.match(name, topic))
        }
        partitions = sum(_partitions(admin, topic) for topic in wanted)
        _wait(lambda: _has_settled(admin, group, len(members), partitions), f"group {group}")
        yield members
    finally:
        for member in members.values():
            member.stop()
        for member in members.values():
            member.join()


def _has_settled(admin: AdminClient, group: str, members: int, partitions: int) -> bool:
    try:
        description = admin.describe_consumer_groups([group])[group].result()
    except KafkaException:  # the coordinator of the group has just been chosen
        return False
    assigned = sum(len(member.assignment.topic_partitions) for member in description.members)
    return (description.state.name, len(description.members), assigned) == ("STABLE", members, partitions)


def _partitions(admin: AdminClient, topic: str) -> int:
    return len(admin.list_topics(topic, timeout=SETTLE_LIMIT).topics[topic].partitions)


def _wait(done: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + SETTLE_LIMIT
    while not done():
        if time.monotonic() > end:
            raise RuntimeError(f"{what}: not ready within {SETTLE_LIMIT:g} s")
        time.sleep(0.1)
