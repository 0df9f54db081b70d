"""The past of groups read from a real broker by Spark's Kafka connector, next to what the brokers describe."""

import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka.admin import AclOperation, ResourcePatternType, ResourceType

from evenlag.live import snapshot, write_snapshot
from tests.support.broker import Broker
from tests.support.command import evenlag, evenlag_alone, refused
from tests.support.group_records import commit_own, transact
from tests.support.traffic import allow, allow_describe, commit, create_topics, produce, running_group

KEY = ("group", "topic", "partition")
OFFSETS = ("log_start_offset", "log_end_offset", "current_offset", "lag", "consumer_id", "client_id", "host")
MEMBERS = ("client_id", "host", "topics", "protocol", "group_instance_id", "generation", "group_epoch")


def by_key(rows: list[dict[str, Any]], key: tuple[str, ...], names: tuple[str, ...]) -> dict[Any, Any]:
    return {tuple(row[name] for name in key): tuple(row[name] for name in names) for row in rows}


@pytest.mark.broker
@pytest.mark.usefixtures("kafka_spark")
def test_the_last_snapshot_is_what_the_brokers_describe(broker: Broker, tmp_path: Path) -> None:
    """In a session to which the connector was added: threads of their own must find its classes too."""
    bootstrap, topic = broker.bootstrap, "history-orders"
    create_topics(bootstrap, {topic: 4})
    produce(bootstrap, topic, [30, 0, 50, 70])
    offsets = {(topic, number): 10 * number for number in range(3)}
    groups = ["history-classic", "history-consumer", "history-commit"]
    both = {"c0": [topic], "c1": [topic]}
    with (
        running_group(bootstrap, groups[0], both, {"c0": {"group.instance.id": "node-0"}}) as classic,
        running_group(bootstrap, groups[1], both, group_protocol="consumer") as consumer,
    ):
        for each in (classic, consumer):
            commit_own(each, offsets)
        for end in ("commit", "abort"):
            transact(bootstrap, f"history-{end}", {(topic, 0): 7}, end)
        taken = snapshot(bootstrap, groups, timeout=60.0)
    write_snapshot(taken, tmp_path)
    past = tmp_path / "past"
    done = evenlag("history", f"kafka://{bootstrap}", "--log-ends", tmp_path / "offsets.csv", "--out", past, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["records"] == told["used"] + sum(told["passed_over"].values()) > 0
    tables = {name: pq.read_table(past / name).to_pylist() for name in ("offsets", "members")}
    ours, members = ([row for row in rows if row["group"].startswith("history-")] for rows in tables.values())
    assert {row["snapshot_ts"] for row in ours} == {row["snapshot_ts"] for row in taken.offsets}
    assert by_key(ours, KEY, OFFSETS) == by_key(taken.offsets, KEY, OFFSETS)  # nothing of history-abort
    key = ("group", "consumer_id")
    assert by_key(members, key, MEMBERS) == by_key(taken.members, key, MEMBERS)
    assert len(members) == 4

    # The same log ends, and those of earlier times, as the command asks for them itself.
    done = evenlag("history", f"kafka://{bootstrap}", "--since", "30s", "--every", "1s", "--out", tmp_path / "since")
    assert done.returncode == 0, done.stderr
    rows = [row for row in pq.read_table(tmp_path / "since" / "offsets").to_pylist() if row["topic"] == topic]
    times = sorted({row["snapshot_ts"] for row in rows})
    assert len(times) >= 2
    ends = ("log_start_offset", "log_end_offset", "current_offset", "lag")
    known = by_key([row for row in rows if row["snapshot_ts"] == times[-1] and row["group"] in groups], KEY, ends)
    assert known == by_key(taken.offsets, KEY, ends)
    assert {row["log_end_offset"] for row in rows if row["snapshot_ts"] < times[-1]} <= {0, 30, 50, 70, None}


@pytest.mark.long
@pytest.mark.broker
def test_a_user_with_the_rights_on_the_page_reads_commits(broker: Broker, tmp_path: Path) -> None:
    """The options of Spark's source log in here, to evenlag's own client too."""
    create_topics(broker.bootstrap, {"permitted": 1})
    produce(broker.bootstrap, "permitted", [3])
    commit(broker.bootstrap, "permitted", {("permitted", 0): 1})
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    login = (
        "kafka.security.protocol=SASL_PLAINTEXT", "kafka.sasl.mechanism=PLAIN",
        f'kafka.sasl.jaas.config={module} required username="{broker.user}" password="{broker.password}";',
    )  # fmt: skip

    def run(*words: str) -> tuple[Path, CompletedProcess[str]]:
        out = tmp_path / words[0]
        options = (word for option in login for word in ("--option", option))
        return out, evenlag_alone(words[0], f"kafka://{broker.sasl_bootstrap}", *words[1:], "--out", out, *options)

    stream = ("stream", "--from-commits", "--once")
    refused(run(*stream)[1], "topic __consumer_offsets")
    allow(broker.bootstrap, broker.user, ResourceType.TOPIC, "__consumer_offsets", AclOperation.READ)
    refused(run(*stream)[1], "the user needs the ACL Describe on all groups whose names begin with spark-kafka-")
    prefixed = (AclOperation.DESCRIBE, ResourcePatternType.PREFIXED)
    allow(broker.bootstrap, broker.user, ResourceType.GROUP, "spark-kafka-", *prefixed)
    allow_describe(broker.bootstrap, broker.user, ResourceType.TOPIC, "permitted")
    for words in (("history",), stream):
        out, done = run(*words)
        assert done.returncode == 0, done
        assert "permitted" in {row["group"] for row in pq.read_table(out / "offsets").to_pylist()}
