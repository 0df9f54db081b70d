"""Java consumers with PlanAssignor in a Java process, and Kafka's own tools, for tests on a broker."""

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.support.members import wait_until
from tests.support.plan_jar import plan_programs

Partition = tuple[str, int]
PLAN_ASSIGNOR = "io.evenlag.PlanAssignor"
RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"
STICKY = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
# Members learn of a rebalance with a heartbeat, every 3 s by default. KIP-848 refuses both settings.
CLASSIC = {"partition.assignment.strategy": PLAN_ASSIGNOR, "heartbeat.interval.ms": "500"}


class JavaConsumers:
    """Consumers of one group in one process, which may be killed."""

    def __init__(self, bootstrap: str, group: str, topics: list[str], log: Path, **properties: Any) -> None:
        strings = "org.apache.kafka.common.serialization.StringDeserializer"
        self._topics = topics
        self._properties = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            "key.deserializer": strings,
            "value.deserializer": strings,
        } | properties
        self.events: list[dict[str, Any]] = []
        self.read: set[int] = set()
        self.reads = 0  # messages read, those read twice included
        self.alive: set[str] = set()
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                plan_programs().command("io.evenlag.PlanMember", log="info"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
            )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "read":
                self.read.update(event["numbers"])
                self.reads += len(event["numbers"])
                event.pop("numbers")
            self.events.append(event)

    def start(self, *names: str, watched: bool = True, handling: int = 0, **properties: str | None) -> None:
        """Start consumers with these client ids, which take `handling` ms for what a poll returns.

        None takes a property away.
        """
        own = self._properties | properties
        kept = {} if own.get("group.protocol") == "consumer" else CLASSIC
        for name in names:
            config = {
                "name": name,
                "topics": self._topics,
                "watched": watched,
                "handling": handling,
                "properties": {k: v for k, v in (kept | own).items() if v is not None},
            }
            self._say(json.dumps(config))
            self.alive.add(name)

    def leave(self, name: str) -> None:
        """End a consumer properly, and wait until it has left."""
        before = len(self.of(name, "left"))
        self._say(f"leave {name}")
        wait_until(lambda: len(self.of(name, "left")) > before, f"{name} to leave")
        self.alive.discard(name)

    def kill(self) -> None:
        """Kill the process with all its consumers."""
        self.process.kill()
        self.process.wait()
        for name in self.alive:
            self.events.append({"event": "killed", "t": time.monotonic(), "member": name})
        self.alive.clear()

    def end(self) -> None:
        """End the process, and close its pipes."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def of(self, name: str, *kinds: str) -> list[dict[str, Any]]:
        """Return a consumer's events of these kinds."""
        return [event for event in list(self.events) if event["member"] == name and event["event"] in kinds]

    def revoked(self, since: float) -> set[Partition]:
        """Return the partitions that any consumer has given up after a time of `time.monotonic`."""
        return {
            (topic, number)
            for event in list(self.events)
            if event["event"] == "revoked" and event["t"] > since
            for topic, number in event["partitions"]
        }

    def readers(self, since: float) -> dict[Partition, str]:
        """Return the last consumer that has read each partition after a time of `time.monotonic`."""
        return {
            (topic, number): event["member"]
            for event in list(self.events)
            if event["event"] == "read" and event["t"] > since
            for topic, number in event["partitions"]
        }

    def failures(self) -> list[dict[str, Any]]:
        """Return the exceptions that ended consumers."""
        return [event for event in list(self.events) if event["event"] == "failed"]

    def _say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()


@contextmanager
def java_consumers(
    bootstrap: str, group: str, topics: list[str], log: Path, **properties: Any
) -> Iterator[JavaConsumers]:
    """Start a process for consumers, and kill it after the body."""
    consumers = JavaConsumers(bootstrap, group, topics, log, **properties)
    try:
        yield consumers
    finally:
        consumers.end()


def _without_configs(log: Path) -> str:
    """Return the end of a log without the lists of settings that clients begin with."""
    return "\n".join(line for line in log.read_text().splitlines() if not line.startswith("\t"))[-9000:]


def two_owners(events: list[dict[str, Any]]) -> list[tuple[float, Partition, str, str]]:
    """Return when a partition was assigned to a consumer while another held it, with both names."""
    holder: dict[Partition, str] = {}
    found = []
    for event in sorted(events, key=lambda event: event["t"]):
        partitions = [(topic, number) for topic, number in event.get("partitions", ())]
        for each in partitions:
            if event["event"] == "assigned":
                if holder.get(each, event["member"]) != event["member"]:
                    found.append((event["t"], each, holder[each], event["member"]))
                holder[each] = event["member"]
            elif event["event"] in ("revoked", "lost") and holder.get(each) == event["member"]:
                del holder[each]
        if event["event"] in ("killed", "left"):
            holder = {each: name for each, name in holder.items() if name != event["member"]}
    return found


class Brokers:
    """Ask the brokers repeatedly which consumers own the partitions of a group."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._bootstrap, self._group = bootstrap, group

    def owners(self) -> dict[Partition, str] | None:
        """Return the client id that has each partition, or None while the group is not stable."""
        members = self._members()
        return None if members is None else {each: client for client, held in members for each in held}

    def members(self) -> list[set[Partition]] | None:
        """Return the partitions of each member, or None while the group is not stable."""
        members = self._members()
        return None if members is None else [held for _, held in members]

    def empty(self) -> bool:
        """Return whether the group has no members any more."""
        described = self._group_now()
        return described is not None and described.state.name == "EMPTY"

    def _group_now(self) -> Any:
        try:
            return self._admin.describe_consumer_groups([self._group], request_timeout=5)[self._group].result()
        except KafkaException:
            return None

    def _members(self) -> list[tuple[str, set[Partition]]] | None:
        described = self._group_now()
        if described is None or described.state.name != "STABLE":
            return None
        return [
            (member.client_id, {(each.topic, each.partition) for each in member.assignment.topic_partitions})
            for member in described.members
        ]

    def wait_for(
        self, owners: Mapping[Partition, str] | Callable[[dict[Partition, str]], bool], story: Path, within: float = 60
    ) -> float:
        """Wait until brokers show these owners; return the time."""
        last: list[object] = [None]

        def there() -> bool:
            last[0] = found = self.owners()
            return found is not None and (owners(found) if callable(owners) else found == owners)

        wait_until(there, lambda: f"{owners}; last {last[0]}:\n{_without_configs(story)}", within)
        return time.monotonic()

    def described(self) -> str:
        """Return what `kafka-consumer-groups --describe` prints."""
        command = plan_programs().command(
            "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
            *("--bootstrap-server", self._bootstrap, "--describe", "--group", self._group),
        )
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
