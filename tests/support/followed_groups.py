"""Brokers that assign by published plans, and plans made from snapshots of their groups, for tests."""

import csv
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AclOperation, ResourceType

from evenlag.live.followed_plan import PlanTopic
from tests.support.broker import Broker, running_broker
from tests.support.command import evenlag
from tests.support.plan_jar import plan_programs
from tests.support.traffic import allow, create_topics

PLANS = "plans"  # the topic
PROPERTIES = f"""\
group.consumer.assignors=uniform,io.evenlag.BrokerPlanAssignor
group.consumer.session.timeout.ms=10000
group.consumer.min.session.timeout.ms=10000
evenlag.plan.topic={PLANS}
evenlag.plan.client.bootstrap.servers=127.0.0.1:{{sasl}}
evenlag.plan.client.security.protocol=SASL_PLAINTEXT
evenlag.plan.client.sasl.mechanism=PLAIN
evenlag.plan.client.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
username="{{user}}" password="{{password}}";
"""
KIP_848 = {"group.protocol": "consumer", "group.remote.assignor": "evenlag-plan"}


@contextmanager
def planned_broker() -> Iterator[Broker]:
    """Start a broker with BrokerPlanAssignor and a topic of plans."""
    with running_broker(plan_programs().jar, PROPERTIES) as running:
        create_topics(running.bootstrap, {PLANS: 1})
        yield running


def prepare(broker: Broker, group: str, topic: str, partitions: int) -> None:
    """Make a topic, and give the broker's own login the rights that following a plan needs, and no others."""
    create_topics(broker.bootstrap, {topic: partitions})
    allow(broker.bootstrap, broker.user, ResourceType.TOPIC, topic, AclOperation.DESCRIBE)
    allow(broker.bootstrap, broker.user, ResourceType.GROUP, group, AclOperation.READ)
    allow(broker.bootstrap, broker.user, ResourceType.TOPIC, PLANS, AclOperation.READ)


def place_of(broker: Broker, group: str) -> PlanTopic:
    """Return where plans of a group are published."""
    return PlanTopic(PLANS, {"bootstrap.servers": broker.bootstrap, "log_level": 0}, group)


def plan_from_snapshot(broker: Broker, group: str, lags: Sequence[int], folder: Path) -> dict[str, Any]:
    """Return the plan of a snapshot of the running group, with these lags of its only topic; written to plan.json."""
    done = evenlag("snapshot", "--bootstrap-server", broker.bootstrap, "--group", group, "--out", folder)
    assert done.returncode == 0, done
    with (folder / "offsets.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    with (folder / "offsets.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        offsets = {"log_start_offset": 0, "current_offset": 0}
        table.writerows(row | offsets | {"log_end_offset": lags[int(row["partition"])], "lag": None} for row in rows)
    tables = (folder / "offsets.csv", "--members", folder / "members.csv")
    done = evenlag("plan", *tables, "--out", folder / "plan.json", "--time-limit", 5)
    assert done.returncode == 0, done
    plan: dict[str, Any] = json.loads((folder / "plan.json").read_text())
    return plan
