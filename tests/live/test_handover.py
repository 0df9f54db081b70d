"""Consumers that follow a plan: each partition has one owner at a time, and no message is lost."""

import random
from collections import Counter

import pytest

from evenlag.errors import FollowError
from evenlag.live.follow import (
    FollowedPlan,
)
from evenlag.live.ownership import Ownership
from tests.support.plain_kafka import LEASE, PARTITIONS, Group, committed_owner, plan


def test_each_message_is_processed_once_from_plan_to_plan_and_back(group: Group) -> None:
    group.start("c1", "c2")
    group.deliver(plan(1, c1="01", c2="23"))
    group.run_for(6)
    assert group.holds() == {"c1": "01", "c2": "23"}
    group.deliver(plan(2, c1="02", c2="13"))
    group.run_for(6)
    assert group.holds() == {"c1": "02", "c2": "13"}
    group.deliver(plan(3, c1="01", c2="23"))
    group.run_for(12)
    assert group.holds() == {"c1": "01", "c2": "23"}
    assert Counter((key, offset) for _, key, offset in group.processed) == {
        (key, offset): 1 for key in PARTITIONS for offset in range(5)
    }
    assert group.callbacks == [
        ("c1", "assign", [("t", 0), ("t", 1)]),
        ("c2", "assign", [("t", 2), ("t", 3)]),
        ("c1", "revoke", [("t", 1)]),
        ("c2", "revoke", [("t", 2)]),
        ("c2", "assign", [("t", 1)]),
        ("c1", "assign", [("t", 2)]),
        ("c1", "revoke", [("t", 2)]),
        ("c2", "revoke", [("t", 1)]),
        ("c2", "assign", [("t", 2)]),
        ("c1", "assign", [("t", 1)]),
    ]
    group.follows["c1"].close()
    assert group.kafka.commits["t", 0][0] == 5
    assert committed_owner(group.kafka, 0) == Ownership(3, None)
    assert group.inboxes["c1"].closed


def test_a_new_owner_waits_until_the_old_one_has_the_plan(group: Group) -> None:
    group.start("c1", "c2")
    group.deliver(plan(1, c1="01", c2="23"))
    group.run_for(4)
    group.deliver(plan(2, c1="0", c2="123"), "c2")
    group.run_for(10 * LEASE)
    assert group.holds() == {"c1": "01", "c2": "23"}
    assert group.follows["c2"].waiting == {("t", 1): "c1 has not given it up"}
    group.deliver(plan(2, c1="0", c2="123"), "c1")
    group.run_for(2)
    assert group.holds() == {"c1": "0", "c2": "123"}


def test_a_member_with_a_newer_plan_passes_a_partition_on(group: Group) -> None:
    group.start("c1", "c2", "c3")
    group.deliver(plan(1, c1="01", c2="2", c3="3"))
    group.run_for(4)
    group.deliver(plan(3, c1="0", c2="2", c3="13"), "c2", "c3")
    group.deliver(plan(2, c1="0", c2="12", c3="3"), "c1")
    group.run_for(4)
    assert group.holds() == {"c1": "0", "c2": "2", "c3": "13"}
    assert all(("t", 1) not in keys for name, _, keys in group.callbacks if name == "c2")


def test_a_member_ignores_handovers_under_a_plan_that_it_has_not_read(group: Group) -> None:
    group.start("c1", "c2")
    group.deliver(plan(1, c1="01", c2="23"))
    group.run_for(4)
    group.deliver(plan(2, c1="0", c2="123"), "c1")
    group.run_for(2 * LEASE)
    assert group.holds() == {"c1": "0", "c2": "23"}
    assert committed_owner(group.kafka, 1) == Ownership(2, "c2")
    group.follows["c2"].close()
    group.start("c2")
    group.deliver(plan(1, c1="01", c2="23"), "c2")  # an old copy
    group.run_for(4)
    assert group.holds() == {"c1": "0", "c2": "23"}
    group.deliver(plan(2, c1="0", c2="123"), "c2")
    group.run_for(2)
    assert group.holds() == {"c1": "0", "c2": "123"}


def test_a_dead_member_keeps_its_partitions_until_a_plan_gives_them_to_others(group: Group) -> None:
    group.start("c1", "c2")
    group.deliver(plan(1, c1="01", c2="23"))
    group.run_for(4)
    del group.follows["c1"]
    group.run_for(20)
    assert group.holds() == {"c2": "23"}
    group.deliver(plan(2, c2="0123"), "c2")
    group.run_for(7)  # until the last commit of the dead is 30 seconds old
    assert group.holds() == {"c2": "23"}
    group.run_for(9)
    assert group.holds() == {"c2": "0123"}
    group.run_for(20)
    assert {(key, offset) for _, key, offset in group.processed} == {(key, n) for key in PARTITIONS for n in range(5)}


def test_a_restarted_member_resumes_its_partitions(group: Group) -> None:
    group.start("c1", "c2")
    group.deliver(plan(1, c1="01", c2="23"))
    group.run_for(6)
    del group.follows["c1"]
    group.start("c1")
    group.deliver(plan(1, c1="01", c2="23"), "c1")
    group.run_for(2)
    assert group.holds() == {"c2": "23", "c1": ""}
    group.run_for(12)
    assert group.holds() == {"c2": "23", "c1": "01"}
    assert {(key, offset) for _, key, offset in group.processed} == {(key, n) for key in PARTITIONS for n in range(5)}


def test_a_paused_member_loses_its_partitions_and_commits_nothing(group: Group) -> None:
    group.start("c1", "c2")
    group.deliver(plan(1, c1="0123", c2=""))
    group.run_for(3)
    still = group.follows.pop("c1")
    group.deliver(plan(2, c2="0123"))
    group.run_for(LEASE + 10)
    assert group.holds() == {"c2": "0123"}
    before = dict(group.kafka.commits)
    still.commit()
    assert group.kafka.commits == before
    assert still.holds == []
    assert group.callbacks[-1] == ("c1", "lost", PARTITIONS)


def test_of_two_members_with_one_name_the_first_stops(group: Group) -> None:
    group.start("c1")
    group.deliver(plan(1, c1="0123"))
    group.run_for(4)
    first = group.follows.pop("c1")
    group.start("c1")
    group.deliver(plan(1, c1="0123"))
    group.run_for(1)
    with pytest.raises(FollowError, match=r"t-0, .*, t-3: taken by another consumer with the same name 'c1'"):
        list(first.consume(0))
    assert first.holds == []
    group.run_for(3)
    assert group.holds() == {"c1": "0123"}


def test_of_two_simultaneous_claims_one_wins(group: Group) -> None:
    """One reads that a partition is nobody's, and stands still before it commits its claim; the other claims."""
    kafka = group.kafka
    group.start("c1", "c2")
    group.deliver(plan(1, c1="0123"), "c1")
    group.deliver(plan(2, c2="0123"), "c2")

    def meanwhile() -> None:
        kafka.meanwhile = lambda: None
        group.run_once("c2")
        kafka.now += LEASE / 30
        group.run_once("c2")

    kafka.meanwhile = meanwhile
    group.run_once("c1")
    kafka.now += LEASE / 30
    for name in ("c1", "c2", "c1", "c2"):
        group.run_once(name)
        group.check_owners()
        kafka.now += LEASE / 60
    group.run_for(5)
    assert group.holds() == {"c1": "0123", "c2": ""}
    group.deliver(plan(2, c2="0123"), "c1")
    group.run_for(2)
    assert group.holds() == {"c1": "", "c2": "0123"}


def test_a_late_answer_does_not_show_that_a_claim_stands(group: Group) -> None:
    """Another claim may have arrived since the commits were read."""
    kafka = group.kafka

    def late() -> None:
        kafka.now += 2 * LEASE / 30

    group.start("c1")
    group.deliver(plan(1, c1="0123"))
    group.run_once("c1")
    kafka.now += LEASE / 30
    kafka.reading = late
    group.run_once("c1")
    assert group.holds() == {"c1": ""}
    kafka.reading = lambda: None
    kafka.now += LEASE / 30
    group.run_once("c1")
    assert group.holds() == {"c1": "0123"}


def test_a_renewed_lease_counts_from_the_end_of_its_commit(group: Group) -> None:
    """A commit may take seconds, and another claim may arrive just before it counts."""
    kafka = group.kafka

    def late() -> None:
        kafka.now += 4 * LEASE / 30

    group.start("c1")
    group.deliver(plan(1, c1="0123"))
    group.run_for(6)
    kafka.failing = {"commit"}
    group.run_for(LEASE + 6)
    assert sorted(group.follows["c1"].waiting) == PARTITIONS
    kafka.failing, kafka.meanwhile = set(), late
    before = kafka.now
    while kafka.now < before + 4 * LEASE / 30:
        kafka.now += LEASE / 30
        group.run_once("c1")  # one of these commits
    kafka.meanwhile = lambda: None
    kafka.now += LEASE / 30
    group.run_once("c1")
    assert sorted(group.follows["c1"].waiting) == PARTITIONS
    kafka.now += LEASE / 30
    group.run_once("c1")
    assert not group.follows["c1"].waiting


@pytest.mark.slow
@pytest.mark.parametrize("deadly", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_random_failures_leave_one_owner_at_a_time_and_lose_nothing(group: Group, seed: int, deadly: bool) -> None:
    """Plans come late and in part, members are killed and started, and others act while one commits."""
    choose = random.Random(seed)
    kafka, names = group.kafka, ["c1", "c2", "c3"]
    acting: list[str] = []

    def meanwhile() -> None:
        if len(acting) == 1 and choose.random() < 0.5:
            name = choose.choice([each for each in group.follows if each not in acting] or acting)
            if name not in acting:
                step(name)

    def step(name: str) -> None:
        acting.append(name)
        group.run_once(name)
        acting.pop()
        if not acting:
            group.check_owners()

    kafka.meanwhile = meanwhile
    group.start(*names)
    published: list[FollowedPlan] = []
    for now in range(200):
        kafka.now += 1.0
        if now % 20 == 0:
            owners = [choose.choice(names) for _ in PARTITIONS]
            fresh = {name: "".join(str(n) for n, each in enumerate(owners) if each == name) for name in names}
            published.append(plan(len(published) + 1, **fresh))
        for name in choose.sample(names, len(names)):
            if choose.random() < 0.1:
                group.deliver(published[-1], name)
            if name in group.follows:
                step(name)
        key = choose.choice(PARTITIONS)
        kafka.ends[key] += choose.randrange(3)
        if deadly and choose.random() < 0.05:
            name = choose.choice(names)
            gone = group.follows.pop(name, None)
            if gone is None:
                group.start(name)
            elif choose.random() < 0.5:
                gone.close()
    kafka.meanwhile = lambda: None
    group.start(*(name for name in names if name not in group.follows))
    group.deliver(published[-1])
    group.run_for(LEASE + 10)
    for _ in range(50):
        if any(kafka.commits[key][0] < kafka.ends[key] for key in PARTITIONS):
            group.run_for(10)
    given = {name: "".join(str(n) for _, n in mine) for name, mine in published[-1].assignment.items()}
    assert group.holds() == given
    done = Counter((key, offset) for _, key, offset in group.processed)
    assert set(done) == {(key, offset) for key in PARTITIONS for offset in range(kafka.ends[key])}
    if not deadly:
        assert set(done.values()) == {1}
