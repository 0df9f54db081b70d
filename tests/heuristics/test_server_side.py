"""The assignors of a broker, in a broker's order, against golden files recorded from Kafka's own classes."""

import json
from collections import Counter
from functools import cache
from random import Random
from typing import Any

import pytest

from evenlag import Problem
from evenlag.errors import InvalidProblemError
from evenlag.heuristics.java_hash import hash_codes, timeline_order
from evenlag.heuristics.server_side import assign_in_broker
from evenlag.model.problem import NOBODY
from tests.oracle import golden, kafka
from tests.oracle.compare import Comparison
from tests.oracle.sequences import BROKER, broker_steps, plan_of, play, problem_of
from tests.support.problems import seeds

Request = dict[str, Any]


@cache
def recorded() -> list[Request]:
    head, *requests = [json.loads(line) for line in golden.BROKERS.read_text().splitlines()]
    assert head == {
        "kafka": [kafka.VERSION, kafka.NEWEST],
        "seed": golden.SEED,
        "sequences": golden.BROKER_SEQUENCES,
    }
    return requests


@pytest.mark.parametrize("assignor", BROKER)
def test_equals_what_a_broker_assigned_to_the_partition(assignor: str) -> None:
    comparison = Comparison()
    for request in recorded():
        if request["assignor"] == assignor:
            comparison.add(request, request["member_of"])
    assert comparison.counts["identical"] == comparison.steps == 5 * golden.BROKER_SEQUENCES
    assert comparison.counts["invalid"] == comparison.kafka_failed == 0


@pytest.mark.slow
def test_recorded_groups_need_the_order_of_a_broker() -> None:
    """Without ids of instances and topics, and the order of joining, answers differ; groups are of many kinds."""
    kinds: Counter[str] = Counter()
    for request in recorded():
        problem, assignor = problem_of(request), request["assignor"].removesuffix("-broker")
        kinds["equal" if problem.equal_subscriptions else "mixed"] += 1
        kinds["owned"] += bool((problem.owner != NOBODY).any())
        kinds["racks"] += "racks" in request
        instances = {name: entry.get("instance") for name, entry in request["members"].items()}
        kinds["static members"] += None not in instances.values()
        kinds["static and dynamic members"] += None in instances.values() and len(set(instances.values())) > 1
        asked = {
            "instance_ids": {name: instance for name, instance in instances.items() if instance},
            "topic_ids": request["ids"],
            "joined": list(request["members"]),
        }
        assert assign_in_broker(problem, assignor, **asked).member_of.tolist() == request["member_of"]
        for name in asked:
            without = assign_in_broker(problem, assignor, **{key: given for key, given in asked.items() if key != name})
            kinds[f"{assignor} needs {name}"] += without.member_of.tolist() != request["member_of"]
    assert kinds.pop("range needs topic_ids") == kinds.pop("range needs joined") == 0
    assert kinds.pop("uniform needs instance_ids") == 0
    assert len(kinds) == 9
    assert min(kinds.values()) >= 5, kinds


@pytest.mark.broker
@pytest.mark.parametrize("version", list(kafka.POMS))
def test_the_classes_of_both_versions_still_answer_as_recorded(version: str) -> None:
    try:
        with kafka.running_oracle(version=version) as oracle:
            assert golden.broker(oracle) == golden.BROKERS.read_text()
    except kafka.UnavailableError as reason:
        pytest.skip(str(reason))


@pytest.mark.broker
@pytest.mark.parametrize("version", list(kafka.POMS))
@pytest.mark.parametrize("assignor", BROKER)
def test_groups_that_are_not_recorded_are_the_same_too(assignor: str, version: str) -> None:
    comparison = Comparison()
    try:
        with kafka.running_oracle(version=version) as oracle:
            for number in seeds(60):
                for request, answer in play(broker_steps(2, number), assignor, oracle.assign):
                    comparison.add(request, answer)
    except kafka.UnavailableError as reason:
        pytest.skip(str(reason))
    assert comparison.counts["identical"] == comparison.steps > 4 * len(seeds(60))


def test_the_order_of_the_input_does_not_matter() -> None:
    random = Random(7)
    for request in recorded()[::3]:
        members, topics = list(request["members"].items()), list(request["topics"].items())
        random.shuffle(members)
        random.shuffle(topics)
        shuffled = problem_of(request | {"topics": dict(topics), "members": dict(members)})
        assert plan_of(request, shuffled).member_of.tolist() == request["member_of"]


def test_static_members_come_first_in_the_order_of_their_instances() -> None:
    problem = Problem.from_lags({"t": [0] * 4}, ["a", "b", "c"])
    plan = assign_in_broker(problem, "range", instance_ids={"b": "host-2", "c": "host-1"})
    assert plan.assignment == {"a": [("t", 3)], "b": [("t", 2)], "c": [("t", 0), ("t", 1)]}


def test_a_group_without_members_or_topics_gets_nothing() -> None:
    for assignor in ("uniform", "range"):
        assert assign_in_broker(Problem.from_lags({"t": [1, 2]}, []), assignor).member_of.tolist() == [NOBODY, NOBODY]
        assert assign_in_broker(Problem.from_lags({}, ["a"]), assignor).assignment == {"a": []}


def test_an_unreadable_id_and_an_unknown_assignor_are_named() -> None:
    problem = Problem.from_lags({"t": [1, 2]}, ["a"])
    with pytest.raises(InvalidProblemError, match="topic 't': 'abc' is not the id of a topic"):
        assign_in_broker(problem, topic_ids={"t": "abc"})
    with pytest.raises(InvalidProblemError, match="'uniform2'"):
        assign_in_broker(problem, "uniform2")  # type: ignore[arg-type]


def test_timeline_order_goes_by_the_top_bits() -> None:
    """Computed from Kafka's rule by hand: hash code 97 + i, times the constant, its top three bits of 64."""
    names = ["a", "b", "c", "d", "e", "f"]
    slots = [((97 + i) * -7046029254386353131 % (1 << 64)) >> 61 for i in range(6)]
    assert timeline_order(hash_codes(names)).tolist() == sorted(range(6), key=slots.__getitem__)


def test_the_map_of_members_does_not_shrink() -> None:
    """As a broker of 4.1.0 answered after the first of three members had left; both ids are in one slot of two."""
    names = ["BF-B2tK7RUiJsFmIewE_mA", "suV0HNO3TuWZDKhWUtBfYg"]
    owned = {names[0]: [("r", p) for p in (0, 2, 3, 4, 5, 6)]}
    owned[names[1]] = [*(("o", p) for p in (2, 3, 5, 7, 11, 12)), ("r", 1)]
    problem = Problem.from_lags({"o": [0] * 13, "r": [0] * 7}, names, owned=owned)
    plan = assign_in_broker(problem, joined=["7DnAyHJHT3S8qcNQVoPL-Q", names[1], names[0]], most_members=3)
    assert [p for topic, p in plan.assignment[names[1]] if topic == "o"] == [0, 1, 2, 3, 4, 5, 7, 11, 12]
    assert plan.assignment[names[0]][:4] == [("o", 6), ("o", 8), ("o", 9), ("o", 10)]
