"""The assignor on brokers in several racks: consumers that name their rack read locally."""

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from tests.support.broker import running_cluster
from tests.support.members import members, wait_until
from tests.support.traffic import create_topics, produce

RACKS = ["zone-a", "zone-b", "zone-c"]
REPLICAS = [[1, 2], [2, 1], [1, 2], [1, 2], [2, 3], [3, 2], [3, 1], [1, 3], [2, 1], [3, 1], [2, 3], [3, 2]]  # brokers
BACKLOG = [900, 10, 400, 300, 250, 200, 70, 120, 50, 60, 330, 90]


@pytest.fixture(scope="module")
def brokers() -> Iterator[str]:
    with running_cluster(RACKS) as bootstrap:
        yield bootstrap


def racks_of(bootstrap: str, topic: str) -> tuple[dict[int, str], dict[int, tuple[int, list[int]]]]:
    """Return, from Kafka's own client, the rack of each broker, and each partition's leader and replicas."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    nodes = admin.describe_cluster().result().nodes
    partitions = admin.list_topics(topic, timeout=10).topics[topic].partitions
    return {node.id: node.rack for node in nodes}, {p: (each.leader, each.replicas) for p, each in partitions.items()}


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.parametrize("cooperative", [True, False])
def test_members_that_name_their_racks_read_from_local_replicas(brokers: str, cooperative: bool) -> None:
    topic = group = f"local-{cooperative}"
    create_topics(brokers, {topic: REPLICAS})
    produce(brokers, topic, BACKLOG)
    rack_of, placed = racks_of(brokers, topic)
    assert sorted(rack_of.values()) == RACKS
    options = {"first": ["crossings"], "stickiness": 0}
    with members(brokers, group, [topic], cooperative=cooperative, options=options) as several:
        for name, rack in zip("abc", RACKS, strict=True):
            several.start(name, rack=rack)
        several.wait_until_settled(len(REPLICAS))
        decision = several.decisions()[-1]
        assert decision["solved"], decision["line"]
        assert "; 0 partitions read across racks;" in decision["line"]
        for name, rack in zip("abc", RACKS, strict=True):
            held = several[name].holds()
            assert len(held) == 4
            assert all(rack in {rack_of[node] for node in placed[p][1]} for _, p in held), several.story()

            def local(name: str = name, rack: str = rack, held: set[tuple[str, int]] = held) -> bool:
                """Return True if each partition is read from a broker in the member's rack, the leader or a replica."""
                replica_of = [{}, *(event["of"] for event in several[name].of("replicas"))][-1]
                return all(rack_of[replica_of.get(str(p), placed[p][0])] == rack for _, p in held)

            wait_until(local, lambda: f"{several.story()}")
