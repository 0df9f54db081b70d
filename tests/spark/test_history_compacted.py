"""The past of groups from a topic that Kafka has compacted, with offsets that it has expired."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from evenlag.protocol.coordinator_records import COMMITS
from evenlag.protocol.record_decoding import CoordinatorRecord, decode_record
from tests.support.broker import Broker, running_broker
from tests.support.command import evenlag
from tests.support.group_records import TOPIC, Raw, check_as_kafka_prints, commit_own, read_records, tool, transact
from tests.support.traffic import QUIET, commit, create_topics, produce, running_group

# Offsets of groups without members expire after a minute, the least that Kafka has.
SOON = """\
offsets.retention.minutes=1
offsets.retention.check.interval.ms=1000
log.cleaner.backoff.ms=200
"""
COMPACTED = {
    "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01", "min.compaction.lag.ms": "0",
    "max.compaction.lag.ms": "1000", "delete.retention.ms": "0",
}  # fmt: skip
NEVER = {"max.compaction.lag.ms": "86400000", "min.compaction.lag.ms": "86400000"}
LIMIT = 150.0  # seconds for the broker to compact and expire
HOT = "compacted-hot"
EXPIRED = "compacted-expired"
DELETED = "compacted-deleted"


@pytest.fixture
def forgetful() -> Iterator[Broker]:
    with running_broker(properties=SOON) as broker:
        yield broker


def compact(bootstrap: str, config: dict[str, str]) -> None:
    """Change when the broker compacts the topic of commits."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in config.items()]
    resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result()


def delete_group(bootstrap: str, group: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    admin.delete_consumer_groups([group])[group].result()


def records_when(bootstrap: str, topic: str, done: Callable[[list[Raw]], bool]) -> list[Raw]:
    """Commit until the records are as wanted, because Kafka begins a segment only when a record comes."""
    end, number = time.monotonic() + LIMIT, 1000
    while time.monotonic() < end:
        commit(bootstrap, HOT, {(topic, 0): number})
        records, number = read_records(bootstrap), number + 1
        if done(records):
            return records
        time.sleep(1)
    raise AssertionError(f"the topic is not as wanted after {LIMIT:g} s")


def of_group(records: list[Raw], group: str) -> list[CoordinatorRecord]:
    """Return the decoded commits of a group."""
    found = (decode_record(each.key, each.value) for each in records)
    return [
        each
        for each in found
        if isinstance(each, CoordinatorRecord) and each.kind in COMMITS and each.key["group"] == group
    ]


def described(bootstrap: str) -> dict[tuple[str, str, int], tuple[Any, ...]]:
    """Return commit and owner of each partition by `kafka-consumer-groups --describe --all-groups`."""
    text = tool(
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        "--bootstrap-server", bootstrap, "--describe", "--all-groups",
    )  # fmt: skip
    found = {}
    for line in text.splitlines():
        words = [None if word == "-" else word for word in line.split()]
        if len(words) == 9 and words[0] != "GROUP" and words[1] is not None:
            group, topic, partition, at, _, _, member, host, client = words
            key = (str(group), topic, int(str(partition)))
            found[key] = (at and int(at), member, host, client)
    return found


@pytest.mark.long
@pytest.mark.broker
def test_a_compacted_topic_tells_the_last_state_of_all_groups(forgetful: Broker, tmp_path: Path) -> None:
    bootstrap, topic = forgetful.bootstrap, "compacted-orders"
    create_topics(bootstrap, {topic: 4})
    produce(bootstrap, topic, [50] * 4)
    offsets = {(topic, number): 10 * number for number in range(4)}
    both = {"c0": [topic], "c1": [topic]}
    with contextlib.ExitStack() as running:
        for group, config in (("compacted-classic", {}), ("compacted-consumer", {"group_protocol": "consumer"})):
            members = running.enter_context(running_group(bootstrap, group, both, **config))
            commit_own(members, offsets)
            commit_own(members, {key: at + 1 for key, at in offsets.items()})
        for number in range(30):
            commit(bootstrap, HOT, {(topic, 0): number})
        commit(bootstrap, DELETED, offsets)
        delete_group(bootstrap, DELETED)
        commit(bootstrap, EXPIRED, offsets)
        before = read_records(bootstrap)
        check_as_kafka_prints(before)
        assert len(of_group(before, HOT)) == 30
        assert [each.value is None for each in of_group(before, DELETED)] == [False] * 4 + [True] * 4
        assert len(of_group(before, "compacted-classic")) == 8
        compact(bootstrap, COMPACTED)
        after = records_when(bootstrap, topic, lambda records: len(of_group(records, HOT)) < 10)
        assert {each.offset for each in before} - {each.offset for each in after}, "no record is gone"
        assert len(of_group(after, "compacted-classic")) == 4
        check_as_kafka_prints(after)
        expired = records_when(
            bootstrap, topic, lambda records: all(each.value is None for each in of_group(records, EXPIRED))
        )
        check_as_kafka_prints(expired)
        compact(bootstrap, NEVER)  # what is read below stays
        for end in ("commit", "abort"):
            transact(bootstrap, f"compacted-{end}", {(topic, 0): 7}, end)
        truth = described(bootstrap)
        until = read_records(bootstrap)[-1].offset + 1
        done = evenlag(
            "history", f"kafka://{bootstrap}", "--every", "1s", "--out", tmp_path / "past", "--json",
            "--option", "endingOffsets=" + json.dumps({TOPIC: {"0": until}}),
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(tmp_path / "past" / "offsets").to_pylist()
    last = max(row["snapshot_ts"] for row in rows)
    found = {
        (row["group"], row["topic"], row["partition"]): tuple(
            row[name] for name in ("current_offset", "consumer_id", "host", "client_id")
        )
        for row in rows
        if row["snapshot_ts"] == last
    }
    assert found == truth
    groups = {group for group, *_ in truth}
    assert groups == {"compacted-classic", "compacted-consumer", "compacted-commit", HOT}
