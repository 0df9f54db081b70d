import importlib
import re
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import ResourceType

from evenlag.errors import SourceError
from evenlag.live import Snapshot, read_client_config, snapshot, write_snapshot
from evenlag.live.client import Cluster, Description, Failure
from evenlag.live.client import Member as MemberState
from evenlag.live.rows import Group, LogOffsets, offset_rows, partitions_of
from evenlag.pipeline.tables.contract import MEMBERS, OFFSETS
from evenlag.pipeline.tables.reading import read_table
from tests.broker import Broker
from tests.traffic import allow_describe, commit, create_topics, delete_records, delete_topic, produce, running_group

NOW = "2026-01-02T03:04:05.678Z"
PROTOCOLS = {
    "range": {"partition_assignment_strategy": "range"},
    "cooperative-sticky": {"partition_assignment_strategy": "cooperative-sticky"},
    "kip-848": {"group_protocol": "consumer"},
}


def by_partition(taken: Snapshot, column: str) -> dict[tuple[object, object], object]:
    return {(row["topic"], row["partition"]): row[column] for row in taken.offsets}


def sasl(broker: Broker) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": broker.user,
        "sasl.password": broker.password,
    }


@pytest.mark.broker
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_partition_and_member_of_a_running_group(broker: Broker, protocol: str) -> None:
    skewed, even, group = f"skewed-{protocol}", f"even-{protocol}", f"running-{protocol}"
    produced = {skewed: [900, 0, 40, 7, 1, 333], even: [50, 50, 50]}
    committed = {(skewed, 0): 100, (skewed, 2): 40, (skewed, 3): 0, (even, 1): 49}
    create_topics(broker.bootstrap, {topic: len(counts) for topic, counts in produced.items()})
    for topic, counts in produced.items():
        produce(broker.bootstrap, topic, counts)
    commit(broker.bootstrap, group, committed)
    subscriptions = {f"app-{i}": [skewed, even] for i in range(4)}
    with running_group(broker.bootstrap, group, subscriptions, **PROTOCOLS[protocol]) as members:
        before = snapshot(broker.bootstrap, [group])
        members["app-2"].commit({(even, 0): 13})
        after = snapshot(broker.bootstrap, [group])

    ends = {(topic, p): count for topic, counts in produced.items() for p, count in enumerate(counts)}
    assert by_partition(before, "log_end_offset") == ends
    assert set(by_partition(before, "log_start_offset").values()) == {0}
    assert by_partition(before, "current_offset") == {each: committed.get(each) for each in ends}
    lags = {each: ends[each] - committed[each] if each in committed else None for each in ends}
    assert by_partition(before, "lag") == lags
    assert by_partition(after, "lag") == lags | {(even, 0): 50 - 13}
    assert before.warnings == after.warnings == []

    assert sorted(str(row["client_id"]) for row in before.members) == sorted(subscriptions)
    clients = {row["consumer_id"]: row["client_id"] for row in before.members}
    assert len(clients) == 4
    assert all(clients[row["consumer_id"]] == row["client_id"] for row in before.offsets)
    assert all(str(row["host"]).endswith("127.0.0.1") for row in before.offsets + before.members)
    assert len({row["snapshot_ts"] for row in before.offsets + before.members}) == 1
    assert all(list(row) == [column.name for column in OFFSETS] for row in before.offsets)
    assert all(list(row) == [column.name for column in MEMBERS] for row in before.members)


@pytest.mark.broker
@pytest.mark.parametrize("protocol", ["range", "kip-848"])
def test_a_group_that_is_rebalancing_is_waited_for(broker: Broker, protocol: str) -> None:
    topic, group = f"moving-{protocol}", f"moving-{protocol}"
    create_topics(broker.bootstrap, {topic: 6})
    with running_group(broker.bootstrap, group, {"a": [topic], "b": [topic]}, **PROTOCOLS[protocol]) as members:
        members["b"].stop()
        taken = [snapshot(broker.bootstrap, [group], timeout=20) for _ in range(5)]
    assert [each.warnings for each in taken] == [[]] * 5
    for each in taken:
        owners = set(by_partition(each, "consumer_id").values())
        assert None not in owners
        assert owners == {row["consumer_id"] for row in each.members}


@pytest.mark.broker
def test_members_without_a_partition(broker: Broker) -> None:
    create_topics(broker.bootstrap, {"narrow": 2})
    with running_group(broker.bootstrap, "idle", {f"app-{i}": ["narrow"] for i in range(3)}):
        taken = snapshot(broker.bootstrap, ["idle"])
    assert len(taken.members) == 3
    assert len({row["consumer_id"] for row in taken.offsets}) == 2


@pytest.mark.broker
@pytest.mark.parametrize("protocol", ["range", "kip-848"])
def test_static_membership_shows(broker: Broker, protocol: str) -> None:
    create_topics(broker.bootstrap, {f"static-{protocol}": 1})
    config = PROTOCOLS[protocol] | {"group_instance_id": "app-7"}
    with running_group(broker.bootstrap, f"static-{protocol}", {"app": [f"static-{protocol}"]}, **config):
        taken = snapshot(broker.bootstrap, [f"static-{protocol}"])
    assert [row["group_instance_id"] for row in taken.members] == ["app-7"]
    assert taken.warnings == []
    if protocol == "kip-848":  # the group waits for its static member, and is not stable meanwhile
        (warning,) = snapshot(broker.bootstrap, [f"static-{protocol}"], timeout=1).warnings
        assert "group 'static-kip-848' is still rebalancing (UNKNOWN)" in warning


@pytest.mark.broker
def test_members_with_different_subscriptions(broker: Broker) -> None:
    create_topics(broker.bootstrap, {"left": 4, "right": 3})
    with running_group(broker.bootstrap, "mixed", {"l": ["left"], "r": ["right"], "both": ["left", "right"]}):
        taken = snapshot(broker.bootstrap, ["mixed"])
    clients = by_partition(taken, "client_id")
    assert len(clients) == 7
    assert {client for (topic, _), client in clients.items() if topic == "left"} <= {"l", "both"}
    assert {client for (topic, _), client in clients.items() if topic == "right"} <= {"r", "both"}


@pytest.mark.broker
def test_a_group_without_members_and_a_topic_that_is_gone(broker: Broker) -> None:
    create_topics(broker.bootstrap, {"kept": 2, "deleted": 3})
    produce(broker.bootstrap, "kept", [10, 20])
    delete_records(broker.bootstrap, {("kept", 0): 4})
    commit(broker.bootstrap, "resting", {("kept", 1): 5, ("deleted", 2): 0})
    delete_topic(broker.bootstrap, "deleted")

    taken = snapshot(broker.bootstrap, ["resting"])

    assert taken.members == []
    assert by_partition(taken, "lag") == {("kept", 0): None, ("kept", 1): 15}
    assert by_partition(taken, "log_start_offset") == {("kept", 0): 4, ("kept", 1): 0}
    assert set(by_partition(taken, "consumer_id").values()) == {None}
    # the group's coordinator drops the commits of a deleted topic some time later
    assert taken.warnings in ([], ["group 'resting', topic deleted: no more partitions 2; left out"])


@pytest.mark.broker
def test_all_groups_come_when_none_is_named(broker: Broker) -> None:
    create_topics(broker.bootstrap, {"shared": 1})
    for group in ("reader-b", "reader-a"):
        commit(broker.bootstrap, group, {("shared", 0): 0})
    taken = snapshot(broker.bootstrap, timeout=4)
    assert not [warning for warning in taken.warnings if "reader-" in warning]
    seen = [row["group"] for row in taken.offsets]
    assert seen == sorted(map(str, seen))
    assert {"reader-a", "reader-b"} <= set(seen)


@pytest.mark.broker
def test_an_unknown_group_is_named_with_those_that_are_there(broker: Broker) -> None:
    create_topics(broker.bootstrap, {"present": 1})
    commit(broker.bootstrap, "a-present-group", {("present", 0): 0})
    with pytest.raises(SourceError, match=r"group 'absent': not found at 127.*; the groups there are a-present-group"):
        snapshot(broker.bootstrap, ["a-present-group", "absent"])


@pytest.mark.broker
def test_what_a_user_may_not_see(broker: Broker) -> None:
    create_topics(broker.bootstrap, {"secret": 2})
    produce(broker.bootstrap, "secret", [3, 3])
    with running_group(broker.bootstrap, "guarded", {"app": ["secret"]}):
        taken = snapshot(broker.sasl_bootstrap, config=sasl(broker))
        assert (taken.offsets, taken.members) == ([], [])
        assert taken.warnings == [f"the user sees no consumer group at {broker.sasl_bootstrap}"]
        with pytest.raises(SourceError, match=r"group 'guarded' at .*the ACL Describe on the group"):
            snapshot(broker.sasl_bootstrap, ["guarded"], config=sasl(broker))

        allow_describe(broker.bootstrap, broker.user, ResourceType.GROUP, "guarded")
        taken = snapshot(broker.sasl_bootstrap, ["guarded"], config=sasl(broker))
        assert by_partition(taken, "log_end_offset") == {("secret", 0): None, ("secret", 1): None}
        (warning,) = taken.warnings
        assert "topic secret: offsets of partitions 0, 1 left null" in warning
        assert "the ACL Describe on the topic" in warning

        allow_describe(broker.bootstrap, broker.user, ResourceType.TOPIC, "secret")
        taken = snapshot(broker.sasl_bootstrap, ["guarded"], config=sasl(broker))
        assert by_partition(taken, "log_end_offset") == {("secret", 0): 3, ("secret", 1): 3}
        assert taken.warnings == []


@pytest.mark.broker
def test_a_wrong_password_or_protocol_is_told(broker: Broker) -> None:
    with pytest.raises(SourceError, match=r"no Kafka broker answers .*Invalid username or password"):
        snapshot(broker.sasl_bootstrap, timeout=2, config=sasl(broker) | {"sasl.password": "wrong"})
    with pytest.raises(SourceError, match=r"no Kafka broker answers .*check .* security\.protocol"):
        snapshot(broker.sasl_bootstrap, timeout=2)


@pytest.mark.broker
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_snapshot_reads_back_as_it_was(broker: Broker, tmp_path: Path, suffix: str) -> None:
    create_topics(broker.bootstrap, {f"written-{suffix}": 3})
    with running_group(broker.bootstrap, f"written-{suffix}", {"app": [f"written-{suffix}"]}):
        taken = snapshot(broker.bootstrap, [f"written-{suffix}"])
    offsets, members = write_snapshot(taken, tmp_path / "new" / "folder", suffix)
    assert list(read_table(offsets, "offsets")) == taken.offsets
    assert list(read_table(members, "members")) == taken.members


def test_nobody_answers() -> None:
    with pytest.raises(SourceError, match=r"no Kafka broker answers at 127\.0\.0\.1:1 within 0\.5 s \(.*refused\)"):
        snapshot("127.0.0.1:1", timeout=0.5)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((" ",), {}, "bootstrap address is empty"),
        (("127.0.0.1:1", [""]), {}, "group without a name"),
        (("127.0.0.1:1",), {"timeout": 0}, "timeout of 0 s"),
        (("127.0.0.1:1",), {"timeout": float("nan")}, "timeout of nan s"),
        (("127.0.0.1:1",), {"config": {"sasl.jaas.config": "x"}}, "librdkafka's names"),
        (("127.0.0.1:1",), {"config": {"no.such": "x"}}, 'No such configuration property: "no.such"'),
    ],
)
def test_arguments_that_make_no_sense(arguments: tuple[Any, ...], options: Mapping[str, Any], message: str) -> None:
    with pytest.raises(SourceError, match=re.escape(message)):
        snapshot(*arguments, **options)


def test_without_the_kafka_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(SourceError, match=r"pip install 'evenlag\[kafka\]'"):
        snapshot("127.0.0.1:1")


class ScriptedCluster(Cluster):
    """Answers with the next of some descriptions of one group at each look; it has no topics."""

    def __init__(self, *descriptions: Description | Failure, commits: Failure | None = None):
        self.descriptions = list(descriptions)
        self.commits = commits

    def groups(self) -> tuple[list[str], list[Failure]]:
        return ["g"], [Failure("_TRANSPORT", "broker 2 is down")]

    def describe(self, groups: Collection[str]) -> dict[str, Description | Failure]:
        return dict.fromkeys(groups, self.descriptions.pop(0) if len(self.descriptions) > 1 else self.descriptions[0])

    def committed(self, groups: Iterable[str]) -> dict[str, dict[tuple[str, int], int | Failure] | Failure]:
        return {group: self.commits or {} for group in groups}


def scripted(monkeypatch: pytest.MonkeyPatch, *descriptions: Description | Failure, **options: Any) -> Snapshot:
    module = importlib.import_module("evenlag.live.snapshot")
    cluster = ScriptedCluster(*descriptions, **options)
    monkeypatch.setattr(module, "Cluster", lambda *_: cluster)
    monkeypatch.setattr(module, "SETTLE_PAUSE", 0.01)
    taken = snapshot("somewhere", timeout=0.2)
    assert taken.warnings[0] == "groups of a broker may be missing: broker 2 is down"
    return taken


def test_passing_states_are_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    member = MemberState("m1", "app", "/10.0.0.1", None, ())
    taken = scripted(
        monkeypatch,
        Failure("NOT_COORDINATOR", "moved"),
        Description("UNKNOWN"),
        Description("PREPARING_REBALANCING"),
        Description("STABLE", (member,)),
    )
    assert [row["consumer_id"] for row in taken.members] == ["m1"]
    assert len(taken.warnings) == 1


def test_a_group_that_never_settles_is_taken_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = scripted(monkeypatch, Description("COMPLETING_REBALANCING", (MemberState("m1", "app", None, None, ()),)))
    assert [row["consumer_id"] for row in taken.members] == ["m1"]
    assert "group 'g' is still rebalancing (COMPLETING_REBALANCING)" in taken.warnings[1]


def test_groups_that_fail_do_not_take_the_others_along(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = Failure("GROUP_AUTHORIZATION_FAILED", "Group authorization failed")
    assert "group 'g' is left out: Group authorization failed (the user" in scripted(monkeypatch, failure).warnings[1]
    taken = scripted(monkeypatch, Description("EMPTY"), commits=failure)
    assert "group 'g' is left out: Group authorization failed" in taken.warnings[1]
    assert len(scripted(monkeypatch, Description("DEAD")).warnings) == 1
    taken = scripted(monkeypatch, Description("EMPTY"))
    assert taken.warnings[1] == "neither members nor committed offsets that this user may see: groups g"


def test_partitions_on_the_way_to_a_member_count_as_the_groups() -> None:
    member = MemberState("m", None, None, None, partitions=(("a", 0),), target=(("a", 0), ("b", 1)))
    group = Group("g", Description("UNKNOWN", (member,)), {("c", 9): 4})
    partitions, warnings = partitions_of(group, {"a": [0, 1], "b": [0, 1], "c": [0]})
    assert partitions == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("c", 0)]
    assert warnings == ["group 'g', topic c: no more partitions 9; left out"]


def test_offsets_that_a_broker_does_not_tell_stay_null() -> None:
    group = Group("g", Description("EMPTY"), {("a", 0): 9, ("a", 1): Failure("X", "no commit"), ("a", 2): 1})
    lost = Failure("NOT_LEADER", "no leader")
    log: LogOffsets = {("a", 0): (0, 7), ("a", 1): (0, 7), ("a", 2): (lost, lost)}
    rows, warnings = offset_rows(NOW, group, sorted(log), log)
    assert [row["lag"] for row in rows] == [0, None, None]  # a commit beyond the end is no negative lag
    assert [row["log_end_offset"] for row in rows] == [7, 7, None]
    assert warnings == [
        "group 'g', topic a: offsets of partitions 1 left null: no commit",
        "group 'g', topic a: offsets of partitions 2 left null: no leader",
    ]


def test_client_config(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "# comment\n! comment\n\nsecurity.protocol=SASL_SSL\n sasl.password = a=b#c \nssl.ca.location: /ca\n"
    )
    assert read_client_config(path) == {
        "security.protocol": "SASL_SSL",
        "sasl.password": "a=b#c",
        "ssl.ca.location": "/ca",
    }
    path.write_text("a=1\nsecret\n")
    with pytest.raises(SourceError, match=r"client\.properties, line 2: is no property") as caught:
        read_client_config(path)
    assert "secret" not in str(caught.value)
    with pytest.raises(SourceError, match=r"absent: cannot be read: No such file"):
        read_client_config(tmp_path / "absent")
