"""How long a partition stands still that moves, on a real broker; docs/pays.md builds on it."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from random import Random
from statistics import median

from confluent_kafka import Consumer, Producer

from tests.support.broker import running_broker
from tests.support.group_records import Raw, read_records
from tests.support.record_frames import records_frame
from tests.support.traffic import create_topics

STRATEGIES = ("cooperative-sticky", "range")
PARTITIONS, MEMBERS = 12, 3
CYCLES = 6  # in each a member joins, and leaves again
EVERY = 0.02  # seconds between two messages of a partition
SETTLED = 11.0  # seconds: some heartbeats
QUIET = {"log_level": 0}

Log = list[list[tuple[float, int, int]]]  # of each partition: time, member and offset of every message
Marks = list[tuple[float, str]]  # when somebody joined or left


class Reader(threading.Thread):
    """A member that notes when it got which message of each partition."""

    def __init__(self, config: dict[str, object], topic: str, log: Log, number: int) -> None:
        super().__init__()
        self._config, self._topic, self._log, self._number = config, topic, log, number
        self._stopped = threading.Event()
        self.start()

    def run(self) -> None:
        consumer = Consumer(dict(self._config))
        consumer.subscribe([self._topic])
        while not self._stopped.is_set():
            for message in consumer.consume(200, 0.05):
                partition, offset = message.partition(), message.offset()
                if message.error() is None and partition is not None and offset is not None:
                    self._log[partition].append((time.monotonic(), self._number, offset))
        consumer.close()

    def leave(self) -> None:
        """Leave the group, and wait until that is done."""
        self._stopped.set()
        self.join()


def pauses(seed: int) -> Iterator[str]:
    """Seconds without a message, in partitions that moved and in those that stayed."""
    yield "# What a move costs: how long a partition stands still\n"
    yield (
        f"{MEMBERS} members (confluent-kafka with its defaults: a heartbeat every 3 s) read {PARTITIONS} partitions, "
        f"{1 / EVERY:.0f} messages a second each, of an Apache Kafka on the same machine; {CYCLES} times a member "
        "joins and leaves again. The longest time without a message in each partition; `again`: most messages that the "
        "new owner read a second time.\n"
    )
    yield "| assignor | a member | partitions | cases | median | p90 | worst | again |"
    yield "|---|---|---|---|---|---|---|---|"
    with running_broker() as broker:
        for strategy in STRATEGIES:
            yield from _table(strategy, *_measured(broker.bootstrap, strategy, Random(seed)))
        records = read_records(broker.bootstrap)
    yield ""
    yield from _by_commits(records)
    yield ""


def _by_commits(records: list[Raw]) -> Iterator[str]:
    """The pauses that `evenlag history` measures of these groups, from their commits alone."""
    from evenlag.spark import history, local_session

    session = local_session()
    found = history(session, records_frame(session, records)).rebalances.filter("pause_seconds is not null")
    by_cause: dict[tuple[str, str], list[float]] = {}
    for row in found.select("group", "why", "pause_seconds").collect():
        by_cause.setdefault((row["group"].removeprefix("pauses-"), row["why"]), []).append(row["pause_seconds"])
    yield "The same rebalances as `evenlag history` measures them, by commits every 5 s alone (`pause_seconds`):\n"
    yield "| assignor | cause | rebalances | median | worst |"
    yield "|---|---|---|---|---|"
    for (strategy, cause), each in sorted(by_cause.items()):
        yield f"| {strategy} | {cause} | {len(each)} | {median(each):.2f} s | {max(each):.2f} s |"


def _measured(bootstrap: str, strategy: str, random: Random) -> tuple[Log, Marks]:
    """What came to whom and when, and when somebody joined or left."""
    topic = f"pauses-{strategy}"
    create_topics(bootstrap, {topic: PARTITIONS})
    log: Log = [[] for _ in range(PARTITIONS)]
    marks: Marks = []
    config = {
        "bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "latest",
        "partition.assignment.strategy": strategy, **QUIET,
    }  # fmt: skip
    with ExitStack() as running:
        running.callback(_producing(bootstrap, topic))
        for number in range(MEMBERS):
            running.callback(Reader(config, topic, log, number).leave)
        time.sleep(SETTLED)
        for cycle in range(CYCLES):
            marks.append((time.monotonic(), "joins"))
            another = Reader(config, topic, log, MEMBERS + cycle)
            time.sleep(SETTLED + 3 * random.random())
            marks.append((time.monotonic(), "leaves"))
            another.leave()
            time.sleep(SETTLED + 3 * random.random())
        marks.append((time.monotonic(), ""))
    return log, marks


def _producing(bootstrap: str, topic: str) -> Callable[[], None]:
    """Append a message to each partition again and again; return what ends that."""
    over = threading.Event()

    def produce() -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **QUIET})
        while not over.wait(EVERY):
            for partition in range(PARTITIONS):
                producer.produce(topic, b"", partition=partition)
            producer.poll(0)
        producer.flush(5)

    thread = threading.Thread(target=produce)
    thread.start()

    def end() -> None:
        over.set()
        thread.join()

    return end


def _table(strategy: str, log: Log, marks: Sequence[tuple[float, str]]) -> Iterator[str]:
    gaps: dict[tuple[str, str], list[float]] = {}
    again: dict[tuple[str, str], int] = {}
    for (since, what), (until, _) in pairwise(marks):
        for partition in log:
            seen = [each for each in partition if since - EVERY <= each[0] < until]
            moved = any(before[1] != after[1] for before, after in pairwise(seen))
            key = (what, "moved" if moved else "stayed")
            gaps.setdefault(key, []).append(max(after[0] - before[0] for before, after in pairwise(seen)))
            twice = max(before[2] - after[2] + 1 for before, after in pairwise(seen))
            again[key] = max(again.get(key, 0), twice)
    for (what, which), each in sorted(gaps.items()):
        each.sort()
        figures = (median(each), each[int(0.9 * (len(each) - 1))], each[-1])
        times = " | ".join(f"{seconds:.2f} s" for seconds in figures)
        yield f"| {strategy} | {what} | that {which} | {len(each)} | {times} | {again[what, which]} |"
