"""Snapshots of consumer groups on a real broker: partitions, offsets, members and their subscriptions."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from evenlag.errors import SourceError
from evenlag.heuristics.weighted_sticky import ASSIGNOR as WEIGHTED
from evenlag.live import snapshot, write_snapshot
from evenlag.live.group_state import Description, Failure
from evenlag.tables.columns import MEMBERS, OFFSETS
from evenlag.tables.loading import read_table
from tests.support.assignors import told_by_members
from tests.support.broker import Broker, running_cluster
from tests.support.command import evenlag
from tests.support.snapshots import by_partition
from tests.support.traffic import (
    commit,
    create_topics,
    delete_records,
    delete_topic,
    produce,
    running_group,
)

PROTOCOLS = {
    "range": {"partition_assignment_strategy": "range"},
    "cooperative-sticky": {"partition_assignment_strategy": "cooperative-sticky"},
    "kip-848": {"group_protocol": "consumer"},
}


@pytest.mark.broker
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_snapshot_has_every_partition_and_member_of_a_running_group(broker: Broker, protocol: str) -> None:
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
def test_a_snapshot_waits_for_a_rebalancing_group(broker: Broker, protocol: str) -> None:
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
def test_members_without_a_partition_are_included(broker: Broker) -> None:
    create_topics(broker.bootstrap, {"narrow": 2})
    with running_group(broker.bootstrap, "idle", {f"app-{i}": ["narrow"] for i in range(3)}):
        taken = snapshot(broker.bootstrap, ["idle"])
    assert len(taken.members) == 3
    assert len({row["consumer_id"] for row in taken.offsets}) == 2


@pytest.mark.broker
@pytest.mark.parametrize("protocol", ["range", "kip-848"])
def test_static_members_have_their_instance_id(broker: Broker, protocol: str) -> None:
    create_topics(broker.bootstrap, {f"static-{protocol}": 1})
    config = PROTOCOLS[protocol] | {"group_instance_id": "app-7"}
    with running_group(broker.bootstrap, f"static-{protocol}", {"app": [f"static-{protocol}"]}, **config):
        taken = snapshot(broker.bootstrap, [f"static-{protocol}"])
    assert [row["group_instance_id"] for row in taken.members] == ["app-7"]
    assert taken.warnings == []
    if protocol == "kip-848":  # the group waits for its static member, and is not stable meanwhile
        left, warning = sorted(snapshot(broker.bootstrap, [f"static-{protocol}"], timeout=1).warnings, reverse=True)
        assert left.startswith("stopped members of group 'static-kip-848' are left out: app-7")
        assert "group 'static-kip-848' is still rebalancing (Reconciling)" in warning


@pytest.mark.broker
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_plan_gives_each_member_only_the_topics_that_it_subscribed_to(
    broker: Broker, tmp_path: Path, protocol: str
) -> None:
    orders, refunds, audit = (f"{name}-{protocol}" for name in ("orders", "refunds", "audit"))
    create_topics(broker.bootstrap, {orders: 6, refunds: 3, audit: 1, f"unread-{protocol}": 4})
    for topic, counts in ((orders, [500, 400, 300, 200, 100, 90]), (refunds, [9, 8, 7]), (f"unread-{protocol}", [99])):
        produce(broker.bootstrap, topic, counts)
    commit(broker.bootstrap, f"mixed-{protocol}", {(f"unread-{protocol}", 0): 1})  # of a subscription that has ended
    pattern = f"^(refunds|audit)-{protocol}$"
    subscriptions = {"orders": [orders], "both": [orders, refunds], "audit": [audit], "pattern": [pattern]}
    expected = {"orders": [orders], "both": [orders, refunds], "audit": [audit], "pattern": [audit, refunds]}
    own = {"both": {"group.instance.id": "static-1"}, "orders": {"client.rack": "rack-7"}}
    with running_group(broker.bootstrap, f"mixed-{protocol}", subscriptions, own, **PROTOCOLS[protocol]):
        taken = snapshot(broker.bootstrap, [f"mixed-{protocol}"])

    assert taken.warnings == []
    by_client = {str(row["client_id"]): row for row in taken.members}
    assert {client: row["topics"] for client, row in by_client.items()} == expected
    assert [client for client, row in by_client.items() if row["group_instance_id"] == "static-1"] == ["both"]
    assert [client for client, row in by_client.items() if row["rack"] == "rack-7"] == ["orders"]
    assert {row["assignor"] for row in taken.members} == {"uniform" if protocol == "kip-848" else protocol}
    assert {row["protocol"] for row in taken.members} == {"consumer" if protocol == "kip-848" else "classic"}
    if protocol == "kip-848":
        assert {row["topics_regex"] for row in taken.members} == {None, f"({pattern})"}  # librdkafka adds them
        (epoch,) = {row["group_epoch"] for row in taken.members}
        assert isinstance(epoch, int)
        assert {row["generation"] for row in taken.members} == {row["assignment_epoch"] for row in taken.members}
    assert set(map(str, by_partition(taken, "replica_racks").values())) == {str([broker.rack])}

    files = [str(path) for path in write_snapshot(taken, tmp_path)]
    words = ("plan", files[0], "--members", files[1], "--auto-offset-reset", "earliest", "--method", "auto", "--json")
    plan = json.loads(evenlag(*words).stdout)
    topics_of = {str(row["consumer_id"]): row["topics"] for row in taken.members}
    planned = {member: {topic for topic, _ in mine} for member, mine in plan["assignment"].items()}
    assert all(topics <= set(map(str, topics_of[member])) for member, topics in planned.items())
    assert sum(map(len, plan["assignment"].values())) == 10
    assert {topic for topic, _ in plan["unassigned"]} == {f"unread-{protocol}"}
    audit = evenlag(
        "audit", files[0], "--members", files[1], "--auto-offset-reset", "earliest", "--group-time-limit", 1
    )
    assert f"today: {by_client['orders']['assignor']}, " in audit.stdout


@pytest.mark.broker
def test_a_group_without_members_whose_topic_was_deleted(broker: Broker) -> None:
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
    assert taken.warnings in ([], ["group 'resting', topic deleted: partitions 2 no longer exist; left out"])


@pytest.mark.broker
def test_all_groups_are_included_when_none_is_named(broker: Broker) -> None:
    create_topics(broker.bootstrap, {"shared": 1})
    for group in ("reader-b", "reader-a"):
        commit(broker.bootstrap, group, {("shared", 0): 0})
    taken = snapshot(broker.bootstrap, timeout=20)
    assert not [warning for warning in taken.warnings if "reader-" in warning]
    seen = [row["group"] for row in taken.offsets]
    assert seen == sorted(map(str, seen))
    assert {"reader-a", "reader-b"} <= set(seen)


@pytest.mark.broker
def test_an_unknown_group_is_an_error_that_lists_the_groups(broker: Broker) -> None:
    create_topics(broker.bootstrap, {"present": 1})
    commit(broker.bootstrap, "a-present-group", {("present", 0): 0})
    with pytest.raises(SourceError, match=r"group 'absent': not found at 127.*; the cluster has a-present-group"):
        snapshot(broker.bootstrap, ["a-present-group", "absent"])


@pytest.mark.broker
@pytest.mark.parametrize("name", ["sticky", WEIGHTED])
def test_claims_and_weights_that_members_send_are_included(broker: Broker, name: str) -> None:
    create_topics(broker.bootstrap, {f"told-{name}": 4})
    with told_by_members(broker.bootstrap, f"told-{name}", f"told-{name}", name, weights=[3, 1]):
        taken = snapshot(broker.bootstrap, [f"told-{name}"])
    assert taken.warnings == []
    assert {row["assignor"] for row in taken.members} == {name}
    first = next(row for row in taken.members if row["client_id"] == "member-0")
    second = next(row for row in taken.members if row["client_id"] == "member-1")
    as_they_joined = [f"told-{name}-{partition}" for partition in range(4)], None
    owners = by_partition(taken, "consumer_id").items()
    for member, at_first in zip((first, second), as_they_joined, strict=True):
        mine = [f"{topic}-{partition}" for (topic, partition), owner in owners if owner == member["consumer_id"]]
        assert member["claimed"] in (at_first, mine), "what it had when it rejoined: on a busy machine they do so again"
    assert [first["weight"], second["weight"]] == ([3, 1] if name == WEIGHTED else [None, None])
    assert first["claimed_generation"] in ([None] if name == WEIGHTED else [1, 2, 3])


@pytest.mark.broker
def test_groups_of_both_protocols_are_found(broker: Broker) -> None:
    from evenlag.live.cluster.client import Cluster

    create_topics(broker.bootstrap, {"either": 1})
    for group, config in (("either-classic", {}), ("either-consumer", PROTOCOLS["kip-848"])):
        with running_group(broker.bootstrap, group, {"app": ["either"]}, **config):
            with closing(Cluster(broker.bootstrap, {}, 10.0)) as cluster:
                found = [cluster.describe({group: protocol})[group] for protocol in ("classic", "consumer")]
                assert isinstance(cluster.describe({"absent": "classic"})["absent"], Failure)
            assert [each.protocol for each in found if isinstance(each, Description)] == [group.split("-")[1]] * 2


@pytest.mark.broker
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_written_snapshot_reads_back_unchanged(broker: Broker, tmp_path: Path, suffix: str) -> None:
    create_topics(broker.bootstrap, {f"written-{suffix}": 3})
    with running_group(broker.bootstrap, f"written-{suffix}", {"app": [f"written-{suffix}"]}):
        taken = snapshot(broker.bootstrap, [f"written-{suffix}"])
    offsets, members = write_snapshot(taken, tmp_path / "new" / "folder", suffix)
    assert list(read_table(offsets, "offsets")) == taken.offsets
    assert list(read_table(members, "members")) == taken.members


@pytest.mark.broker
@pytest.mark.slow
def test_a_leader_on_a_broker_without_a_rack_has_an_unknown_rack(tmp_path: Path) -> None:
    with running_cluster(["zone-a", ""]) as bootstrap:
        create_topics(bootstrap, {"t": [[2, 1], [1, 2]], "u": [[2]]})
        produce(bootstrap, "t", [30, 20])
        with running_group(bootstrap, "g", {"c": ["t", "u"]}, {"c": {"client.rack": "zone-b"}}):
            taken = snapshot(bootstrap, ["g"])
    assert by_partition(taken, "replica_racks") == {("t", 0): ["", "zone-a"], ("t", 1): ["zone-a"], ("u", 0): None}
    files = [str(path) for path in write_snapshot(taken, tmp_path)]
    words = ("plan", files[0], "--members", files[1], "--auto-offset-reset", "earliest", "--json")
    read = {place: json.loads(evenlag(*words, "--fetch-from", place).stdout) for place in ("leader", "followers")}
    assert {place: plan["costs"]["crossings"] for place, plan in read.items()} == {"leader": 1, "followers": 2}
    (note,) = [note for note in read["leader"]["warnings"] if "rack" in note]
    assert note.startswith("the leader's rack is unknown for 2 partitions of 3")


def test_a_static_member_that_left_for_now_is_left_out(broker: Broker) -> None:
    create_topics(broker.bootstrap, {"static-left": 4})
    own = {name: {"group.instance.id": f"static-{name}"} for name in "ab"}
    subscriptions = {name: ["static-left"] for name in own}
    with running_group(broker.bootstrap, "static-left", subscriptions, own, group_protocol="consumer") as members:
        assert len(snapshot(broker.bootstrap, ["static-left"]).members) == 2
        members["a"].stop()
        members["a"].join()
        taken = snapshot(broker.bootstrap, ["static-left"])
    assert [row["group_instance_id"] for row in taken.members] == ["static-b"]
    assert sum(row["consumer_id"] is None for row in taken.offsets) == 2
    assert taken.stopped == {"static-left": 1}
    told = "stopped members of group 'static-left' are left out: static-a"
    assert any(each.startswith(told) for each in taken.warnings)
