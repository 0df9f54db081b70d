import pytest

from evenlag.live.follow import consumer_loop, group_commits, holdings, plan_topics
from tests.support.plain_kafka import PARTITIONS, Group, Kafka


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    kafka = Kafka(PARTITIONS, 5)
    for module in (consumer_loop, holdings, group_commits, plan_topics):
        monkeypatch.setattr(module, "monotonic", kafka.clock)
    return kafka


@pytest.fixture
def group(kafka: Kafka) -> Group:
    return Group(kafka)
