"""A compacted topic of plans, and the clients with which `PlanTopic` reads and writes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from evenlag.live.followed_plan import PlanTopic
from evenlag.simulation.link import Link
from evenlag.simulation.world import World

TOPIC, GROUP = "plans", "billing"
GARBAGE = b'{"group": "billing", "version":'
ARRIVES = 3.0, 60.0  # seconds until a reader can read a new record: at most, and at most for one in LATE of them
LATE = 4


@dataclass(frozen=True)
class Record:
    """A record of the log, or in place of one the error of a reader."""

    number: int
    written: float = 0.0
    content: tuple[bytes, bytes] = (b"", b"")
    code: int | None = None

    def key(self) -> bytes:
        """Return its key."""
        return self.content[0]

    def value(self) -> bytes:
        """Return its value."""
        return self.content[1]

    def offset(self) -> int:
        """Return its offset."""
        return self.number

    def partition(self) -> int:
        """Return its partition."""
        return 0

    def error(self) -> KafkaError | None:
        """Return the error, if it is one."""
        return None if self.code is None else KafkaError(self.code)


class PlanLog:
    """The one partition of the topic.

    Parameters
    ----------
    on_append : callable (value) -> None
        Called with each value as it is written.

    Attributes
    ----------
    overtake : callable () -> None or None
        Called once, right before a client writes.
    unanswered : bool
        True while a client writes that will get no answer.
    """

    def __init__(self, world: World, on_append: Callable[[bytes], None]) -> None:
        self.world, self._on_append = world, on_append
        self.records: list[Record] = []
        self.overtake: Callable[[], None] | None = None
        self.unanswered = False
        self._end = 0

    def append(self, key: bytes, value: bytes) -> None:
        """Write a record."""
        self.records.append(Record(self._end, self.world.now, (key, value)))
        self._end += 1
        self._on_append(value)

    def compact(self) -> None:
        """Remove all records of a key but the last."""
        last = {each.key(): each for each in self.records}
        self.records = sorted(last.values(), key=Record.offset)


class SimulatedPlanTopic(PlanTopic):
    """`PlanTopic` on a simulated log."""

    def __init__(self, log: PlanLog, link: Link, group: str) -> None:
        super().__init__(TOPIC, {"bootstrap.servers": "simulated:9092", "group.id": group})
        self._log, self._link = log, link

    def admin(self) -> Any:
        """Return an admin client that sees no members, so `publish` adds no note on names."""
        described: Future[Any] = Future()
        described.set_result(SimpleNamespace(members=[]))
        return SimpleNamespace(describe_consumer_groups=lambda names, **_: dict.fromkeys(names, described))

    def _consumer(self, settings: Mapping[str, Any]) -> Any:  # noqa: ARG002 (the model has none)
        return _Reader(self._log, self._link)

    def _producer(self, settings: Mapping[str, Any]) -> Any:  # noqa: ARG002 (the model has none)
        return _Writer(self._log, self._link)


class _Reader:
    """The part of confluent-kafka's consumer that `PlanTopic` calls."""

    def __init__(self, log: PlanLog, link: Link) -> None:
        self._log, self._link, self._world = log, link, log.world
        self._assigned, self._next, self._at_end = False, 0, False
        self._arrives: tuple[int, float] = (-1, 0.0)  # offset of the next record, and when it can be read

    def list_topics(self, topic: str, timeout: float) -> Any:
        self._link.ask(timeout, coordinator=False)
        self._link.answer(timeout)
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions={0: None})})

    def assign(self, parts: Sequence[TopicPartition]) -> None:
        assert [each.partition for each in parts] == [0]
        self._assigned = True

    def poll(self, timeout: float) -> Record | None:
        if not self._assigned:
            return None
        until = self._world.now + timeout
        while self._link.unreachable():
            if self._world.now >= until:
                return None
            self._world.sleep(min(until - self._world.now, 1.0))
        waiting = next((each for each in self._log.records if each.number >= self._next), None)
        if waiting is not None and self._arrival(waiting) <= self._world.now and not self._link.late:
            self._next = waiting.number + 1
            return waiting
        if self._at_end or waiting is not None:
            return None
        self._at_end = True
        return Record(self._next, code=KafkaError._PARTITION_EOF)

    def close(self) -> None:
        self._next = 0

    def _arrival(self, record: Record) -> float:
        """Return when a record can be read: all those that are there at the first reading at once."""
        if not self._at_end:
            return -math.inf
        if self._arrives[0] != record.number:
            random = self._world.random
            longest = ARRIVES[random.randrange(LATE) == 0]
            self._arrives = record.number, record.written + random.uniform(0, longest)
        return self._arrives[1]


class _Writer:
    """The part of confluent-kafka's producer that `PlanTopic` calls."""

    def __init__(self, log: PlanLog, link: Link) -> None:
        self._log, self._link = log, link
        self._left: list[tuple[bytes, bytes, Callable[[KafkaError | None, object], None]]] = []

    def produce(
        self, _topic: str, value: str, key: str, on_delivery: Callable[[KafkaError | None, object], None]
    ) -> None:
        self._left.append((key.encode(), value.encode(), on_delivery))

    def flush(self, timeout: float) -> int:
        for key, value, delivered in self._left:
            try:
                self._link.ask(timeout / 2, coordinator=False)
                if (overtake := self._log.overtake) is not None:
                    self._log.overtake = None
                    overtake()
                self._log.append(key, value)
                lost, self._log.unanswered = self._log.unanswered, False
                self._link.answer(timeout / 2, lost=lost)
                delivered(None, None)
            except KafkaException as error:
                delivered(error.args[0], None)
        self._left = []
        return 0
