"""Consumers of every kind on a real broker, the records that they leave in `__consumer_offsets`, and Kafka's reading.

`python -m tests.support.group_records FILE` starts a broker and writes the records as JSON Lines, for golden files.
"""

import base64
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, ConsumerGroupState, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from evenlag.protocol.record_decoding import CoordinatorRecord, decode_record
from tests.support.broker import TESTS, VERSION, kafka_fetched, kafka_jars
from tests.support.jars import find_java
from tests.support.members import wait_until
from tests.support.traffic import QUIET, SETTLE_LIMIT, create_topics, produce, running_group

TOPIC = "__consumer_offsets"
MESSAGES = 40


class Raw(NamedTuple):
    """A record as it lies in the topic; the timestamp in milliseconds."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def leave_records(bootstrap: str, prefix: str) -> None:
    """Run groups of every kind of consumer, whose names begin with a prefix, and delete one of them."""
    topic = f"{prefix}-orders"
    create_topics(bootstrap, {topic: 4})
    produce(bootstrap, topic, [MESSAGES] * 4)
    classic = {"c0": [topic], "c1": [topic]}
    offsets = {(topic, number): 10 + number for number in range(4)}
    static = {"group.instance.id": "node-0", "session.timeout.ms": "6000"}  # the least that brokers allow by default
    with running_group(bootstrap, f"{prefix}-static", classic, {"c0": static}) as members:
        commit_own(members, offsets)
    with running_group(
        bootstrap, f"{prefix}-cooperative", classic, partition_assignment_strategy="cooperative-sticky"
    ) as members:
        commit_own(members, offsets)
    with running_group(bootstrap, f"{prefix}-consumer", classic, group_protocol="consumer") as members:
        commit_own(members, offsets)
    with running_group(bootstrap, f"{prefix}-regex", {"c0": [f"^{topic}.*"]}, group_protocol="consumer"):
        pass
    _read_by_kafka_python(bootstrap, f"{prefix}-python", topic)
    for protocol in ("classic", "consumer"):
        consume_by_java(bootstrap, f"{prefix}-java-{protocol}", topic, protocol)
    for end in ("commit", "abort"):
        transact(bootstrap, f"{prefix}-{end}", {(topic, 0): 7, (topic, 1): 8}, end)
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    group = f"{prefix}-static"  # its static member has not left: its session ends after a while

    def empty() -> bool:
        return bool(admin.describe_consumer_groups([group])[group].result().state is ConsumerGroupState.EMPTY)

    wait_until(empty, f"{group} is empty")
    admin.delete_consumer_groups([group])[group].result()


def commit_own(members: dict[str, Any], offsets: dict[tuple[str, int], int]) -> None:
    """Let the members commit their own partitions."""
    for member in members.values():
        member.commit(offsets, own=True)


def _read_by_kafka_python(bootstrap: str, group: str, topic: str) -> None:
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(
        topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False
    )
    end, read = time.monotonic() + SETTLE_LIMIT, 0
    while read < 4 * MESSAGES and time.monotonic() < end:
        read += sum(map(len, consumer.poll(timeout_ms=500).values()))
    consumer.commit()
    consumer.close()


def tool(*arguments: str, stdin: str | None = None) -> str:
    """Run a class of Kafka's tools, and return its output."""
    java = find_java()
    jars = kafka_fetched(TESTS / "kafka" / "tools.xml", f"kafka-tools-{VERSION}", java)
    command = [str(java), "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-XX:+UseSerialGC", "-cp", f"{jars}/*"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, input=stdin, check=False)
    if done.returncode:
        raise RuntimeError(f"{arguments[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def consume_by_java(bootstrap: str, group: str, topic: str, protocol: str) -> None:
    """Read a topic by Java's console consumer, which commits at its end."""
    tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", bootstrap, "--topic", topic,
        "--group", group, "--from-beginning", "--max-messages", str(MESSAGES),
        "--consumer-property", f"group.protocol={protocol}",
    )  # fmt: skip


def transact(bootstrap: str, group: str, offsets: dict[tuple[str, int], int], end: str) -> None:
    """Commit offsets in a transaction, and end it by `commit` or `abort`."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **QUIET})
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": group, **QUIET})
    producer.init_transactions(SETTLE_LIMIT)
    producer.begin_transaction()
    committed = [TopicPartition(*key, offset) for key, offset in offsets.items()]
    producer.send_offsets_to_transaction(committed, consumer.consumer_group_metadata(), SETTLE_LIMIT)
    if end == "commit":
        producer.commit_transaction(SETTLE_LIMIT)
    else:
        producer.abort_transaction(SETTLE_LIMIT)
    consumer.close()


def read_records(bootstrap: str, isolation: str = "read_committed") -> list[Raw]:
    """Read the topic of commits from its beginning to its current end."""
    config = {
        "group.id": "unused",
        "enable.auto.commit": False,
        "isolation.level": isolation,
        "enable.partition.eof": True,
    }
    consumer = Consumer({"bootstrap.servers": bootstrap, **config, **QUIET})
    numbers = sorted(consumer.list_topics(TOPIC, timeout=SETTLE_LIMIT).topics[TOPIC].partitions)
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in numbers])
    found, ended = [], 0
    while ended < len(numbers):
        message = consumer.poll(SETTLE_LIMIT)
        if message is None:
            raise RuntimeError(f"{TOPIC}: no end within {SETTLE_LIMIT:g} s")
        if message.error():
            ended += 1
            continue
        found.append(Raw(message.partition(), message.offset(), message.timestamp()[1], message.key(), message.value()))
    consumer.close()
    return found


def formatted(records: Iterable[tuple[bytes, bytes | None]]) -> list[dict[str, Any] | None]:
    """Return what the formatters of Kafka's console consumer print for each record; None for nothing."""
    printed = tool(str(TESTS / "kafka" / "FormatRecords.java"), stdin=_lines(records)).split("\n")
    return [json.loads(line) if line else None for line in printed[:-1]]


def _lines(records: Iterable[tuple[bytes, bytes | None]]) -> str:
    return "".join(f"{key.hex()} {'-' if value is None else value.hex()}\n" for key, value in records)


def read_by_kafka(records: Iterable[tuple[bytes, bytes | None]]) -> list[dict[str, Any]]:
    """Return each record as Kafka's own code reads it: `type`, `key`, `version` and `value`, or `error`."""
    return [json.loads(line) for line in _by_kafka_classes("PrintRecords", records)]


def rewritten_by_kafka(records: Iterable[tuple[bytes, bytes | None]]) -> list[tuple[bytes, bytes]]:
    """Return each record as Kafka's own serializer writes what Kafka reads in it."""
    pairs = (line.split(" ") for line in _by_kafka_classes("RewriteRecords", records))
    return [(bytes.fromhex(key), bytes.fromhex(value)) for key, value in pairs]


def _by_kafka_classes(program: str, records: Iterable[tuple[bytes, bytes | None]]) -> list[str]:
    java = find_java()
    classes = ["-cp", f"{kafka_jars(java)}/*", str(TESTS / "kafka" / f"{program}.java")]
    command = [str(java), "-XX:+UseSerialGC", *classes]
    done = subprocess.run(command, capture_output=True, text=True, input=_lines(records), check=False)
    if done.returncode:
        raise RuntimeError(f"{program} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout.splitlines()


def as_kafka_prints(record: CoordinatorRecord) -> dict[str, Any]:
    """Return a decoded record in the form of `read_by_kafka`."""
    shown = {"type": record.kind, "key": record.key}
    if record.value is not None:
        shown |= {"version": record.version, "value": _with_base64(record.value)}
    return shown


def check_as_kafka_prints(records: Sequence[Raw]) -> set[int]:
    """Compare each record with Kafka's reading, and return their types.

    The formatters of kafka-console-consumer print commits and classic groups; the code behind them reads all types.
    """
    pairs = [(each.key or b"", each.value) for each in records]
    found = [decode_record(*pair) for pair in pairs]
    ours = [as_kafka_prints(each) for each in found if isinstance(each, CoordinatorRecord)]
    assert len(ours) == len(records)
    assert ours == read_by_kafka(pairs)
    for each, printed in zip(ours, formatted(pairs), strict=True):
        value = {"version": each["version"], "data": each["value"]} if "value" in each else None
        shown = {"key": {"type": each["type"], "data": each["key"]}, "value": value}
        assert printed == (shown if each["type"] <= 2 else None)
    return {each["type"] for each in ours}


def _with_base64(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: _with_base64(each) for name, each in value.items()}
    return [_with_base64(each) for each in value] if isinstance(value, list) else value


def write_golden(path: Path, records: Sequence[Raw]) -> None:
    """Write records as JSON Lines, each with Kafka's reading of it."""
    kafka = read_by_kafka([(each.key or b"", each.value) for each in records])
    with path.open("w") as file:
        for each, read in zip(records, kafka, strict=True):
            row = each._asdict() | {
                name: None if raw is None else raw.hex() for name, raw in (("key", each.key), ("value", each.value))
            }
            file.write(json.dumps({**row, "kafka": read}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    from tests.support.broker import running_broker

    with running_broker() as broker:
        leave_records(broker.bootstrap, "shop")
        write_golden(Path(sys.argv[1]), read_records(broker.bootstrap))
