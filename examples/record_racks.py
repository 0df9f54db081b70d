"""Record examples/racks/: a consumer group in three zones on a real Kafka of three brokers, one in each zone.

Run it from a checkout in which `make check` has run: `python examples/record_racks.py`. It starts the brokers itself
(see tests/support/broker.py), takes about a minute and leaves nothing behind but the files.
"""

import sys
import time
from pathlib import Path

import numpy as np
from confluent_kafka.admin import AdminClient, NewTopic

from evenlag.live import Snapshot, snapshot, write_snapshot

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the broker of the tests is no part of the package

from tests.support.broker import running_cluster  # noqa: E402
from tests.support.traffic import commit, produce, running_group  # noqa: E402

OUT = ROOT / "examples" / "racks"
SEED = 392  # of KIP-392, by which consumers read from the replica in their rack
ZONES = ("zone-a", "zone-b", "zone-c")
PARTITIONS = {"orders": 24, "payments": 12}
MEMBERS = {"shop-1": "zone-a", "shop-2": "zone-a", "shop-3": "zone-b", "shop-4": "zone-b", "shop-5": "zone-c",
           "shop-6": "zone-c"}  # fmt: skip
READ = 1_000  # messages of every partition that the group has read
REPLICAS = 2
SETTLED = 3.0  # seconds after all topics are there, so that their leaders are the preferred ones


def record() -> Snapshot:
    """Bring the group about, and take the snapshot while all its members run."""
    rng = np.random.default_rng(SEED)
    lags = {topic: (6_000 * rng.lognormal(0.0, 1.0, count)).astype(int) for topic, count in PARTITIONS.items()}
    racks = {member: {"client.rack": zone} for member, zone in MEMBERS.items()}
    with running_cluster(ZONES) as bootstrap:
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
