"""From a running cluster to an audit: `plan` and `audit` read what `evenlag snapshot` writes."""

import csv
import json
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from tests.support.broker import Broker
from tests.support.command import evenlag, evenlag_alone, refused
from tests.support.environments import ROOT
from tests.support.few_rows import FEW_ROWS
from tests.support.streams import send, snapshots
from tests.support.traffic import allow, create_topics, produce, running_group


@pytest.mark.broker
def test_snapshot_then_plan_and_audit_of_two_running_groups(broker: Broker, tmp_path: Path) -> None:
    skewed = [900, 40, 30, 20, 10, 0]
    create_topics(broker.bootstrap, {"cli-classic": 6, "cli-kip-848": 6})
    for topic in ("cli-classic", "cli-kip-848"):
        produce(broker.bootstrap, topic, skewed)
    classic = {"partition_assignment_strategy": "range"}
    with (
        running_group(broker.bootstrap, "cli-classic", {name: ["cli-classic"] for name in "ab"}, **classic) as first,
        running_group(
            broker.bootstrap, "cli-kip-848", {name: ["cli-kip-848"] for name in "cde"}, group_protocol="consumer"
        ),
    ):
        first["a"].commit({("cli-classic", 0): 100})
        words = ("snapshot", "--bootstrap-server", broker.bootstrap, "--group", "cli-classic", "--group", "cli-kip-848")
        done = evenlag_alone(*words, "--out", tmp_path, "--json")
        refused(evenlag_alone(*words, "--group", "nobody", "--out", tmp_path / "other"), "nobody")
        record = tmp_path / "record"
        added = [evenlag(*words, "--out", record, "--append").stdout.splitlines() for _ in range(2)]
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["groups"], report["partitions"], report["members"]) == (["cli-classic", "cli-kip-848"], 12, 5)
    with (tmp_path / "offsets.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["lag"] for row in rows if (row["topic"], row["partition"]) == ("cli-classic", "0")} == {"800"}
    tables = (tmp_path / "offsets.csv", "--members", tmp_path / "members.csv", "--auto-offset-reset", "earliest")
    for group, lags, members in (("cli-classic", 900, 2), ("cli-kip-848", 1000, 3)):
        result = json.loads(evenlag_alone("plan", *tables, "--group", group, "--json").stdout)
        assert (sum(result["loads"].values()), len(result["counts"])) == (lags, members)
        assert (result["status"], result["forced_moves"]) == ("OPTIMAL", 0)
    assert not (tmp_path / "other").exists()
    assert [lines[-1] for lines in added] == [
        f"to read the whole record: {record}/offsets --members {record}/members"
    ] * 2
    assert {Path(line.strip()) for lines in added for line in lines[1:3]} == set(record.glob("*/*.csv"))
    result = json.loads(
        evenlag("plan", record / "offsets", *tables[1:2], record / "members", *words[3:5], "--json").stdout
    )
    assert any(note.startswith("2 snapshots in the folder") for note in result["warnings"])


def two_snapshots(broker: Broker, topic: str) -> None:
    """Have a topic of two snapshots of two groups, 12 rows each."""
    create_topics(broker.bootstrap, {topic: 1})
    for rows in snapshots(2, 2):
        send(broker.bootstrap, topic, [json.dumps(row) for row in rows])


@pytest.mark.long
@pytest.mark.broker
def test_a_topic_behind_a_password_is_audited(broker: Broker, tmp_path: Path) -> None:
    two_snapshots(broker, "guarded-rows")
    for operation in (AclOperation.DESCRIBE, AclOperation.READ):
        allow(broker.bootstrap, broker.user, ResourceType.TOPIC, "guarded-rows", operation)
    config = tmp_path / "client.properties"
    login = f'username="{broker.user}" password="{broker.password}"'
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\n"
        f"sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required {login};\n"
    )
    words = ["fleet", "audit", f"kafka://{broker.sasl_bootstrap}/guarded-rows", "--out", tmp_path / "out"]
    words += ["--command-config", config, "--option", "kafka.sasl.mechanism=PLAIN"]
    words += ["--group-time-limit", "0.05", "--gap", "0.2", "--json"]
    done = evenlag_alone(*words, *(word for pair in FEW_ROWS.items() for word in ("--conf", "=".join(pair))))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["plans"] == 24


@pytest.mark.broker
@pytest.mark.usefixtures("kafka_spark")
def test_a_topic_is_replayed_with_the_options_of_its_source(broker: Broker, tmp_path: Path) -> None:
    two_snapshots(broker, "replayed-rows")
    words = ["fleet", "replay", f"kafka://{broker.bootstrap}/replayed-rows", "--strategies", "range", "--json"]
    whole = json.loads(evenlag(*words, "--capacity", 1, "--tasks", 1).stdout)
    assert (whole["groups"], whole["errors"]) == (2, [])
    later = ("--option", json.dumps({"replayed-rows": {"0": 12}}).join(["startingOffsets=", ""]))
    half = json.loads(evenlag(*words, "--capacity", 1, *later).stdout)
    [error] = half["errors"]  # the first snapshot was to be left out
    assert error.startswith("2 groups: InvalidProblemError: a replay needs at least two snapshots")
    table = ROOT / "examples" / "snapshot" / "offsets.csv"
    wrong = ("fleet", "audit", table, "--out", tmp_path / "no", *later)
    refused(evenlag(*wrong), "options of the Kafka source need a table kafka://HOST:PORT/TOPIC, but no table")
