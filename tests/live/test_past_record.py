"""Log ends of the past on a real broker: equal to what was produced, at every time that the log still covers."""

import json
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from evenlag.live import snapshot_since
from evenlag.tables.loading import read_table
from tests.support.broker import Broker
from tests.support.command import evenlag, refused
from tests.support.past_logs import HOUR, produce_at, seconds_of, told, truth
from tests.support.snapshots import by_partition
from tests.support.traffic import QUIET, commit, create_topics, delete_records, running_group

Stamps = dict[tuple[str, int], list[int]]


def stamps_read(bootstrap: str, ends: Mapping[tuple[str, int], int]) -> Stamps:
    """Return the timestamps of all messages, as a consumer gets them."""
    found: Stamps = defaultdict(list)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False, **QUIET})
    consumer.assign([TopicPartition(*key, OFFSET_BEGINNING) for key, end in ends.items() if end])
    while sum(map(len, found.values())) < sum(ends.values()):
        for message in consumer.consume(1_000, 5):
            assert message.error() is None
            found[message.topic(), message.partition()].append(message.timestamp()[1])
    consumer.close()
    return {key: found[key] for key in ends}


@pytest.mark.broker
def test_log_ends_of_three_days_equal_what_was_produced(broker: Broker, tmp_path: Path) -> None:
    topic, group, now = "past-days", "past-days", int(time.time() * 1_000)
    create_topics(broker.bootstrap, {topic: 4})
    hours = [now - hour * HOUR for hour in range(72, 0, -1)]
    steady = [at + n * HOUR // 20 for at in hours for n in range(20)]
    noon = [at + n * HOUR // 90 for at in hours for n in range(90) if (at // HOUR) % 24 == 12]
    early = [now - 60 * HOUR + n for n in range(50)]
    produce_at(broker.bootstrap, topic, {0: steady, 1: noon, 2: early})
    commit(broker.bootstrap, group, {(topic, p): 1 for p in range(3)})
    words = ("snapshot", "--bootstrap-server", broker.bootstrap, "--group", group, "--since", "3d", "--append")
    with running_group(broker.bootstrap, group, {"a": [topic], "b": [topic]}, partition_assignment_strategy="range"):
        report = json.loads(evenlag(*words, "--every", "20m", "--out", tmp_path, "--json").stdout)
    past = report["past"]
    assert past["times"] in (216, 217)
    assert past["rows"] == 4 * past["times"]
    assert len(report["files"]) == 2 + past["times"]
    assert report["requests"]["ListOffsets"] <= 2 + past["times"] + past["times"] / 10 + 1
    assert report["warnings"] == []
    made = {(topic, 0): steady, (topic, 1): noon, (topic, 2): early, (topic, 3): []}
    assert stamps_read(broker.bootstrap, {key: len(each) for key, each in made.items()}) == made
    for key, millis, end in told(tmp_path):
        assert end == truth(made[key], millis), (key, millis)

    tables = (tmp_path / "offsets", "--members", tmp_path / "members")
    sized = json.loads(evenlag("size", *tables, "--drain", "1h", "--capacity", 2, "--json").stdout)
    last = max(millis for _, millis, _ in told(tmp_path))
    taken = next(seconds_of(row) for row in read_table(tmp_path / "members", "members"))
    came = sum(len(each) - truth(each, last) for each in made.values())
    assert sized["incoming"] == pytest.approx(came / (taken - last / 1_000), rel=1e-6)
    planned = json.loads(evenlag("plan", *tables, "--json").stdout)
    assert any(note.startswith("horizon auto: planned for the forecast until") for note in planned["warnings"])
    assert any("by the daily course of rates" in note for note in planned["warnings"])
    assert planned["scenario_spreads"]
    refused(evenlag("replay", *tables, "--capacity", 2), "log ends of the past tell what came in")
    again = json.loads(evenlag(*words, "--every", "20m", "--out", tmp_path, "--json").stdout)
    assert again["past"]["rows"] <= 4  # at most one more time has passed
    assert again["past"]["already"] >= again["past"]["times"] - 1


@pytest.mark.broker
def test_times_before_deleted_records_are_left_out_by_name(broker: Broker, tmp_path: Path) -> None:
    topic, group, now = "past-cut", "past-cut", int(time.time() * 1_000)
    create_topics(broker.bootstrap, {topic: 3})
    made = {(topic, p): [now - 48 * HOUR + n * HOUR // (p + 1) for n in range(40 * (p + 1))] for p in range(3)}
    produce_at(broker.bootstrap, topic, {p: made[topic, p] for p in range(3)})
    commit(broker.bootstrap, group, {(topic, p): 1 for p in range(3)})
    starts = {(topic, 0): 15, (topic, 1): 80}
    delete_records(broker.bootstrap, starts)
    found = snapshot_since(broker.bootstrap, tmp_path, [group], since="2d", every="30m", append=True)
    assert by_partition(found.taken, "log_start_offset") == {(topic, 2): 0} | starts
    seen: defaultdict[tuple[str, int], int] = defaultdict(int)
    for key, millis, end in told(tmp_path):
        assert end == truth(made[key], millis)
        assert end > starts.get(key, -1)
        seen[key] += 1
    assert seen[topic, 2] == found.times
    assert 0 < seen[topic, 0] < found.times
    assert seen[topic, 1] == 0  # all records are deleted
    [warning] = found.taken.warnings
    assert warning.startswith(f"topic {topic}, partitions 0, 1: no log end at 20")
    assert warning.endswith("and before, as the log begins later (retention, or deleted records)")


@pytest.mark.broker
def test_log_append_time_is_exact_and_a_future_message_is_named(broker: Broker, tmp_path: Path) -> None:
    topic, ahead, group = "past-append", "past-ahead", "past-append"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
    appended = NewTopic(topic, 2, 1, config={"message.timestamp.type": "LogAppendTime"})
    admin.create_topics([appended])[topic].result()
    create_topics(broker.bootstrap, {ahead: 1})
    now = int(time.time() * 1_000)
    produce_at(broker.bootstrap, ahead, {0: [now - 30_000, now + 600_000, now - 1_000]})
    for count in (5, 1, 30, 2):  # the broker's clock replaces these timestamps
        produce_at(broker.bootstrap, topic, {p: [now - 9 * HOUR] * (count + p) for p in range(2)})
        time.sleep(1.3)
    commit(broker.bootstrap, group, {(topic, 0): 1, (topic, 1): 1, (ahead, 0): 1})
    time.sleep(1.5)
    found = snapshot_since(broker.bootstrap, tmp_path, [group], since="60s", every="1s", append=True)
    stamps = stamps_read(broker.bootstrap, {(topic, 0): 38, (topic, 1): 42})
    rows = list(told(tmp_path))
    for key, millis, end in rows:
        assert end == (truth(stamps[key], millis) if key[0] == topic else 0)
    ends = {end for key, _, end in rows if key == (topic, 0)}
    assert ends >= {0, 5, 6, 36, 38}
    assert len([key for key, *_ in rows if key[0] == topic]) == 2 * found.times
    [warning] = found.taken.warnings
    assert f"topic {ahead}, partitions 0: no log end from a message on whose timestamp lies in the future" in warning


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--since", "2100-01-01"), "is not in the past"),
        (("--since", "5m", "--every", "15m"), "the step is longer than the time to go back"),
        (("--since", "90d", "--every", "1m"), "at most 10,000 times can be asked for"),
    ],
)
def test_times_are_checked_before_a_broker_is_asked(words: tuple[str, ...], reason: str, tmp_path: Path) -> None:
    done: Any = evenlag("snapshot", "--bootstrap-server", "127.0.0.1:1", "--out", tmp_path, *words)
    refused(done, reason)


def test_every_needs_since(tmp_path: Path) -> None:
    done = evenlag("snapshot", "--bootstrap-server", "127.0.0.1:1", "--out", tmp_path, "--every", "1h")
    assert (done.returncode, "--every needs --since" in done.stderr) == (2, True)
