"""Followers of a plan as processes that can be killed.

`python -m tests.support.followers '{"bootstrap": …}'` is one follower. It prints its events, a line of JSON each.
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.members import Member, Members, say

Partition = tuple[str, int]


class Follower(Member):
    """A follower in a process of its own."""

    MODULE = "tests.support.followers"


class Followers(Members):
    """The followers of one group, by name."""

    KIND = Follower

    def processed(self) -> list[tuple[float, str, int, int]]:
        """Time, member, partition and offset of each message that was processed, in order of time."""
        events = ((name, each) for name, member in self.items() for each in member.of("processed"))
        return sorted((each["t"], name, each["partition"], each["offset"]) for name, each in events)


@contextmanager
def followers(bootstrap: str, group: str, **config: Any) -> Iterator[Followers]:
    """Run followers, and end them after the body."""
    several = Followers(bootstrap, group, [], **config)
    try:
        yield several
    finally:
        for member in several.values():
            member.end()


def run(config: dict[str, Any]) -> None:
    """Follow until the parent process writes "leave"."""
    import logging

    from confluent_kafka import Consumer as KafkaConsumer

    from evenlag.live.follow import Follow, PlanFile, PlanTopic

    class EventHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say("log", level=record.levelname, line=record.getMessage())

    logging.getLogger("evenlag").addHandler(EventHandler())
    logging.getLogger("evenlag").setLevel(logging.INFO)

    def report_event(event: str) -> Callable[[Follow, list[Partition]], None]:
        return lambda _, partitions: say(event, partitions=partitions)

    kafka = {
        "bootstrap.servers": config["bootstrap"], "group.id": config["group"], "enable.auto.commit": False,
        "auto.offset.reset": "error", "log_level": 0,
    }  # fmt: skip
    plans = PlanTopic(config["plans"], kafka) if "plans" in config else PlanFile(config["file"], config["group"])

    class Consumer(KafkaConsumer):
        """Says which offsets are committed."""

        def commit(self, *arguments: Any, **named: Any) -> Any:
            parts = super().commit(*arguments, **named)
            say("committed", offsets=[[each.partition, each.offset] for each in parts if each.error is None])
            return parts

    consumer = Consumer(kafka)
    words: list[str] = []
    say("ready")
    sys.stdin.readline()
    threading.Thread(target=lambda: words.extend(iter(sys.stdin.readline, "")), daemon=True).start()
    follow = Follow(
        consumer, plans, config["client_id"], auto_offset_reset="earliest", lease=config["lease"],
        rack=config.get("rack"),
        on_assign=report_event("assigned"), on_revoke=report_event("revoked"), on_lost=report_event("lost"),
    )  # fmt: skip
    with follow:
        while "leave\n" not in words:
            for message in follow.consume(0.2):
                time.sleep(config.get("handling", 0.0))
                say("processed", partition=message.partition(), offset=message.offset())
    say("revoked", partitions=[])
    consumer.close()


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
