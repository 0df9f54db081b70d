"""Followers when something fails: commits, plans, topics, and the loop that processes messages."""

import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from evenlag.errors import FollowError, InvalidPlanError, InvalidProblemError
from evenlag.live.follow import (
    Follow,
    FollowedPlan,
)
from evenlag.live.ownership import Ownership
from tests.support.plain_kafka import LEASE, PARTITIONS, Consumer, Group, Inbox, Kafka, committed_owner, plan


def test_a_broken_or_older_plan_changes_nothing_and_is_reported_once(
    group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    group.start("c1")
    group.run_for(2)
    assert group.follows["c1"].troubles["plan"].startswith("no plan of group 'billing' in ")
    group.deliver(plan(5, c1="0123"))
    group.run_for(4)
    assert group.follows["c1"].troubles == {}
    keeping = "; this consumer stays at version 5"
    for news, trouble in [
        (InvalidPlanError("plan.json: not valid JSON"), f"plan.json: not valid JSON{keeping}"),
        (plan(4, c1="0"), f"version 4 is older{keeping}; to go back to it, publish it again"),
        (plan(5, c1="0"), f"another plan of the same version{keeping}; publish it again"),
    ]:
        group.deliver(news)
        group.deliver(news)
        with caplog.at_level(logging.WARNING):
            caplog.clear()
            group.run_for(4)
        assert trouble in group.follows["c1"].troubles["plan"]
        assert len(caplog.records) == 1
        assert group.holds() == {"c1": "0123"}
    group.deliver(plan(5, c1="0123"))
    group.run_for(1)
    assert group.follows["c1"].troubles == {}


def test_a_member_outside_the_plan_gets_nothing_and_reports_it(group: Group) -> None:
    group.start("c9")
    group.deliver(plan(1, c1="01", c2="23"))
    group.run_for(4)
    assert group.holds() == {"c9": ""}
    assert group.follows["c9"].troubles == {"member": "plan 1 has no member 'c9', so nothing is read; it has c1, c2"}
    group.deliver(plan(2, c1="01", c9="23"))
    group.run_for(4)
    assert (group.holds(), group.follows["c9"].troubles) == ({"c9": "23"}, {})


def test_missing_partitions_are_reported_and_taken_once_they_exist(group: Group) -> None:
    kafka = group.kafka
    group.start("c1")
    group.deliver(plan(1, c1="01345"))
    group.run_for(4)
    assert group.holds() == {"c1": "013"}
    assert group.follows["c1"].troubles == {
        "absent": "plan 1 assigns t-4, t-5, which do not exist",
        "left out": "plan 1 does not assign t-2: nobody reads them",
    }
    kafka.ends |= {("t", 4): 2, ("t", 5): 2, ("t", 6): 2}
    group.run_for(LEASE + 4)
    assert group.holds() == {"c1": "01345"}
    assert group.follows["c1"].troubles == {"left out": "plan 1 does not assign t-2, t-6: nobody reads them"}


@pytest.mark.parametrize("heard_by", ["a commit", "the consumer", "nothing"])
def test_a_deleted_topic_stops_no_follower(group: Group, heard_by: str) -> None:
    group.start("c1")
    both = plan(1, c1="01").assignment["c1"]
    group.deliver(FollowedPlan("billing", 1, {"c1": (*both, ("u", 0))}))
    group.kafka.ends["u", 0] = 5
    group.run_for(4)
    assert group.holds() == {"c1": "010"}
    del group.kafka.ends["u", 0]
    del group.kafka.commits["u", 0]
    if heard_by == "the consumer":
        consumer: Any = group.follows["c1"]._consumer
        consumer.errors.append(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    if heard_by == "a commit":
        group.follows["c1"].commit()
    group.run_for(2 if heard_by != "nothing" else 10)
    assert group.holds() == {"c1": "01"}
    group.run_for(LEASE)
    assert group.follows["c1"].troubles["absent"] == "plan 1 assigns u-0, which do not exist"


def test_a_message_is_committed_only_once_the_loop_asks_for_the_next(group: Group) -> None:
    group.start("c1")
    group.deliver(plan(1, c1="0"))
    group.run_for(2)
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


def test_a_batch_is_committed_as_a_whole(group: Group) -> None:
    group.start("c1")
    group.deliver(plan(1, c1="01"))
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
def test_a_partition_is_handed_over_only_by_its_commit(group: Group, call: str) -> None:
    group.start("c1", "c2")
    group.deliver(plan(1, c1="01", c2="23"))
    group.run_for(4)
    group.deliver(plan(2, c1="0", c2="123"))
    group.kafka.failing = {call}
    group.kafka.now += 1
    group.run_once("c1")
    assert group.follows["c1"].troubles["brokers"] == "waits for the brokers (Local: Timed out)"
    assert ("t", 1) not in group.follows["c1"]._consumer.positions
    assert ("c1", "revoke", [("t", 1)]) in group.callbacks
    group.kafka.failing = set()
    group.run_for(12)
    assert group.holds() == {"c1": "0", "c2": "123"}
    assert [each for each in group.callbacks if each[:2] == ("c1", "revoke")] == [("c1", "revoke", [("t", 1)])]
    done = Counter((key, offset) for _, key, offset in group.processed)
    assert set(done.values()) == {1}


@pytest.mark.parametrize("call", ["commit", "answer to commit"])
def test_a_partition_whose_handover_failed_is_read_again_when_a_plan_returns_it(group: Group, call: str) -> None:
    group.start("c1", "c2")
    group.deliver(plan(1, c1="01", c2="23"))
    group.run_for(4)
    group.deliver(plan(2, c1="0", c2="123"), "c1")
    group.kafka.failing = {call}
    group.kafka.now += 1
    group.run_once("c1")
    group.kafka.failing = set()
    group.deliver(plan(3, c1="01", c2="23"))
    group.run_for(10)
    assert group.holds() == {"c1": "01", "c2": "23"}
    assert ("t", 1) in group.follows["c1"]._consumer.positions
    assert set(Counter((key, offset) for _, key, offset in group.processed).values()) == {1}
    assert len(group.processed) == 20


def test_closing_overwrites_no_other_owner(group: Group) -> None:
    group.start("c1", "c2")
    group.deliver(plan(1, c1="0123"), "c1")
    group.run_for(1)  # claimed
    group.kafka.commits["t", 0] = (0, Ownership(2, "c2", "a").encode())
    group.follows.pop("c1").close()
    assert committed_owner(group.kafka, 0) == Ownership(2, "c2", "a")
    assert committed_owner(group.kafka, 1) == Ownership(1, None)


def test_older_plans_in_a_topic_are_not_reported(group: Group, caplog: pytest.LogCaptureFixture) -> None:
    group.start("c1")
    history = [plan(number, c1="0") for number in range(1, 5)]
    for each in history * 2:
        group.deliver(each)
    with caplog.at_level(logging.WARNING):
        group.run_for(1)
    assert group.follows["c1"].plan == history[-1]
    assert not [each for each in caplog.records if "older" in each.getMessage()]


@pytest.mark.parametrize("calls", [{"committed"}, {"commit"}, {"committed", "commit", "list_topics"}])
def test_an_outage_shorter_than_the_lease_is_waited_out(
    calls: set[str], group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "evenlag")
    group.start("c1")
    group.deliver(plan(1, c1="01"))
    group.run_for(4)
    group.kafka.failing = calls
    group.kafka.ends |= dict.fromkeys(PARTITIONS, 100)
    group.run_for(10)
    before = len(group.processed)
    group.run_for(10)
    assert len(group.processed) == before + 10  # it reads on
    trouble = "waits for the brokers (Local: Timed out)"
    assert group.follows["c1"].troubles["brokers"] == trouble
    group.kafka.failing = set()
    group.run_for(4)
    assert "brokers" not in group.follows["c1"].troubles
    lines = [line for line in caplog.messages if "brokers" in line]
    assert lines == [f"c1: {trouble}", f"c1: resolved: {trouble}"]
    assert group.callbacks == [("c1", "assign", [("t", 0), ("t", 1)])]


def test_a_follower_stops_reading_when_its_lease_has_run_out_and_goes_on_later(group: Group) -> None:
    group.start("c1")
    group.deliver(plan(1, c1="01"))
    group.run_for(10)
    group.kafka.ends |= dict.fromkeys(PARTITIONS, 1000)
    group.kafka.failing = {"committed", "commit"}
    group.run_for(LEASE)
    before, follow = len(group.processed), group.follows["c1"]
    group.run_for(3 * LEASE)
    assert len(group.processed) == before
    assert follow.holds == []
    assert follow.waiting == dict.fromkeys(PARTITIONS[:2], "the lease has run out, waiting for a commit")
    group.kafka.failing = set()
    group.run_for(1)
    assert follow.holds == []  # a claim by another might still come
    group.run_for(20)
    assert group.holds() == {"c1": "01"}
    assert follow.waiting == {}
    done = [(key, offset) for _, key, offset in group.processed]
    assert len(done) > before
    assert sorted(done) == [(key, n) for key in PARTITIONS[:2] for n in range(sum(key == k for k, _ in done))]
    assert group.callbacks == [("c1", "assign", [("t", 0), ("t", 1)])]


def test_a_follower_that_was_cut_off_reads_nothing_that_others_have_taken(group: Group) -> None:
    group.start("c1", "c2")
    group.deliver(plan(1, c1="01", c2="23"))
    group.run_for(10)
    group.kafka.ends |= dict.fromkeys(PARTITIONS, 1000)
    consumer: Any = group.follows["c1"]._consumer
    consumer.cut_off = True
    group.deliver(plan(2, c2="0123"))
    group.run_for(2 * LEASE)
    assert group.holds() == {"c1": "", "c2": "0123"}
    reads = [name for name, key, _ in group.processed if key == ("t", 0)]
    assert reads == sorted(reads)  # c1 no more once c2 has begun
    consumer.cut_off = False
    group.run_for(5)
    assert ("c1", "lost", [("t", 0), ("t", 1)]) in group.callbacks
    assert group.holds() == {"c1": "", "c2": "0123"}


def test_an_error_that_does_not_pass_is_raised_at_once(group: Group) -> None:
    group.start("c1")
    group.deliver(plan(1, c1="01"))
    group.run_for(4)
    group.kafka.failing = {"committed"}
    group.kafka.error = KafkaError.GROUP_AUTHORIZATION_FAILED
    group.kafka.now += 1
    for _ in range(2):
        with pytest.raises(KafkaException, match="GROUP_AUTHORIZATION_FAILED"):
            group.run_once("c1")
    group.kafka.failing = set()
    group.run_for(4)
    assert group.holds() == {"c1": "01"}


def test_a_commit_that_the_program_asks_for_raises_any_error(group: Group) -> None:
    group.start("c1")
    group.deliver(plan(1, c1="01"))
    group.run_for(4)
    group.kafka.failing = {"committed"}
    group.kafka.now += 1
    with pytest.raises(KafkaException, match="TIMED_OUT"):
        group.follows["c1"].commit()


def test_partitions_without_a_leader_delay_neither_commits_nor_other_partitions(
    group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "evenlag")
    group.start("c1")
    group.deliver(plan(1, c1="0"))
    group.run_for(3)
    group.kafka.leaderless = {("t", 1), ("t", 2)}
    group.deliver(plan(2, c1="0123"))
    for _ in range(6):  # one of them is asked for at each look
        before = group.kafka.now
        group.run_for(1)
        assert group.kafka.now - before <= 1 + 30 / 6
    assert group.holds() == {"c1": "03"}
    untold = "the start offset is unknown (Local: Timed out)"
    assert group.follows["c1"].waiting == {("t", 1): untold, ("t", 2): untold}
    group.kafka.leaderless = {("t", 1)}
    group.run_for(6)
    assert group.holds() == {"c1": "023"}
    assert [line for line in caplog.messages if untold in line] == [f"c1 waits for t-1, t-2, t-3: {untold}"]


def test_commits_of_others_are_an_error(group: Group) -> None:
    group.start("c1")
    group.deliver(plan(1, c1="01"))
    group.run_for(4)
    group.kafka.commits["t", 1] = (4, "")
    group.kafka.now += 1
    with pytest.raises(FollowError, match=r"t-1: another client has committed; set enable\.auto\.commit to false"):
        group.run_once("c1")
    assert group.holds() == {"c1": ""}


def test_members_that_subscribe_are_an_error(group: Group) -> None:
    group.start("c1")
    group.deliver(plan(1, c1="01"))
    group.run_for(4)
    group.kafka.subscribed = True
    with pytest.raises(FollowError, match="the group has members that subscribe to topics: stop them"):
        group.follows["c1"].commit()
    assert group.holds() == {"c1": ""}


def test_other_errors_of_the_consumer_are_raised(group: Group) -> None:
    group.start("c1")
    group.deliver(plan(1, c1="01"))
    group.run_for(4)
    consumer: Any = group.follows["c1"]._consumer
    consumer.errors = [KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), KafkaError(KafkaError._PARTITION_EOF)]
    group.run_once("c1")
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        group.run_once("c1")
    consumer.errors = [KafkaError(KafkaError._ALL_BROKERS_DOWN)]
    group.run_once("c1")


def test_messages_that_come_with_an_error_are_given_by_the_next_call(group: Group) -> None:
    group.start("c1")
    group.deliver(plan(1, c1="0"))
    group.run_for(4)
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


def test_metadata_of_a_newer_evenlag_are_not_overwritten(group: Group) -> None:
    group.kafka.commits["t", 1] = (3, '{"evenlag": 2, "whose": "c1"}')
    group.start("c1")
    group.deliver(plan(1, c1="01"))
    group.run_for(2 * LEASE)
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
        Follow(Consumer(kafka), Inbox(), **{"member": "c1"} | parameters)
