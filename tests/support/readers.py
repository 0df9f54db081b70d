"""Consumers of all kinds, with the settings of their libraries, as processes: the loops that users write.

`python -m tests.support.readers '{"client": "confluent", …}'` is one consumer. It prints its events, a line of JSON
each. A loop goes on after an error of its client, and prints the error.
"""

import asyncio
import contextlib
import json
import logging
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

from tests.support.followers import Followers
from tests.support.members import Member, say

Config = dict[str, Any]
PAUSE = 1.0  # seconds after an error


class Reader(Member):
    """A consumer in a process of its own."""

    MODULE = "tests.support.readers"


class Readers(Followers):
    """The consumers of one group, by name."""

    KIND = Reader


class Said(logging.Handler):
    """Prints warnings of clients as events."""

    def emit(self, record: logging.LogRecord) -> None:
        say("log", line=self.format(record))


def follow(config: Config, running: Callable[[], bool]) -> None:
    """Read as docs/follow.md shows."""
    from confluent_kafka import Consumer, KafkaException

    from evenlag.live.follow import Follow, PlanFile

    consumer = Consumer(_librdkafka(config) | {"enable.auto.commit": False})
    plans = PlanFile(config["file"], config["group"])
    with Follow(consumer, plans, config["client_id"], auto_offset_reset="earliest") as follower:
        while running():
            with _going_on(KafkaException):
                for message in follower.consume(timeout=1.0):
                    say("processed", partition=message.partition(), offset=message.offset())
    consumer.close()


def confluent(config: Config, running: Callable[[], bool]) -> None:
    """Poll, and leave commits to the client."""
    from confluent_kafka import Consumer

    consumer = Consumer(_librdkafka(config) | config.get("options", {}))
    consumer.subscribe(config["topics"])
    while running():
        message = consumer.poll(1.0)
        if message is None:
            continue
        if error := message.error():
            say("error", line=error.str())
        else:
            say("processed", partition=message.partition(), offset=message.offset())
    consumer.close()


def kafka_python(config: Config, running: Callable[[], bool]) -> None:
    """Poll, and leave commits to the client."""
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.errors import KafkaError

    from evenlag.live.assignor import EvenlagAssignor

    assignor = RangePartitionAssignor()
    if config["ours"]:
        assignor = EvenlagAssignor(config["bootstrap"], config["group"], auto_offset_reset="earliest")
    consumer = KafkaConsumer(
        *config["topics"],
        bootstrap_servers=config["bootstrap"],
        group_id=config["group"],
        client_id=config["client_id"],
        auto_offset_reset="earliest",
        partition_assignment_strategy=[assignor],
    )
    while running():
        with _going_on(KafkaError):
            for records in consumer.poll(timeout_ms=1000).values():
                for record in records:
                    say("processed", partition=record.partition, offset=record.offset)
    consumer.close()


def aiokafka(config: Config, running: Callable[[], bool]) -> None:
    """Poll, and leave commits to the client."""
    asyncio.run(_aiokafka(config, running))


async def _aiokafka(config: Config, running: Callable[[], bool]) -> None:
    from aiokafka.errors import KafkaError

    async with _aio_consumer(config) as consumer:
        while running():
            with _going_on(KafkaError):
                for records in (await consumer.getmany(timeout_ms=1000)).values():
                    for record in records:
                        say("processed", partition=record.partition, offset=record.offset)


@asynccontextmanager
async def _aio_consumer(config: Config) -> AsyncIterator[Any]:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor

    from evenlag.live.assignor import AioEvenlagAssignor

    assignor: Any = RangePartitionAssignor
    if config["ours"]:
        assignor = AioEvenlagAssignor(config["bootstrap"], config["group"], auto_offset_reset="earliest")
    consumer = AIOKafkaConsumer(
        *config["topics"],
        bootstrap_servers=config["bootstrap"],
        group_id=config["group"],
        client_id=config["client_id"],
        auto_offset_reset="earliest",
        partition_assignment_strategy=[assignor],
    )
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


def _librdkafka(config: Config) -> Config:
    return {
        "bootstrap.servers": config["bootstrap"], "group.id": config["group"], "client.id": config["client_id"],
        "auto.offset.reset": "earliest", "log_level": 0,
    }  # fmt: skip


@contextlib.contextmanager
def _going_on(errors: type[Exception]) -> Iterator[None]:
    """Print an error of a client, and go on after a pause."""
    try:
        yield
    except errors as error:
        say("error", line=f"{type(error).__name__}: {error}")
        time.sleep(PAUSE)


CLIENTS = {"follow": follow, "confluent": confluent, "kafka-python": kafka_python, "aiokafka": aiokafka}


def run(config: Config) -> None:
    """Read until the parent process writes "leave"."""
    logging.basicConfig(format="%(name)s: %(message)s", handlers=[Said()])
    words: list[str] = []
    say("ready")
    sys.stdin.readline()
    threading.Thread(target=lambda: words.extend(iter(sys.stdin.readline, "")), daemon=True).start()
    CLIENTS[config["client"]](config, lambda: "leave\n" not in words)
    os._exit(0)


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
