"""Consumers that follow a plan: each partition has one owner at a time, and no message is lost, whatever happens."""

import json
import logging
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException

from evenlag.errors import EvenlagError, FollowError, InvalidPlanError, InvalidProblemError, SourceError, UserDataError
from evenlag.live import followed_plan
from evenlag.live.follow import (
    Follow,
    FollowedPlan,
    PlanFile,
    PlanTopic,
    consumer_loop,
    group_commits,
    holdings,
    plan_topics,
    publish,
)
from evenlag.live.followed_plan import place_of
from evenlag.live.ownership import Ownership
from tests.support.command import evenlag, refused
from tests.support.followers import Consumer, Kafka, Partition, Told

PARTITIONS = [("t", number) for number in range(4)]
LEASE = 30.0


def plan(version: int, **members: str) -> FollowedPlan:
    """A plan of topic t: `c1="01"` gives c1 its partitions 0 and 1."""
    return FollowedPlan(
        "billing", version, {name: tuple(("t", int(n)) for n in mine) for name, mine in members.items()}
    )


class Group:
    """Followers on a Kafka of plain Python."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka
        self.told: dict[str, Told] = {}
        self.follows: dict[str, Follow] = {}
        self.processed: list[tuple[str, Partition, int]] = []
        self.heard: list[tuple[str, str, list[Partition]]] = []

    def start(self, *names: str, **config: Any) -> None:
        for name in names:
            before = self.told.get(name)
            self.told[name] = Told()
            if before is not None and before.untold:
                self.told[name].untold = before.untold

            def heard(what: str, name: str = name) -> Any:
                return lambda _, keys: self.heard.append((name, what, keys))

            told = {f"on_{what}": heard(what) for what in ("assign", "revoke", "lost")}
            self.follows[name] = Follow(
                Consumer(self.kafka), self.told[name], name, auto_offset_reset="earliest", lease=LEASE, **told | config
            )

    def tell(self, news: FollowedPlan | EvenlagError, *names: str) -> None:
        for name in names or self.told:
            self.told[name].untold.append(news)

    def step(self, name: str) -> None:
        """Let one go round its loop once: it processes a message at most."""
        for message in self.follows[name].consume(0):
            self.processed.append((name, (message.topic(), message.partition()), message.offset()))

    def go_on(self, seconds: float = 10.0) -> None:
        """Let all go on for so long."""
        for _ in range(round(seconds)):
            self.kafka.now += 1.0
            for name in list(self.follows):
                self.step(name)
            self.check()

    def check(self) -> None:
        held = [key for follow in self.follows.values() for key in follow.holds]
        assert len(held) == len(set(held)), {name: follow.holds for name, follow in self.follows.items()}

    def holds(self) -> dict[str, str]:
        return {name: "".join(str(number) for _, number in each.holds) for name, each in self.follows.items()}


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    kafka = Kafka(PARTITIONS, 5)
    for module in (consumer_loop, holdings, group_commits, plan_topics):
        monkeypatch.setattr(module, "monotonic", kafka.clock)
    return kafka


@pytest.fixture
def group(kafka: Kafka) -> Group:
    return Group(kafka)


def owner(kafka: Kafka, number: int) -> Ownership | None:
    return Ownership.decode(kafka.commits["t", number][1])


# ---- the way from plan to plan ---------------------------------------------------------------------------------------


def test_everything_is_processed_once_from_plan_to_plan_and_back(group: Group) -> None:
    group.start("c1", "c2")
    group.tell(plan(1, c1="01", c2="23"))
    group.go_on(6)
    assert group.holds() == {"c1": "01", "c2": "23"}
    group.tell(plan(2, c1="02", c2="13"))
    group.go_on(6)
    assert group.holds() == {"c1": "02", "c2": "13"}
    group.tell(plan(3, c1="01", c2="23"))
    group.go_on(12)
    assert group.holds() == {"c1": "01", "c2": "23"}
    assert Counter((key, offset) for _, key, offset in group.processed) == {
        (key, offset): 1 for key in PARTITIONS for offset in range(5)
    }
    assert group.heard == [
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
    assert owner(group.kafka, 0) == Ownership(3, None)
    assert group.told["c1"].closed


def test_the_new_owner_waits_for_an_old_one_that_has_not_heard(group: Group) -> None:
    group.start("c1", "c2")
    group.tell(plan(1, c1="01", c2="23"))
    group.go_on(4)
    group.tell(plan(2, c1="0", c2="123"), "c2")
    group.go_on(10 * LEASE)
    assert group.holds() == {"c1": "01", "c2": "23"}
    assert group.follows["c2"].waiting == {("t", 1): "c1 has not given it up"}
    group.tell(plan(2, c1="0", c2="123"), "c1")
    group.go_on(2)
    assert group.holds() == {"c1": "0", "c2": "123"}


def test_what_is_handed_to_one_who_knows_a_newer_plan_is_handed_on(group: Group) -> None:
    group.start("c1", "c2", "c3")
    group.tell(plan(1, c1="01", c2="2", c3="3"))
    group.go_on(4)
    group.tell(plan(3, c1="0", c2="2", c3="13"), "c2", "c3")
    group.tell(plan(2, c1="0", c2="12", c3="3"), "c1")
    group.go_on(4)
    assert group.holds() == {"c1": "0", "c2": "2", "c3": "13"}
    assert all(("t", 1) not in keys for name, _, keys in group.heard if name == "c2")


def test_nobody_acts_on_what_was_done_under_a_plan_that_he_does_not_know(group: Group) -> None:
    group.start("c1", "c2")
    group.tell(plan(1, c1="01", c2="23"))
    group.go_on(4)
    group.tell(plan(2, c1="0", c2="123"), "c1")
    group.go_on(2 * LEASE)
    assert group.holds() == {"c1": "0", "c2": "23"}
    assert owner(group.kafka, 1) == Ownership(2, "c2")
    group.follows["c2"].close()
    group.start("c2")
    group.tell(plan(1, c1="01", c2="23"), "c2")  # an old copy
    group.go_on(4)
    assert group.holds() == {"c1": "0", "c2": "23"}
    group.tell(plan(2, c1="0", c2="123"), "c2")
    group.go_on(2)
    assert group.holds() == {"c1": "0", "c2": "123"}


def test_a_dead_member_keeps_its_partitions_until_a_plan_gives_them_to_others(group: Group) -> None:
    group.start("c1", "c2")
    group.tell(plan(1, c1="01", c2="23"))
    group.go_on(4)
    del group.follows["c1"]
    group.go_on(20)
    assert group.holds() == {"c2": "23"}
    group.tell(plan(2, c2="0123"), "c2")
    group.go_on(7)  # until the last commit of the dead is 30 seconds old
    assert group.holds() == {"c2": "23"}
    group.go_on(9)
    assert group.holds() == {"c2": "0123"}
    group.go_on(20)
    assert {(key, offset) for _, key, offset in group.processed} == {(key, n) for key in PARTITIONS for n in range(5)}


def test_who_comes_back_goes_on_where_it_was(group: Group) -> None:
    group.start("c1", "c2")
    group.tell(plan(1, c1="01", c2="23"))
    group.go_on(6)
    del group.follows["c1"]
    group.start("c1")
    group.tell(plan(1, c1="01", c2="23"), "c1")
    group.go_on(2)
    assert group.holds() == {"c2": "23", "c1": ""}
    group.go_on(12)
    assert group.holds() == {"c2": "23", "c1": "01"}
    assert {(key, offset) for _, key, offset in group.processed} == {(key, n) for key in PARTITIONS for n in range(5)}


def test_who_stood_still_finds_its_partitions_taken_and_commits_nothing(group: Group) -> None:
    group.start("c1", "c2")
    group.tell(plan(1, c1="0123", c2=""))
    group.go_on(3)
    still = group.follows.pop("c1")
    group.tell(plan(2, c2="0123"))
    group.go_on(LEASE + 10)
    assert group.holds() == {"c2": "0123"}
    before = dict(group.kafka.commits)
    still.commit()
    assert group.kafka.commits == before
    assert still.holds == []
    assert group.heard[-1] == ("c1", "lost", PARTITIONS)


def test_two_of_one_name_do_not_both_go_on(group: Group) -> None:
    group.start("c1")
    group.tell(plan(1, c1="0123"))
    group.go_on(4)
    first = group.follows.pop("c1")
    group.start("c1")
    group.tell(plan(1, c1="0123"))
    group.go_on(1)
    with pytest.raises(FollowError, match=r"t-0, .*, t-3: taken by another consumer with the same name 'c1'"):
        list(first.consume(0))
    assert first.holds == []
    group.go_on(3)
    assert group.holds() == {"c1": "0123"}


def test_of_two_who_claim_at_once_one_goes_on(group: Group) -> None:
    """One reads that a partition is nobody's, and stands still before it commits its claim; the other claims."""
    kafka = group.kafka
    group.start("c1", "c2")
    group.tell(plan(1, c1="0123"), "c1")
    group.tell(plan(2, c2="0123"), "c2")

    def meanwhile() -> None:
        kafka.meanwhile = lambda: None
        group.step("c2")
        kafka.now += LEASE / 30
        group.step("c2")

    kafka.meanwhile = meanwhile
    group.step("c1")
    kafka.now += LEASE / 30
    for name in ("c1", "c2", "c1", "c2"):
        group.step(name)
        group.check()
        kafka.now += LEASE / 60
    group.go_on(5)
    assert group.holds() == {"c1": "0123", "c2": ""}
    group.tell(plan(2, c2="0123"), "c1")
    group.go_on(2)
    assert group.holds() == {"c1": "", "c2": "0123"}


# ---- chance ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("deadly", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_one_owner_at_a_time_and_nothing_lost_by_chance(group: Group, seed: int, deadly: bool) -> None:
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
        group.step(name)
        acting.pop()
        if not acting:
            group.check()

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
                group.tell(published[-1], name)
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
    group.tell(published[-1])
    group.go_on(LEASE + 10)
    for _ in range(50):
        if any(kafka.commits[key][0] < kafka.ends[key] for key in PARTITIONS):
            group.go_on(10)
    given = {name: "".join(str(n) for _, n in mine) for name, mine in published[-1].assignment.items()}
    assert group.holds() == given
    done = Counter((key, offset) for _, key, offset in group.processed)
    assert set(done) == {(key, offset) for key in PARTITIONS for offset in range(kafka.ends[key])}
    if not deadly:
        assert set(done.values()) == {1}


# ---- plans that are none ---------------------------------------------------------------------------------------------


def test_a_broken_or_older_plan_changes_nothing_and_is_said_once(
    group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    group.start("c1")
    group.go_on(2)
    assert group.follows["c1"].troubles["plan"].startswith("no plan of group 'billing' in ")
    group.tell(plan(5, c1="0123"))
    group.go_on(4)
    assert group.follows["c1"].troubles == {}
    keeping = "; this consumer stays at version 5"
    for news, said in [
        (InvalidPlanError("plan.json: not valid JSON"), f"plan.json: not valid JSON{keeping}"),
        (plan(4, c1="0"), f"version 4 is older{keeping}; to go back to it, publish it again"),
        (plan(5, c1="0"), f"another plan of the same version{keeping}; publish it again"),
    ]:
        group.tell(news)
        group.tell(news)
        with caplog.at_level(logging.WARNING):
            caplog.clear()
            group.go_on(4)
        assert said in group.follows["c1"].troubles["plan"]
        assert len(caplog.records) == 1
        assert group.holds() == {"c1": "0123"}
    group.tell(plan(5, c1="0123"))
    group.go_on(1)
    assert group.follows["c1"].troubles == {}


def test_who_is_not_in_the_plan_gets_nothing_and_says_so(group: Group) -> None:
    group.start("c9")
    group.tell(plan(1, c1="01", c2="23"))
    group.go_on(4)
    assert group.holds() == {"c9": ""}
    assert group.follows["c9"].troubles == {"member": "plan 1 has no member 'c9', so nothing is read; it has c1, c2"}
    group.tell(plan(2, c1="01", c9="23"))
    group.go_on(4)
    assert (group.holds(), group.follows["c9"].troubles) == ({"c9": "23"}, {})


def test_partitions_that_are_not_there_are_said_and_taken_once_they_are(group: Group) -> None:
    kafka = group.kafka
    group.start("c1")
    group.tell(plan(1, c1="01345"))
    group.go_on(4)
    assert group.holds() == {"c1": "013"}
    assert group.follows["c1"].troubles == {
        "absent": "plan 1 assigns t-4, t-5, which do not exist",
        "left out": "plan 1 does not assign t-2: nobody reads them",
    }
    kafka.ends |= {("t", 4): 2, ("t", 5): 2, ("t", 6): 2}
    group.go_on(LEASE + 4)
    assert group.holds() == {"c1": "01345"}
    assert group.follows["c1"].troubles == {"left out": "plan 1 does not assign t-2, t-6: nobody reads them"}


@pytest.mark.parametrize("heard_by", ["a commit", "the consumer", "nothing"])
def test_a_topic_that_is_deleted_ends_nothing(group: Group, heard_by: str) -> None:
    group.start("c1")
    both = plan(1, c1="01").assignment["c1"]
    group.tell(FollowedPlan("billing", 1, {"c1": (*both, ("u", 0))}))
    group.kafka.ends["u", 0] = 5
    group.go_on(4)
    assert group.holds() == {"c1": "010"}
    del group.kafka.ends["u", 0]
    del group.kafka.commits["u", 0]
    if heard_by == "the consumer":
        consumer: Any = group.follows["c1"]._consumer
        consumer.errors.append(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    if heard_by == "a commit":
        group.follows["c1"].commit()
    group.go_on(2 if heard_by != "nothing" else 10)
    assert group.holds() == {"c1": "01"}
    group.go_on(LEASE)
    assert group.follows["c1"].troubles["absent"] == "plan 1 assigns u-0, which do not exist"


# ---- what fails ------------------------------------------------------------------------------------------------------


def test_the_message_at_hand_counts_only_when_the_loop_asks_for_the_next(group: Group) -> None:
    group.start("c1")
    group.tell(plan(1, c1="0"))
    group.go_on(2)
    group.kafka.now += 1
    follow, kafka = group.follows["c1"], group.kafka

    def offsets(failing: bool) -> Iterator[int]:
        for message in follow.consume(0):
            yield message.offset()
            if failing:
                raise ArithmeticError

    failing = offsets(failing=True)
    first = next(failing)
    with pytest.raises(ArithmeticError):
        next(failing)
    follow.commit()
    assert kafka.commits["t", 0][0] == first
    assert list(offsets(failing=False)) == [first]
    follow.commit()
    assert kafka.commits["t", 0][0] == first + 1


def test_batches_count_whole(group: Group) -> None:
    group.start("c1")
    group.tell(plan(1, c1="01"))
    for _ in range(4):
        group.kafka.now += 1
        if group.follows["c1"].holds:
            break
        group.follows["c1"]._attend()
    batch = next(group.follows["c1"].batches(6, 0))
    assert len(batch) == 6
    group.follows["c1"].commit()
    assert {group.kafka.commits[key][0] for key in PARTITIONS[:2]} == {0}
    (again,) = group.follows["c1"].batches(6, 0)
    assert again == batch
    group.follows["c1"].close()
    assert sum(group.kafka.commits[key][0] for key in PARTITIONS[:2]) == 6
    assert list(group.follows["c1"].consume(0)) == []


@pytest.mark.parametrize("call", ["commit", "answer to commit"])
def test_a_partition_is_handed_on_by_its_commit_only(group: Group, call: str) -> None:
    group.start("c1", "c2")
    group.tell(plan(1, c1="01", c2="23"))
    group.go_on(4)
    group.tell(plan(2, c1="0", c2="123"))
    group.kafka.failing = {call}
    group.kafka.now += 1
    with pytest.raises(KafkaException, match="TIMED_OUT"):
        group.step("c1")
    assert ("t", 1) not in group.follows["c1"]._consumer.positions
    assert ("c1", "revoke", [("t", 1)]) in group.heard
    group.kafka.failing = set()
    group.go_on(12)
    assert group.holds() == {"c1": "0", "c2": "123"}
    assert [each for each in group.heard if each[:2] == ("c1", "revoke")] == [("c1", "revoke", [("t", 1)])]
    done = Counter((key, offset) for _, key, offset in group.processed)
    assert set(done.values()) == {1}


@pytest.mark.parametrize("call", ["commit", "answer to commit"])
def test_a_partition_that_could_not_be_handed_on_is_read_again_where_a_plan_gives_it_back(
    group: Group, call: str
) -> None:
    group.start("c1", "c2")
    group.tell(plan(1, c1="01", c2="23"))
    group.go_on(4)
    group.tell(plan(2, c1="0", c2="123"), "c1")
    group.kafka.failing = {call}
    group.kafka.now += 1
    with pytest.raises(KafkaException, match="TIMED_OUT"):
        group.step("c1")
    group.kafka.failing = set()
    group.tell(plan(3, c1="01", c2="23"))
    group.go_on(10)
    assert group.holds() == {"c1": "01", "c2": "23"}
    assert ("t", 1) in group.follows["c1"]._consumer.positions
    assert set(Counter((key, offset) for _, key, offset in group.processed).values()) == {1}
    assert len(group.processed) == 20


def test_who_closes_writes_over_nobody(group: Group) -> None:
    group.start("c1", "c2")
    group.tell(plan(1, c1="0123"), "c1")
    group.go_on(1)  # claimed
    group.kafka.commits["t", 0] = (0, Ownership(2, "c2", "a").encode())
    group.follows.pop("c1").close()
    assert owner(group.kafka, 0) == Ownership(2, "c2", "a")
    assert owner(group.kafka, 1) == Ownership(1, None)


def test_the_history_of_a_topic_is_no_news(group: Group, caplog: pytest.LogCaptureFixture) -> None:
    group.start("c1")
    history = [plan(number, c1="0") for number in range(1, 5)]
    for each in history * 2:
        group.tell(each)
    with caplog.at_level(logging.WARNING):
        group.go_on(1)
    assert group.follows["c1"].plan == history[-1]
    assert not [each for each in caplog.records if "older" in each.getMessage()]


def test_commits_that_cannot_be_read_are_borne_for_half_a_lease(group: Group, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "evenlag")
    group.start("c1")
    group.tell(plan(1, c1="01"))
    group.go_on(4)
    group.kafka.failing = {"committed"}
    group.go_on(LEASE / 2)
    trouble = group.follows["c1"].troubles["commits"]
    assert trouble == "the group's commits cannot be read (Local: Timed out)"
    group.kafka.now += 1
    for _ in range(2):
        with pytest.raises(KafkaException, match="TIMED_OUT"):
            group.step("c1")
    group.kafka.failing = set()
    group.go_on(4)
    assert "commits" not in group.follows["c1"].troubles
    said = [line for line in caplog.messages if trouble in line]
    assert said == [f"c1: {trouble}", f"c1: resolved: {trouble}"]
    assert group.holds() == {"c1": "01"}


def test_partitions_without_a_leader_hold_up_no_commits_and_no_others(
    group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "evenlag")
    group.start("c1")
    group.tell(plan(1, c1="0"))
    group.go_on(3)
    group.kafka.leaderless = {("t", 1), ("t", 2)}
    group.tell(plan(2, c1="0123"))
    for _ in range(6):  # one of them is asked for at each look
        before = group.kafka.now
        group.go_on(1)
        assert group.kafka.now - before <= 1 + 30 / 6
    assert group.holds() == {"c1": "03"}
    untold = "the start offset is unknown (Local: Timed out)"
    assert group.follows["c1"].waiting == {("t", 1): untold, ("t", 2): untold}
    group.kafka.leaderless = {("t", 1)}
    group.go_on(6)
    assert group.holds() == {"c1": "023"}
    assert [line for line in caplog.messages if untold in line] == [f"c1 waits for t-1, t-2, t-3: {untold}"]


def test_commits_of_others_are_an_error(group: Group) -> None:
    group.start("c1")
    group.tell(plan(1, c1="01"))
    group.go_on(4)
    group.kafka.commits["t", 1] = (4, "")
    group.kafka.now += 1
    with pytest.raises(FollowError, match=r"t-1: another client has committed; set enable\.auto\.commit to false"):
        group.step("c1")
    assert group.holds() == {"c1": ""}


def test_members_that_subscribe_are_an_error(group: Group) -> None:
    group.start("c1")
    group.tell(plan(1, c1="01"))
    group.go_on(4)
    group.kafka.subscribed = True
    with pytest.raises(FollowError, match="the group has members that subscribe to topics: stop them"):
        group.follows["c1"].commit()
    assert group.holds() == {"c1": ""}


def test_other_errors_of_the_consumer_are_raised(group: Group) -> None:
    group.start("c1")
    group.tell(plan(1, c1="01"))
    group.go_on(4)
    consumer: Any = group.follows["c1"]._consumer
    consumer.errors = [KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), KafkaError(KafkaError._PARTITION_EOF)]
    group.step("c1")
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        group.step("c1")


def test_messages_that_come_with_an_error_are_given_by_the_next_call(group: Group) -> None:
    group.start("c1")
    group.tell(plan(1, c1="0"))
    group.go_on(4)
    follow, kafka = group.follows["c1"], group.kafka
    processed = [offset for _, _, offset in group.processed]
    consumer: Any = follow._consumer
    consumer.errors = [KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)]
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        next(follow.batches(3, 0))
    given = [message.offset() for _ in range(3) for batch in follow.batches(3, 0) for message in batch]
    assert processed + given == list(range(5))
    follow.commit()
    assert kafka.commits["t", 0][0] == 5


def test_metadata_of_a_newer_evenlag_are_left_alone(group: Group) -> None:
    group.kafka.commits["t", 1] = (3, '{"evenlag": 2, "whose": "c1"}')
    group.start("c1")
    group.tell(plan(1, c1="01"))
    group.go_on(2 * LEASE)
    assert group.holds() == {"c1": "0"}
    assert "metadata of version 2, not 1" in group.follows["c1"].waiting["t", 1]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lease": 0}, "lease must be a number of seconds > 0"),
        ({"member": ""}, "member must be the consumer's name in the plan"),
        ({"rack": ""}, "rack must be the name of a rack"),
        ({"rack": "é" * 128}, "rack must be the name of a rack, .* of up to 255 bytes"),
        ({"auto_offset_reset": "none"}, "auto_offset_reset must be one of latest, earliest, not 'none'"),
    ],
)
def test_parameters_are_checked(kafka: Kafka, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidProblemError, match=message):
        Follow(Consumer(kafka), Told(), **{"member": "c1"} | parameters)


@pytest.mark.parametrize("metadata", [None, "", "offset 7", "[1]", "7", '{"plan": 1}', "[" * 100_000])
def test_metadata_of_others_say_nothing(metadata: str | None) -> None:
    assert Ownership.decode(metadata) is None


def test_a_rack_makes_another_form_of_metadata() -> None:
    told = Ownership(1, "c1", "a", 2, "zone-a")
    assert Ownership.decode(told.encode()) == told
    assert json.loads(told.encode())["evenlag"] == 2
    assert json.loads(replace(told, rack=None).encode()) == {
        "evenlag": 1, "plan": 1, "owner": "c1", "instance": "a", "beat": 2
    }  # fmt: skip
    for wrong in ({"rack": 5}, {"rack": None}, {"evenlag": 1}):
        with pytest.raises(UserDataError, match="metadata of version"):
            Ownership.decode(json.dumps(json.loads(told.encode()) | wrong))


def test_members_with_and_without_racks_hand_partitions_to_each_other(group: Group) -> None:
    group.start("c1", rack="zone-a")
    group.start("c2")
    for version, (mine, yours) in enumerate([("01", "23"), ("13", "02"), ("2", "013")], 1):
        group.tell(plan(version, c1=mine, c2=yours))
        group.go_on(10)
        assert group.holds() == {"c1": mine, "c2": yours}
        told = [owner(group.kafka, number) for number in range(4)]
        assert [None if each is None else each.rack for each in told] == [
            "zone-a" if str(number) in mine else None for number in range(4)
        ]


@pytest.mark.parametrize("field", ["plan", "owner", "instance", "beat"])
def test_metadata_that_cannot_be_are_an_error(field: str) -> None:
    document = json.loads(Ownership(1, "c1", "a", 2).encode())
    with pytest.raises(UserDataError, match="metadata of version 1 with a value of the wrong type"):
        Ownership.decode(json.dumps(document | {field: 1.5}))
    del document[field]
    with pytest.raises(UserDataError, match="metadata of version 1"):
        Ownership.decode(json.dumps(document))


# ---- plans in their places -------------------------------------------------------------------------------------------

GOOD: Mapping[str, Any] = {"group": "billing", "assignment": {"c1": [["t", 0]], "c2": [["t", 1]]}}


def test_a_plan_is_published_under_a_higher_version_and_read(tmp_path: Path) -> None:
    path = tmp_path / "followed.json"
    file = PlanFile(path, "billing")
    (missing,) = file.news()
    assert str(missing) == f"{path}: cannot be read (no such file or directory)"
    first = publish(GOOD | {"spread": 3, "version": 7}, file)
    assert json.loads(path.read_text()) == {**GOOD, "version": first.version}
    assert file.news() == [first]
    assert file.news() == []
    second = publish(GOOD, file)
    assert second.version > first.version
    assert file.news() == [second]
    path.write_text(json.dumps(GOOD | {"version": 2**62}))
    assert publish(GOOD, file).version == 2**62 + 1
    path.write_text("{")
    (broken,) = file.news()
    assert str(broken).startswith(f"{path}: not valid JSON (")
    assert publish(GOOD, file).version > second.version


BROKEN: list[tuple[Any, str]] = [
    ([], "a plan must be a JSON object with group, version and assignment"),
    (GOOD, "the plan has no version; publish it by `evenlag publish`, which adds one"),
    (GOOD | {"version": 0}, "version must be a whole number from 1, not 0"),
    (GOOD | {"version": "1"}, "version must be a whole number from 1, not '1'"),
    (GOOD | {"version": 1, "group": ""}, "group must be a name, not ''"),
    (GOOD | {"version": 1, "group": "other"}, "a plan for group 'other', not 'billing'"),
    (GOOD | {"version": 1, "assignment": []}, "assignment must map each member to its partitions"),
    (GOOD | {"version": 1, "assignment": {"c1": "t"}}, "member 'c1': partitions must be a list, not t"),
    (
        GOOD | {"version": 1, "assignment": {"c1": [["t", -1]]}},
        "member 'c1': ['t', -1] is not a [topic, partition] pair",
    ),
    (
        GOOD | {"version": 1, "assignment": {"c1": [["t", True]]}},
        "member 'c1': ['t', True] is not a [topic, partition] pair",
    ),
    (
        GOOD | {"version": 1, "assignment": {"c1": [["\ud800", 1]]}},
        "member 'c1': ['\\ud800', 1] is not a [topic, partition] pair",
    ),
    (GOOD | {"version": 1, "assignment": {"c\ud800": []}}, "'c\\ud800' is not a valid member name"),
    (GOOD | {"version": 1, "assignment": {"c1": ["t-1"]}}, "member 'c1': t-1 is not a [topic, partition] pair"),
    (
        GOOD | {"version": 1, "assignment": {"c1": [["t", 0]], "c2": [["t", 0]]}},
        "the plan assigns t-0 to both 'c1' and 'c2'",
    ),
]


@pytest.mark.parametrize(("document", "message"), BROKEN, ids=[message[:30] for _, message in BROKEN])
def test_what_is_no_plan_is_told(tmp_path: Path, document: Any, message: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document))
    (told,) = PlanFile(path, "billing").news()
    assert isinstance(told, InvalidPlanError)
    assert str(told).startswith(f"{path}: {message}")


def test_a_member_named_twice_is_told(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text('{"group": "billing", "version": 1, "assignment": {"c1": [], "c1": [["t", 0]]}}')
    (told,) = PlanFile(path, "billing").news()
    assert "'c1' is given twice" in str(told)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (GOOD | {"assignment": {"c1": [["t", 0], ["t", 0]]}}, "the plan assigns t-0 to both 'c1' and 'c1'"),
        (GOOD | {"assignment": {"c1": []}}, "assigns no partition; all its consumers would stop"),
        (GOOD | {"group": "other"}, "is for group 'billing', but the plan is for 'other'"),
        ({}, "group must be a name, not None"),
    ],
)
def test_a_broken_plan_is_not_published(tmp_path: Path, document: Mapping[str, Any], message: str) -> None:
    path = tmp_path / "followed.json"
    with pytest.raises(InvalidPlanError, match=message):
        publish(document, PlanFile(path, "billing"))
    assert not path.exists()


def test_the_command_publishes_a_result_file(tmp_path: Path) -> None:
    problem = tmp_path / "problem.json"
    problem.write_text(json.dumps({"group": "billing", "topics": {"t": [5, 4, 3]}, "members": MEMBERS}))
    plan_file, place = tmp_path / "plan.json", tmp_path / "followed.json"
    assert evenlag("plan", problem, "--out", plan_file).returncode == 0
    done = evenlag("publish", plan_file, place)
    assert (done.returncode, done.stderr) == (0, "")
    (published,) = PlanFile(place, "billing").news()
    assert isinstance(published, FollowedPlan)
    assert published.to_dict()["assignment"] == json.loads(plan_file.read_text())["assignment"]
    assert done.stdout == f"group billing: version {published.version}, 3 partitions to 2 members, at {place}\n"
    told = json.loads(evenlag("publish", plan_file, place, "--json").stdout)
    assert told["version"] > published.version
    refused(evenlag("publish", problem, place), f"{problem}: assignment must map each member to its partitions")
    refused(evenlag("publish", tmp_path / "none.json", place), "cannot be read")
    refused(
        evenlag("publish", plan_file, "kafka://plans"),
        "kafka://plans: not a topic address; write kafka://HOST:PORT/TOPIC",
    )


MEMBERS = {"c1": {"topics": ["t"]}, "c2": {"topics": ["t"]}}


def test_a_place_of_plans_is_a_file_or_one_topic() -> None:
    place = place_of("kafka://a:1,b:2/plans", "billing", {"client.id": "c"})
    assert isinstance(place, PlanTopic)
    assert (place.topic, place.group) == ("plans", "billing")
    assert place._config == {"log_level": 0, "client.id": "c", "bootstrap.servers": "a:1,b:2"}
    assert isinstance(place_of("plans.json", "billing"), PlanFile)
    for text, why in {
        "kafka://a/plans": "not a topic address; write kafka://",
        "kafka://a:1/t,u": "several topics; name one topic of plans",
    }.items():
        with pytest.raises(SourceError, match=f"^{text}: {why}"):
            place_of(text, "billing")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            KafkaError.UNKNOWN_TOPIC_OR_PART,
            "Broker: Unknown topic or partition; create it with cleanup.policy=compact",
        ),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "Broker: Topic authorization failed"),
    ],
)
def test_why_a_topic_of_plans_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch, error: int, said: str) -> None:
    described = SimpleNamespace(topics={"plans": SimpleNamespace(error=KafkaError(error), partitions={})})
    reader = SimpleNamespace(list_topics=lambda *_, **__: described, close=lambda: None)
    monkeypatch.setattr(confluent_kafka, "Consumer", lambda _: reader)
    (news,) = PlanTopic("plans", {}, "billing").news()
    assert str(news) == f"topic plans: {said}"


def test_a_topic_that_could_not_be_written_is_read_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_plan, "ANSWER_LIMIT", 0.1)
    place = PlanTopic("plans", {"bootstrap.servers": "127.0.0.1:9", "log_level": 0}, "billing")
    with pytest.raises(SourceError, match="topic plans: the plan was not written"):
        place.write(plan(1, c1="0"))
    assert place._reader is None
    (unread,) = place.news()
    assert str(unread).startswith("topic plans: cannot be read (")


def test_nothing_is_published_where_the_plan_before_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have a higher version, and followers would keep it."""
    folder = tmp_path / "plans.json"
    folder.mkdir()
    with pytest.raises(SourceError, match=r"plans\.json: cannot be read \(is a directory\)"):
        publish(GOOD, PlanFile(folder, "billing"))
    monkeypatch.setattr(followed_plan, "ANSWER_LIMIT", 0.1)
    topic = PlanTopic("plans", {"bootstrap.servers": "127.0.0.1:9", "log_level": 0}, "billing")
    with pytest.raises(SourceError, match=r"topic plans: cannot be read \([^{}]+\)$"):
        publish(GOOD, topic)


def test_a_topic_of_plans_needs_a_group() -> None:
    with pytest.raises(SourceError, match="topic plans: the group is unknown"):
        PlanTopic("plans", {"bootstrap.servers": "localhost:9092"})
