"""The Spring application of examples/spring follows published plans on a real broker."""

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evenlag.live.followed_plan import PlanFile, publish
from tests.support.broker import Broker
from tests.support.jars import CACHE, filled, find_java, run
from tests.support.java_consumers import Brokers, Partition
from tests.support.members import wait_until
from tests.support.plan_jar import POM, QUICK, ROOT
from tests.support.traffic import create_topics, numbered_messages

EXAMPLE = ROOT / "examples" / "spring"
MAVEN = shutil.which("mvn")
TOPIC = GROUP = "spring"
PARTITIONS = 6

pytestmark = [
    pytest.mark.broker,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(MAVEN is None or not shutil.which("javac"), reason="no Maven or no JDK here"),
]


def built() -> Path:
    """Return the application's jar: evenlag's jar goes into a repository of its own, then Maven builds the example."""
    folders = [POM.parent / "src", EXAMPLE / "src"]
    sources = sorted([POM, EXAMPLE / "pom.xml", *(path for each in folders for path in each.rglob("*.*"))])
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:12]

    def fill(folder: Path) -> None:
        maven = [str(MAVEN), "--batch-mode", "--quiet", f"-Dmaven.repo.local={CACHE / 'spring-repository'}"]
        for project, goal in ((POM.parent, "install"), (EXAMPLE, "package")):
            copy = folder / project.name
            shutil.copytree(project, copy, ignore=shutil.ignore_patterns("target"))
            run([*maven, "--file", str(copy / "pom.xml"), goal])

    return filled(f"spring-{digest}", fill) / "spring" / "target" / "billing-1.jar"


class Application:
    """A running application, whose log has the messages that it processed."""

    def __init__(self, broker: Broker, number: int, plan: Path, folder: Path) -> None:
        settings = {
            "spring.kafka.bootstrap-servers": broker.bootstrap,
            "spring.kafka.consumer.group-id": GROUP,
            "spring.kafka.consumer.client-id": f"billing-{number}",
            "spring.kafka.consumer.properties.evenlag.plan.file": plan,
            "spring.kafka.consumer.properties.evenlag.plan.rebalance.interval.ms": 0,
            "billing.topic": TOPIC,
        }
        self.log = folder / f"billing-{number}.log"
        words = [f"--{name}={value}" for name, value in settings.items()]
        command = [str(find_java()), *QUICK, "-jar", str(built()), *words]
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def stop(self) -> None:
        """End the application as a service manager does, and wait until it has left its group."""
        self.process.terminate()
        self.process.wait(60)

    def processed(self) -> dict[int, int]:
        """Return the partition of each message that it has processed."""
        lines = re.findall(r" partition (\d+), offset \d+: (\d+)\n", self.log.read_text())
        return {int(number): int(partition) for partition, number in lines}


@contextmanager
def applications(broker: Broker, plan: Path, folder: Path) -> Iterator[list[Application]]:
    running = [Application(broker, number, plan, folder) for number in (1, 2)]
    try:
        yield running
    finally:
        for each in running:
            each.process.kill()
            each.process.wait()


def test_the_application_follows_each_published_plan(broker: Broker, tmp_path: Path) -> None:
    create_topics(broker.bootstrap, {TOPIC: PARTITIONS})
    path, brokers = tmp_path / "plan.json", Brokers(broker.bootstrap, GROUP)

    def published(first: int) -> dict[Partition, str]:
        owners = {(TOPIC, p): "billing-1-0" if p < first else "billing-2-0" for p in range(PARTITIONS)}
        assignment = {name: [list(key) for key in owners if owners[key] == name] for name in set(owners.values())}
        publish({"group": GROUP, "assignment": assignment}, PlanFile(path, GROUP))
        return owners

    owners = published(1)
    with applications(broker, path, tmp_path) as running:
        brokers.wait_for(owners, running[0].log, 120)
        with numbered_messages(broker.bootstrap, TOPIC, PARTITIONS) as sent:
            for first in (4, 2):
                owners = published(first)
                brokers.wait_for(owners, running[0].log)
            running[1].stop()
            brokers.wait_for(dict.fromkeys(owners, "billing-1-0"), running[0].log)
            running[1] = Application(broker, 2, path, tmp_path)
            brokers.wait_for(owners, running[1].log, 120)
        wait_until(lambda: sent <= {**running[0].processed(), **running[1].processed()}.keys(), "all messages", 60)
        for number, each in enumerate(running, 1):
            assert each.process.poll() is None
            assert {p for p, name in owners.items() if name == f"billing-{number}-0"} <= {
                (TOPIC, p) for p in each.processed().values()
            }
