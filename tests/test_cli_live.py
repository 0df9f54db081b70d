"""From a running cluster to an audit, through the command: what `evenlag snapshot` writes, `plan` and `audit` read."""

import csv
import json
from pathlib import Path

import pytest

from tests.broker import Broker
from tests.command import evenlag_alone, refused
from tests.traffic import create_topics, produce, running_group


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
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["groups"], said["partitions"], said["members"]) == (["cli-classic", "cli-kip-848"], 12, 5)
    with (tmp_path / "offsets.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["lag"] for row in rows if (row["topic"], row["partition"]) == ("cli-classic", "0")} == {"800"}
    tables = (tmp_path / "offsets.csv", "--members", tmp_path / "members.csv", "--auto-offset-reset", "earliest")
    for group, lags, members in (("cli-classic", 900, 2), ("cli-kip-848", 1000, 3)):
        result = json.loads(evenlag_alone("plan", *tables, "--group", group, "--json").stdout)
        assert (sum(result["loads"].values()), len(result["counts"])) == (lags, members)
        assert (result["status"], result["forced_moves"]) == ("OPTIMAL", 0)
    assert not (tmp_path / "other").exists()
