"""Log ends of the past from several brokers, and of topics that the user may not describe."""

import time
from pathlib import Path

import pytest
from confluent_kafka.admin import ResourceType

from evenlag.live import snapshot_since
from tests.support.broker import Broker, running_cluster, sasl
from tests.support.past_logs import HOUR, produce_at, told, truth
from tests.support.snapshots import by_partition
from tests.support.traffic import allow_describe, commit, create_topics, running_group

pytestmark = pytest.mark.broker


def test_each_broker_is_asked_once_for_each_time(tmp_path: Path) -> None:
    topics, now = ("past-one", "past-two"), int(time.time() * 1_000)
    with running_cluster(("a", "b")) as bootstrap:
        create_topics(bootstrap, {topic: [[1], [2], [2], [1]] for topic in topics})
        made = {
            (topic, p): [now - 10 * HOUR + n * HOUR // (p + t + 1) for n in range(9 * (p + t + 1))]
            for t, topic in enumerate(topics)
            for p in range(4)
        }
        for topic in topics:
            produce_at(bootstrap, topic, {p: made[topic, p] for p in range(4)})
        commit(bootstrap, "past-brokers", dict.fromkeys(made, 1))
        found = snapshot_since(bootstrap, tmp_path, ["past-brokers"], since="10h", every="30m", append=True)
    assert found.taken.warnings == []
    assert found.rows == len(made) * found.times
    asked = 2 + found.times + -(-found.times // 10)  # log starts and ends of now, each time, starts once in ten times
    assert found.taken.requests["ListOffsets"] <= 2 * asked
    for key, millis, end in told(tmp_path):
        assert end == truth(made[key], millis), (key, millis)


def test_topics_that_the_user_may_not_describe_have_no_past(broker: Broker, tmp_path: Path) -> None:
    seen, hidden, group, now = "past-seen", "past-hidden", "past-guarded", int(time.time() * 1_000)
    create_topics(broker.bootstrap, {seen: 2, hidden: 2})
    stamps = [now - 5 * HOUR + n * HOUR // 4 for n in range(20)]
    for topic in (seen, hidden):
        produce_at(broker.bootstrap, topic, {0: stamps, 1: stamps[:3]})
    commit(broker.bootstrap, group, {(topic, p): 1 for topic in (seen, hidden) for p in range(2)})
    allow_describe(broker.bootstrap, broker.user, ResourceType.GROUP, group)
    how = {"since": "5h", "every": "1h", "append": True, "config": sasl(broker)}
    with running_group(broker.bootstrap, group, {"a": [seen, hidden]}):  # its subscription names both topics
        found = snapshot_since(broker.sasl_bootstrap, tmp_path / "none", [group], **how)  # type: ignore[arg-type]
        assert (found.rows, list(told(tmp_path / "none"))) == (0, [])
        allow_describe(broker.bootstrap, broker.user, ResourceType.TOPIC, seen)
        found = snapshot_since(broker.sasl_bootstrap, tmp_path / "one", [group], **how)  # type: ignore[arg-type]
    rows = list(told(tmp_path / "one"))
    assert len(rows) == found.rows == 2 * found.times
    for key, millis, end in rows:
        assert key[0] == seen
        assert end == truth(stamps if key[1] == 0 else stamps[:3], millis)
    assert by_partition(found.taken, "log_end_offset") == {
        (seen, 0): 20,
        (seen, 1): 3,
        (hidden, 0): None,
        (hidden, 1): None,
    }
    [warning] = found.taken.warnings
    assert f"topic {hidden}: offsets of partitions 0, 1 left null" in warning
    assert "the ACL Describe on the topic" in warning
