"""Record examples/racks/: a consumer group in three zones on a real Kafka of three brokers, one in each zone.

Run it from a checkout with the extras `all` and `dev`: `python examples/record_racks.py`. It starts the brokers itself
(see tests/broker.py), takes about a minute and leaves nothing behind but the files.
"""

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from confluent_kafka.admin import AdminClient, NewTopic

from evenlag.live import Snapshot, snapshot, write_snapshot

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the broker of the tests is no part of the package

from tests.broker import CLUSTER_ID, JAVA_OPTIONS, START_LIMIT, VERSION, free_ports, kafka_jars  # noqa: E402
from tests.jars import find_java, run  # noqa: E402
from tests.traffic import commit, produce, running_group  # noqa: E402

OUT = ROOT / "examples" / "racks"
SEED = 392  # of KIP-392, by which consumers read from the replica in their rack
ZONES = ("zone-a", "zone-b", "zone-c")
PARTITIONS = {"orders": 24, "payments": 12}
MEMBERS = {"shop-1": "zone-a", "shop-2": "zone-a", "shop-3": "zone-b", "shop-4": "zone-b", "shop-5": "zone-c",
           "shop-6": "zone-c"}  # fmt: skip
READ = 1_000  # messages of every partition that the group has read
REPLICAS = 2
SETTLED = 3.0  # seconds after all topics are there, so that their leaders are the preferred ones

PROPERTIES = """\
process.roles={roles}
node.id={node}
broker.rack={rack}
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners={listeners}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
log.cleaner.dedupe.buffer.size=2097152
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=500
group.consumer.heartbeat.interval.ms=500
group.consumer.min.heartbeat.interval.ms=500
"""


@contextlib.contextmanager
def running_zones() -> Iterator[str]:
    """Start a broker in each zone, give their address once all serve clients, and stop them at the end."""
    java = find_java()
    start = [str(java), *JAVA_OPTIONS, "-cp", f"{kafka_jars(java)}/*"]
    controller, *ports = free_ports(1 + len(ZONES))
    with tempfile.TemporaryDirectory(prefix="evenlag-kafka-") as name, contextlib.ExitStack() as running:
        for node, (zone, port) in enumerate(zip(ZONES, ports, strict=True), start=1):
            folder = Path(name) / zone
            folder.mkdir()
            listeners = f"PLAINTEXT://127.0.0.1:{port}" + (f",CONTROLLER://127.0.0.1:{controller}" if node == 1 else "")
            config = folder / "server.properties"
            config.write_text(
                PROPERTIES.format(
                    roles="broker,controller" if node == 1 else "broker", node=node, rack=zone, controller=controller,
                    listeners=listeners, port=port, data=folder / "data",
                )
            )  # fmt: skip
            run([*start, "kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID, "--config", str(config)])
            output = running.enter_context((folder / "broker.log").open("ab"))
            process = subprocess.Popen(
                [*start, "kafka.Kafka", str(config)], stdout=output, stderr=subprocess.STDOUT, cwd=folder
            )
            running.callback(process.wait)
            running.callback(process.terminate)
        bootstrap = ",".join(f"127.0.0.1:{port}" for port in ports)
        _wait_for_all(bootstrap)
        yield bootstrap


def _wait_for_all(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200})
    end = time.monotonic() + START_LIMIT
    while len(admin.list_topics(timeout=START_LIMIT).brokers) < len(ZONES):
        if time.monotonic() > end:
            raise RuntimeError(f"Kafka {VERSION} did not start in all zones")
        time.sleep(0.5)


def record() -> Snapshot:
    """Bring the group about, and take the snapshot while all its members run."""
    rng = np.random.default_rng(SEED)
    lags = {topic: (6_000 * rng.lognormal(0.0, 1.0, count)).astype(int) for topic, count in PARTITIONS.items()}
    racks = {member: {"client.rack": zone} for member, zone in MEMBERS.items()}
    with running_zones() as bootstrap:
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        topics = [NewTopic(name, count, REPLICAS) for name, count in PARTITIONS.items()]
        for future in admin.create_topics(topics).values():
            future.result()
        time.sleep(SETTLED)
        for topic in PARTITIONS:
            produce(bootstrap, topic, (READ + lags[topic]).tolist())
        commit(bootstrap, "shop", {(topic, p): READ for topic, count in PARTITIONS.items() for p in range(count)})
        subscriptions = {member: [*PARTITIONS] for member in MEMBERS}
        with running_group(bootstrap, "shop", subscriptions, racks, group_protocol="consumer"):
            taken = snapshot(bootstrap, ["shop"])
    seen = {(row["topic"], row["partition"]): row["lag"] for row in taken.offsets}
    wanted = {(topic, p): lag for topic in PARTITIONS for p, lag in enumerate(lags[topic].tolist())}
    if seen != wanted or taken.warnings or {row["client_id"]: row["rack"] for row in taken.members} != MEMBERS:
        raise RuntimeError(f"the snapshot is not what was set up: {taken}")
    names = {row["consumer_id"]: row["client_id"] for row in taken.members}  # member ids, Kafka's own, are unreadable
    for row in (*taken.offsets, *taken.members):
        row["consumer_id"] = names[row["consumer_id"]]
    return taken


if __name__ == "__main__":
    write_snapshot(record(), OUT)
