"""Tasks of Kafka Streams as units: an application that reads two topics together follows a plan on a real broker."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from evenlag.live.followed_plan import PlanFile, publish
from tests.support.broker import Broker
from tests.support.java_consumers import Brokers
from tests.support.plan_jar import plan_programs
from tests.support.traffic import create_topics

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(600)]

TOPICS = ("streams-orders", "streams-payments")
PARTITIONS = 8
NAMES = ("s1", "s2", "s3")


@contextmanager
def applications(broker: Broker, group: str, folder: Path) -> Iterator[None]:
    """Start an application of Kafka Streams in three processes, and kill them after the body."""
    processes = []
    try:
        for name in NAMES:
            properties = {
                "application.id": group,
                "client.id": name,
                "bootstrap.servers": broker.bootstrap,
                "state.dir": str(folder / name),
                "task.assignor.class": "io.evenlag.PlanTaskAssignor",
                "evenlag.plan.file": str(folder / "plan.json"),
                "evenlag.plan.rebalance.interval.ms": "2000",
            }
            config = json.dumps({"topics": TOPICS, "properties": properties})
            command = plan_programs().command("io.evenlag.StreamsMember", config, log="info")
            with (folder / "streams.log").open("ab") as log:
                processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log))
        yield
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def test_tasks_follow_a_plan_that_keeps_their_topics_together(broker: Broker, tmp_path: Path) -> None:
    """A task goes where the plan has both of its partitions; a task whose partitions it splits stays whole."""
    group = "streams-together"
    create_topics(broker.bootstrap, dict.fromkeys(TOPICS, PARTITIONS))
    place, brokers = PlanFile(tmp_path / "plan.json", group), Brokers(broker.bootstrap, group)
    consumers = {name: f"{name}-StreamThread-1-consumer" for name in NAMES}
    random, took = Random(924), []
    with applications(broker, group, tmp_path):
        for split in (0, 0, 0, 3):
            units = [random.choice(NAMES) for _ in range(PARTITIONS)]
            owners = {(topic, i): consumers[units[i]] for topic in TOPICS for i in range(PARTITIONS)}
            for i in range(split):
                owners[TOPICS[1], i] = consumers[NAMES[NAMES.index(units[i]) - 1]]
            assignment: dict[str, list[list[object]]] = {}
            for key, owner in owners.items():
                assignment.setdefault(owner, []).append(list(key))
            publish({"group": group, "assignment": assignment}, place)
            since = time.monotonic()

            def follows(found: dict[tuple[str, int], str], owners: dict[tuple[str, int], str] = owners) -> bool:
                pairs = [[found.get((topic, i)) for topic in TOPICS] for i in range(PARTITIONS)]
                meant = [[owners[topic, i] for topic in TOPICS] for i in range(PARTITIONS)]
                return all(
                    given == wanted if len(set(wanted)) == 1 else given[0] is not None and given[0] == given[1]
                    for given, wanted in zip(pairs, meant, strict=True)
                )

            took.append(brokers.wait_for(follows, tmp_path / "streams.log", within=90) - since)
    print(f"\nplans in force after {', '.join(f'{each:.1f}' for each in took)} s")
