"""Rows of a snapshot for each state that a group can be in, from scripted answers instead of a broker."""

from collections.abc import Collection, Iterable, Mapping
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from evenlag.live import Snapshot, snapshot
from evenlag.live.cluster import capture
from evenlag.live.cluster.broker_rows import (
    UNKNOWN_TOPIC,
    Layout,
    LogOffsets,
    offset_rows,
    partitions_of,
    why_unread,
)
from evenlag.live.cluster.client import Cluster
from evenlag.live.cluster.stopped import Pulse
from evenlag.live.group_state import Commits, Description, Failure, Group
from evenlag.live.group_state import Member as MemberState
from evenlag.live.ownership import Ownership
from evenlag.protocol.subscriptions import Subscription

NOW = "2026-01-02T03:04:05.678Z"


class ScriptedCluster:
    """Answers with the next of some descriptions of one group at each look; all its partitions have a commit."""

    requests: Mapping[str, int] = {}

    def __init__(self, *descriptions: Description | Failure, commits: Commits | Failure | None = None):
        self.descriptions = list(descriptions)
        self.commits = commits

    def close(self) -> None:
        pass

    def renew(self, timeout: float | None = None) -> None:
        pass

    def groups(self) -> tuple[dict[str, str], list[Failure]]:
        return {"g": "classic"}, [Failure("KafkaConnectionError", "broker 2 is down")]

    def partitions(self, topics: Collection[str]) -> Layout:
        found = {topic: {number: () for name, number in self._known() if name == topic} for topic in topics}
        absent = Failure(UNKNOWN_TOPIC, "no such topic")
        return {topic: partitions or absent for topic, partitions in found.items()}

    def log_offsets(self, partitions: Collection[tuple[str, int]]) -> LogOffsets:
        return dict.fromkeys(partitions, (0, 9))

    def describe(self, groups: Mapping[str, str]) -> dict[str, Description | Failure]:
        return dict.fromkeys(groups, self.descriptions.pop(0) if len(self.descriptions) > 1 else self.descriptions[0])

    def committed(self, groups: Iterable[str]) -> dict[str, Commits | Failure]:
        return dict.fromkeys(groups, self.commits or Commits())

    def _known(self) -> Iterable[tuple[str, int]]:
        return self.commits.offsets if isinstance(self.commits, Commits) else ()


def scripted_snapshot(
    monkeypatch: pytest.MonkeyPatch, *descriptions: Description | Failure, timeout: float = 30.0, **options: Any
) -> Snapshot:
    """Take a snapshot of a cluster that describes its group in this way, one description after another."""
    cluster = ScriptedCluster(*descriptions, **options)
    monkeypatch.setattr(capture, "cluster_at", lambda *_: cluster)
    monkeypatch.setattr(capture, "SETTLE_PAUSE", 0.01)
    taken = snapshot("somewhere", timeout=timeout)
    assert taken.warnings[0] == "groups of a broker may be missing: broker 2 is down"
    return taken


def test_a_passing_state_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    member = MemberState("m1", "app", "/10.0.0.1", None, ())
    taken = scripted_snapshot(
        monkeypatch,
        Failure("NOT_COORDINATOR", "moved"),
        Description("Reconciling"),
        Description("PreparingRebalance"),
        Description("Stable", (member,)),
    )
    assert [row["consumer_id"] for row in taken.members] == ["m1"]
    assert len(taken.warnings) == 1


def test_a_group_that_never_settles_is_included_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    member = MemberState("m1", "app", None, None, ())
    taken = scripted_snapshot(monkeypatch, Description("CompletingRebalance", (member,)), timeout=0.2)
    assert [row["consumer_id"] for row in taken.members] == ["m1"]
    assert "group 'g' is still rebalancing (CompletingRebalance)" in taken.warnings[1]


def test_a_group_that_fails_does_not_affect_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = Failure("GROUP_AUTHORIZATION_FAILED", "Group authorization failed")
    assert (
        "group 'g' is left out: Group authorization failed (the user"
        in scripted_snapshot(monkeypatch, failure).warnings[1]
    )
    taken = scripted_snapshot(monkeypatch, Description("Empty"), commits=failure)
    assert "group 'g' is left out: Group authorization failed" in taken.warnings[1]
    assert len(scripted_snapshot(monkeypatch, Description("Dead")).warnings) == 1
    taken = scripted_snapshot(monkeypatch, Description("Empty"))
    assert taken.warnings[1] == "groups of which this user can see neither members nor committed offsets: g"


def unread(monkeypatch: pytest.MonkeyPatch, description: Description | Failure, **options: Any) -> dict[str, str]:
    """Return the groups that `snapshots` cannot read in a cluster whose only group is described in this way."""
    monkeypatch.setattr(capture, "cluster_at", lambda *_: ScriptedCluster(description, **options))
    (taken,) = capture.snapshots("somewhere", lambda names: names)
    assert taken.unread.pop("*") == "groups of a broker may be missing: broker 2 is down"
    return taken.unread


def test_each_chosen_group_has_rows_or_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = Failure("TOPIC_AUTHORIZATION_FAILED", "no access")
    assert unread(monkeypatch, failure) == {"g": "no access (the user needs the ACL Describe on the topic)"}
    assert unread(monkeypatch, Description("Empty"), commits=failure)["g"].startswith("no access")
    assert unread(monkeypatch, Description("Empty"))["g"].startswith("neither members nor committed offsets can be")
    alone = MemberState("m1", None, None, None, (), subscription=Subscription(()))
    assert unread(monkeypatch, Description("Stable", (alone,)))["g"] == "its members subscribe to no existing topic"
    waiting = MemberState("m1", None, None, None, (), subscription=Subscription(("new",)))
    assert unread(monkeypatch, Description("Stable", (waiting,)))["g"] == "none of its topics exists: new"
    assert unread(monkeypatch, Description("Dead")) == {}
    assert unread(monkeypatch, Description("Empty"), commits=Commits({("t", 0): 3})) == {}


@pytest.mark.parametrize("name", ["TOPIC_AUTHORIZATION_FAILED", UNKNOWN_TOPIC])
def test_a_group_with_a_hidden_topic_is_not_wholly_read(name: str) -> None:
    member = MemberState("m", None, None, None, partitions=(("a", 0),))
    group, subscribed = Group("g", Description("Stable", (member,)), Commits()), {"m": ("a", "b")}
    layout: Layout = {"a": {0: ()}, "b": Failure(name, "not shown")}
    partitions, _ = partitions_of(group, subscribed, layout)
    why = why_unread(group, subscribed, partitions, layout)
    assert partitions == [("a", 0)]
    assert (why is None) == (name == UNKNOWN_TOPIC)
    assert why is None or why.startswith("topic b: not shown")


def test_partitions_being_assigned_count_as_the_groups() -> None:
    member = MemberState("m", None, None, None, partitions=(("a", 0),), target=(("a", 0), ("b", 1)))
    group = Group("g", Description("Reconciling", (member,)), Commits({("c", 9): 4}))
    two = {0: (), 1: ()}
    partitions, warnings = partitions_of(group, {}, {"a": two, "b": two, "c": {0: ()}})
    assert partitions == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("c", 0)]
    assert warnings == ["group 'g', topic c: partitions 9 no longer exist; left out"]


def test_unknown_offsets_stay_null() -> None:
    group = Group("g", Description("Empty"), Commits({("a", 0): 9, ("a", 1): Failure("X", "no commit"), ("a", 2): 1}))
    lost = Failure("NOT_LEADER", "no leader")
    log: LogOffsets = {("a", 0): (0, 7), ("a", 1): (0, 7), ("a", 2): (lost, lost)}
    layout: Layout = {"a": {0: ("r1", "r2"), 1: (), 2: ("", "r2")}}
    rows, warnings = offset_rows(NOW, group, sorted(log), layout, log)
    assert [row["replica_racks"] for row in rows] == [["r1", "r2"], None, ["", "r2"]]
    assert [row["lag"] for row in rows] == [0, None, None]  # a commit beyond the end is no negative lag
    assert [row["log_end_offset"] for row in rows] == [7, 7, None]
    assert warnings == [
        "group 'g', topic a: offsets of partitions 1 left null: no commit",
        "group 'g', topic a: offsets of partitions 2 left null: no leader",
    ]


def test_the_leaders_rack_comes_first_even_if_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    rack_of = {1: "r1", 2: "r2", 3: None, 4: ""}
    replicas = {0: [1, 2], 1: [3, 2, 1], 2: [2, 3, 1], 3: [4, 3], 4: [2, 1, 2]}
    metadata = SimpleNamespace(
        brokers=[SimpleNamespace(node_id=node, rack=rack) for node, rack in rack_of.items()],
        topics=[SimpleNamespace(name="a", error_code=0, partitions=[
            SimpleNamespace(partition_index=p, replica_nodes=nodes, leader_id=nodes[0]) for p, nodes in replicas.items()
        ])],
    )  # fmt: skip
    monkeypatch.setattr("evenlag.live.cluster.client.Brokers", lambda *_: mock.Mock(run=lambda _: metadata))
    assert Cluster("", {}, 1.0).partitions(["a"]) == {
        "a": {0: ("r1", "r2"), 1: ("", "r2", "r1"), 2: ("r2", "r1"), 3: (), 4: ("r2", "r1")}
    }


def test_the_members_of_a_followed_group_are_the_owners_in_its_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = {
        ("a", 0): Ownership(7, "c2", "5f3a", 12, "zone-a").encode() + "\0",  # as confluent-kafka commits it
        ("a", 1): Ownership(8, "c1").encode(),  # handed to it, and not taken yet
        ("a", 2): Ownership(8, None).encode(),  # given up
        ("b", 0): Ownership(8, "c1", "77aa", 3).encode(),
        ("b", 1): '{"evenlag": 3}',
        ("old", 0): "offsets of before",
    }
    commits = Commits(dict.fromkeys([*metadata, ("old", 1)], 5), metadata)
    taken = scripted_snapshot(monkeypatch, Description("Empty", protocol="classic"), commits=commits, timeout=1.0)
    owners = {(row["topic"], row["partition"]): (row["consumer_id"], row["client_id"]) for row in taken.offsets}
    nobody = (None, None)
    assert owners == {
        ("a", 0): ("c2", "c2"), ("a", 1): ("c1", "c1"), ("a", 2): nobody, ("b", 0): ("c1", "c1"), ("b", 1): nobody,
        ("old", 0): nobody, ("old", 1): nobody,
    }  # fmt: skip
    columns = ("consumer_id", "client_id", "topics", "protocol", "group_epoch", "generation", "rack")
    assert [[row[name] for name in columns] for row in taken.members] == [
        [name, name, ["a", "b"], "follow", 8, None, rack] for name, rack in (("c1", None), ("c2", "zone-a"))
    ]
    (unread,) = taken.warnings[1:]
    assert unread.startswith("group 'g': the owners of b-1 cannot be read: metadata of version 3, not 1 or 2: ")


class Beating(ScriptedCluster):
    """A group of two followers, of which only c1 goes on committing; reading its commits may fail after the first."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__(Description("Empty"), commits=self.commit(1))
        self.fails, self.beat = fails, 1

    def _known(self) -> Iterable[tuple[str, int]]:
        return [("a", 0), ("a", 1)]

    def commit(self, beat: int) -> Commits:
        held = {("a", 0): Ownership(8, "c1", "77aa", beat), ("a", 1): Ownership(8, "c2", "5f3a", 1)}
        return Commits(dict.fromkeys(held, 5), {key: each.encode() for key, each in held.items()})

    def committed(self, groups: Iterable[str]) -> dict[str, Commits | Failure]:
        found = super().committed(groups)
        self.beat += 1
        self.commits = Failure("NOT_COORDINATOR", "moved") if self.fails else self.commit(self.beat)
        return found


@pytest.mark.parametrize(("fails", "members"), [(False, ["c1"]), (True, ["c1", "c2"])])
def test_a_follower_that_no_longer_commits_is_left_out(
    fails: bool, members: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture, "LEAST_WAIT", 0.0)
    monkeypatch.setattr(capture, "PULSE_PAUSE", 0.01)
    monkeypatch.setattr(capture, "cluster_at", lambda *_: Beating(fails=fails))
    taken = snapshot("somewhere", timeout=0.3)
    assert [row["consumer_id"] for row in taken.members] == members
    assert [row["consumer_id"] for row in taken.offsets] == ["c1", None if len(members) == 1 else "c2"]
    told = any("stopped members of group 'g' are left out: c2 (no new commit;" in each for each in taken.warnings)
    assert told == (len(members) == 1)
    assert taken.stopped == {"g": 2 - len(members)}


def test_a_watch_recognises_it_from_one_reading_to_the_next() -> None:
    cluster, pulse = Beating(), Pulse()
    still = []
    for now in (0.0, 20.0, 29.0, 30.0):
        commits = cluster.committed(["g"])["g"]
        assert isinstance(commits, Commits)
        group = Group("g", Description("Empty"), commits)
        pulse.note(group, now)
        still.append(pulse.still(group, now))
    assert still == [set(), set(), set(), {"c2"}]


def test_a_member_that_does_not_take_what_it_was_handed_has_stopped() -> None:
    pulse, still = Pulse(), []
    for now, beat in ((0.0, 1), (31.0, 2)):
        held = {
            ("a", 0): Ownership(8, "c1", "77aa", beat), ("a", 1): Ownership(9, "c1"), ("a", 2): Ownership(9, "c2"),
            ("a", 3): Ownership(9, None),
        }  # fmt: skip
        commits = Commits(dict.fromkeys(held, 5), {key: each.encode() for key, each in held.items()})
        pulse.note(group := Group("g", Description("Empty"), commits), now)
        still.append(pulse.still(group, now))
    assert still == [set(), {"c2"}]


def test_a_static_member_that_has_left_for_now_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    there, left = (
        MemberState(f"id-{n}", "app", None, f"static-{n}", (("a", n),), epoch=epoch, subscription=Subscription(("a",)))
        for n, epoch in ((0, 5), (1, -2))
    )
    commits = Commits({("a", 0): 5, ("a", 1): 5})
    taken = scripted_snapshot(monkeypatch, Description("Stable", (there, left), "consumer"), commits=commits)
    assert [row["consumer_id"] for row in taken.members] == ["id-0"]
    assert [row["consumer_id"] for row in taken.offsets] == ["id-0", None]
    assert taken.warnings[1].startswith("stopped members of group 'g' are left out: static-1 (left;")
    assert taken.stopped == {"g": 1}


def test_a_group_whose_followers_have_stopped_has_no_members(monkeypatch: pytest.MonkeyPatch) -> None:
    commits = Commits({("a", 0): 5}, {("a", 0): Ownership(8, None).encode()})
    taken = scripted_snapshot(monkeypatch, Description("Empty"), commits=commits)
    assert (taken.members, [row["consumer_id"] for row in taken.offsets]) == ([], [None])
    assert taken.warnings[1:] == ["group 'g' follows a plan, but all its consumers have stopped: it has no members"]


def test_a_subscribed_group_has_the_members_that_kafka_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    member = MemberState("m1", "app", "/10.0.0.1", None, (("a", 0),), subscription=Subscription(("a",)))
    described = Description("Stable", (member,), "classic", "range")
    commits = Commits({("a", 0): 5, ("a", 1): 5}, {("a", 1): Ownership(8, "c1", "5f3a", 1).encode()})
    taken = scripted_snapshot(monkeypatch, described, commits=commits)
    assert [(row["consumer_id"], row["protocol"]) for row in taken.members] == [("m1", "classic")]
    assert [row["consumer_id"] for row in taken.offsets] == ["m1", None]
