"""Consumers of all kinds ride out an outage of their only broker, or of one of three: none ends, no message is lost.

`EVENLAG_OUTAGES=0,25,105 pytest -s …` kills the broker, keeps it away for each of these times in seconds, and starts it
again, which takes some 15 s more. It prints for each kind of consumer the seconds until all partitions are read again,
the messages read twice, and the errors that the loop met; with three brokers, the longest time without reading.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from evenlag.live.followed_plan import PlanFile, publish
from tests.support.broker import Broker, Node, running_broker, running_nodes
from tests.support.java_consumers import PLAN_ASSIGNOR, STICKY, JavaConsumers
from tests.support.members import wait_until
from tests.support.readers import Readers
from tests.support.traffic import create_topics, ends

OUTAGES = [float(each) for each in os.environ.get("EVENLAG_OUTAGES", "0").split(",")]
TOPIC, PARTITIONS = "outages", 6
OFFSETS = "__consumer_offsets"
NAMES = ("c1", "c2")
RATE = 30.0  # messages a second
LIMIT = 120.0  # seconds after which a partition that nobody reads is not waited for
COOPERATIVE = {"partition.assignment.strategy": "cooperative-sticky"}
KIP848 = {"group.protocol": "consumer"}
PYTHON: dict[str, dict[str, Any]] = {
    "evenlag.live.follow": {"client": "follow"},
    "confluent-kafka, cooperative-sticky": {"client": "confluent", "options": COOPERATIVE},
    "confluent-kafka, KIP-848": {"client": "confluent", "options": KIP848},
    "kafka-python, EvenlagAssignor": {"client": "kafka-python", "ours": True},
    "kafka-python, range": {"client": "kafka-python", "ours": False},
    "aiokafka, AioEvenlagAssignor": {"client": "aiokafka", "ours": True},
    "aiokafka, range": {"client": "aiokafka", "ours": False},
}
JAVA: dict[str, dict[str, str | None]] = {
    "Java, PlanAssignor": {"partition.assignment.strategy": PLAN_ASSIGNOR},
    "Java, cooperative-sticky": {"partition.assignment.strategy": STICKY},
    "Java, KIP-848": {"partition.assignment.strategy": None} | KIP848,
}

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]


@dataclass(frozen=True)
class Group:
    """Two consumers of one kind.

    Attributes
    ----------
    reads : callable () -> list of (float, int)
        Time and partition of each reading, in order of time.
    counts : callable () -> (int, int)
        Number of messages that were read, and number of readings.
    errors : callable () -> list of str
        Errors that the loops have met.
    ended : callable () -> int
        Number of consumers that have ended.
    """

    reads: Callable[[], list[tuple[float, int]]]
    counts: Callable[[], tuple[int, int]]
    errors: Callable[[], list[str]]
    ended: Callable[[], int]

    def first(self, since: float = 0.0) -> dict[int, float]:
        """Return the partitions that were read after a time, and when first."""
        return {partition: t for t, partition in reversed(self.reads()) if t > since}

    def pause(self, since: float, until: float) -> float:
        """Return the longest time between these two for which some partition was not read."""
        last, longest = dict.fromkeys(range(PARTITIONS), since), 0.0
        for t, partition in [*self.reads(), *((until, partition) for partition in range(PARTITIONS))]:
            if since < t <= until:
                longest, last[partition] = max(longest, t - last[partition]), t
        return longest

    def again(self) -> int:
        """Return how many readings were of a message that had been read."""
        messages, readings = self.counts()
        return readings - messages


def in_python(readers: Readers) -> Group:
    """Return consumers in Python, each a process."""

    def counts() -> tuple[int, int]:
        done = [each[2:] for each in readers.processed()]
        return len(set(done)), len(done)

    return Group(
        lambda: [(t, partition) for t, _, partition, _ in readers.processed()],
        counts,
        lambda: [event["line"] for member in readers.values() for event in member.of("error")],
        lambda: sum(not member.alive() for member in readers.values()),
    )


def in_java(consumers: JavaConsumers) -> Group:
    """Return consumers in Java, threads of a process; an error ends one."""

    def reads() -> list[tuple[float, int]]:
        events = [event for name in NAMES for event in consumers.of(name, "read")]
        return sorted((event["t"], partition) for event in events for _, partition in event["partitions"])

    def errors() -> list[str]:
        return [event["line"] for event in consumers.failures()]

    return Group(reads, lambda: (len(consumers.read), consumers.reads), errors, lambda: len(errors()))


@contextmanager
def everybody(bootstrap: str, folder: Path) -> Iterator[dict[str, Group]]:
    """Run two consumers of each kind in a group of their own; groups that follow have a plan."""
    with ExitStack() as running:
        found: dict[str, Group] = {}
        for kind, config in PYTHON.items():
            several = Readers(bootstrap, kind, [TOPIC], file=planned(folder, kind), **config)
            running.callback(lambda several=several: [member.end() for member in several.values()])
            several.start(*NAMES)
            found[kind] = in_python(several)
        for kind, properties in JAVA.items():
            plan = {"evenlag.plan.file": planned(folder, kind)}
            java = JavaConsumers(bootstrap, kind, [TOPIC], folder / "java.log", **plan)
            running.callback(java.end)
            java.start(*NAMES, watched="PlanAssignor" in kind, **properties)
            found[kind] = in_java(java)
        yield found


def planned(folder: Path, group: str) -> str:
    """Publish a plan that gives each of two consumers half of the partitions; return the path of its file."""
    path = folder / f"{group}.json"
    halves = {name: [[TOPIC, p] for p in range(PARTITIONS) if p % 2 == n] for n, name in enumerate(NAMES)}
    publish({"group": group, "assignment": halves}, PlanFile(path, group))
    return str(path)


@contextmanager
def producing(bootstrap: str) -> Iterator[None]:
    """Append numbers to all partitions in turn until the body ends, each once."""
    over = threading.Event()
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "message.timeout.ms": 900_000, "log_level": 0}
        | {"reconnect.backoff.max.ms": 500}
    )

    def run() -> None:
        number = 0
        while not over.wait(1 / RATE):
            producer.produce(TOPIC, str(number), partition=number % PARTITIONS)
            producer.poll(0)
            number += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        assert producer.flush(120) == 0


def test_outages_end_no_consumer_and_lose_no_message(tmp_path: Path) -> None:
    with running_broker() as broker:
        create_topics(broker.bootstrap, {TOPIC: PARTITIONS})
        with reading(broker.bootstrap, tmp_path) as kinds:
            for seconds in OUTAGES:
                out(broker, kinds, seconds)


def test_a_killed_coordinator_ends_no_consumer_and_loses_no_message(tmp_path: Path) -> None:
    with running_nodes(["", "", ""]) as nodes:
        bootstrap = ",".join(node.bootstrap for node in nodes)
        create_topics(bootstrap, {OFFSETS: [[2, 3, 1]]}, **{"cleanup.policy": "compact"})  # 1 is the controller
        create_topics(bootstrap, {TOPIC: [[n % 3 + 1, (n + 1) % 3 + 1, (n + 2) % 3 + 1] for n in range(PARTITIONS)]})
        with reading(bootstrap, tmp_path) as kinds:
            for seconds in OUTAGES:
                without_coordinator(bootstrap, nodes, kinds, seconds)


@contextmanager
def reading(bootstrap: str, folder: Path) -> Iterator[dict[str, Group]]:
    """Run consumers of all kinds; after the body, check that each has read all messages and none has ended."""
    with everybody(bootstrap, folder) as kinds:
        with producing(bootstrap):
            for kind, each in kinds.items():
                wait_until(lambda each=each: len(each.first()) == PARTITIONS, f"{kind} to read all partitions")
            time.sleep(10)
            yield kinds
        total = sum(ends(bootstrap, TOPIC, PARTITIONS))
        for kind, each in kinds.items():
            wait_until(lambda each=each: each.counts()[0] == total, f"{kind} to read all {total} messages")
            assert each.ended() == 0, kind


def out(broker: Broker, kinds: dict[str, Group], seconds: float) -> None:
    """Keep the broker away for these seconds; print how soon each kind of consumer reads all partitions again."""
    before = {kind: (each.again(), len(each.errors())) for kind, each in kinds.items()}
    gone = time.monotonic()
    broker.restart(seconds)
    back = time.monotonic()
    print(f"\nno broker answered for {back - gone:.1f} s; load {os.getloadavg()[0]:.1f}")
    while time.monotonic() - back < LIMIT and any(len(each.first(back)) < PARTITIONS for each in kinds.values()):
        time.sleep(0.5)
    time.sleep(10)
    for kind, each in kinds.items():
        first = each.first(back)
        took = f"{max(first.values()) - back:6.1f} s" if len(first) == PARTITIONS else f"{len(first)} read"
        again, errors = each.again() - before[kind][0], each.errors()[before[kind][1] :]
        print(f"{kind:36} read after {took}, {again:3} read again, {each.ended()} ended, errors: {errors}")


def without_coordinator(bootstrap: str, nodes: list[Node], kinds: dict[str, Group], seconds: float) -> None:
    """Keep the broker that coordinates all groups away; print for how long some partition was not read."""
    before = {kind: (each.again(), len(each.errors())) for kind, each in kinds.items()}
    gone = time.monotonic()
    number = coordinator(bootstrap)
    nodes[number - 1].kill()
    wait_until(lambda: coordinator(bootstrap) != number, "another coordinator")
    print(f"\nbroker {number} was replaced after {time.monotonic() - gone:.1f} s; load {os.getloadavg()[0]:.1f}")
    time.sleep(max(gone + seconds - time.monotonic(), 0))
    nodes[number - 1].start()
    back = time.monotonic()
    while time.monotonic() - back < LIMIT and any(len(each.first(back)) < PARTITIONS for each in kinds.values()):
        time.sleep(0.5)
    time.sleep(10)
    now = time.monotonic()
    print(f"it was away for {back - gone:.1f} s")
    for kind, each in kinds.items():
        again, errors = each.again() - before[kind][0], each.errors()[before[kind][1] :]
        pause = each.pause(gone, now)
        print(f"{kind:36} not read for {pause:5.1f} s, {again:3} read again, {each.ended()} ended, errors: {errors}")


def coordinator(bootstrap: str) -> int:
    """Return the number of the broker that coordinates all groups, as there is one partition of offsets."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    return int(admin.list_topics(OFFSETS, timeout=30).topics[OFFSETS].partitions[0].leader)


def test_a_pause_is_the_longest_time_without_reading_of_any_partition() -> None:
    reads = [(t, partition) for t in (1.0, 5.0, 9.0) for partition in range(PARTITIONS) if (t, partition) != (5.0, 2)]
    group = Group(lambda: reads, lambda: (0, 0), list, lambda: 0)
    assert group.pause(0.5, 10.0) == 8.0
    assert group.pause(1.5, 10.0) == 7.5
    assert group.pause(9.5, 12.0) == 2.5
