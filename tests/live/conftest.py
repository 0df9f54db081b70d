import pytest

from evenlag.live import time_source
from tests.support.plain_kafka import PARTITIONS, Group, Kafka


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    kafka = Kafka(PARTITIONS, 5)
    monkeypatch.setattr(time_source, "now", kafka.clock)
    return kafka


@pytest.fixture
def group(kafka: Kafka) -> Group:
    return Group(kafka)
