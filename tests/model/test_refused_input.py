"""Input that `Problem` and the calls on it refuse: errors name the topic, partition or member."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import evenlag
from evenlag import Problem
from evenlag.errors import EvenlagError, InfeasibleError, InvalidProblemError
from tests.support.billing import LAGS, MEMBERS, billing_document, billing_with


@pytest.mark.parametrize(
    ("wrong", "places"),
    [
        ([], ["object"]),
        (None, ["nothing"]),
        ({}, ["topics"]),
        ({"topics": {"orders": [1]}}, ["members"]),
        (billing_document(topics=[5, 3]), ["topics"]),
        (billing_document(members=["c0"]), ["members"]),
        (billing_document(topic={}), ["'topic'", "unknown"]),
        (billing_document(group=""), ["group"]),
        (billing_document(group=7), ["group"]),
        (billing_document(topics={"orders": 5}), ["orders"]),
        (billing_document(topics={"orders": "53"}), ["orders"]),
        (billing_document(topics={"orders": None}), ["orders"]),
        (billing_document(topics={"": [1]}), ["topic"]),
        (billing_document(topics={"half a pair \ud83d": [1]}), ["topic", "Unicode"]),
        (billing_document(topics={"orders": [5, -3]}), ["orders-1", "-3"]),
        (billing_document(topics={"orders": [5, 1.5]}), ["orders-1", "1.5"]),
        (billing_document(topics={"orders": [5, float("nan")]}), ["orders-1", "nan"]),
        (billing_document(topics={"orders": [5, float("inf")]}), ["orders-1", "inf"]),
        (billing_document(topics={"orders": [5, None]}), ["orders-1"]),
        (billing_document(topics={"orders": [5, "3"]}), ["orders-1", "3"]),
        (billing_document(topics={"orders": [5, True]}), ["orders-1", "True"]),
        (billing_document(topics={"orders": [5, [3]]}), ["orders-1"]),
        (billing_document(topics={"orders": [[5], [3]]}), ["orders-0"]),
        (billing_document(topics={"orders": [5, 2**62 + 1]}), ["orders-1"]),
        (billing_document(topics={"orders": {"0": 5, "7": -1}}), ["orders-7"]),
        (billing_document(topics={"orders": {"0": 5, "00": 3}}), ["orders", "partition 0", "twice"]),
        (billing_document(topics={"orders": {"0": 5, "-1": 3}}), ["orders", "-1"]),
        (billing_document(topics={"orders": {"0": 5, "x": 3}}), ["orders", "x"]),
        (billing_document(topics={"orders": {"0": 5, "1.0": 3}}), ["orders", "1.0"]),
        (billing_document(topics={"orders": {"0": 5, "1_0": 3}}), ["orders", "1_0"]),
        (billing_document(topics={"orders": {"0": 5, str(2**31): 3}}), ["orders", str(2**31)]),
        (billing_document(members={"": {"topics": ["orders"]}}), ["member"]),
        (billing_document(members={"c0": ["orders"]}), ["c0"]),
        (billing_document(members={"c0": {"topics": "orders"}}), ["c0"]),
        (billing_document(members={"c0": {"topics": 5}}), ["c0"]),
        (billing_document(members={"c0": {"topic": ["orders"]}}), ["c0", "'topic'", "unknown"]),
        (billing_with(weight=0), ["c0", "weight"]),
        (billing_with(weight=-1), ["c0", "weight"]),
        (billing_with(weight=float("nan")), ["c0", "weight"]),
        (billing_with(weight=float("inf")), ["c0", "weight"]),
        (billing_with(weight="2"), ["c0", "weight"]),
        (billing_with(weight=True), ["c0", "weight"]),
        (billing_with(max_partitions=-1), ["c0", "max_partitions"]),
        (billing_with(max_partitions=1.5), ["c0", "max_partitions"]),
        (billing_with(max_partitions="1"), ["c0", "max_partitions"]),
        (billing_with(max_partitions=True), ["c0", "max_partitions"]),
        (billing_with(generation=1.5), ["c0", "generation"]),
        (billing_with(generation="7"), ["c0", "generation"]),
        (billing_with(owned=["orders"]), ["c0", "owned"]),
        (billing_with(owned=[["orders"]]), ["c0", "owned"]),
        (billing_with(owned=[["orders", 0, 1]]), ["c0", "owned"]),
        (billing_with(owned={"orders": [0]}), ["c0", "owned"]),
        (billing_with(owned=5), ["c0", "owned"]),
        (billing_with(owned=[["orders", "0"]]), ["c0", "owned", "'0'", "a whole number"]),
        (billing_with(owned=[["orders", True]]), ["c0", "owned", "True"]),
        (billing_with(owned=[[5, 0]]), ["c0", "owned", "[5, 0]", "a text"]),
        (billing_with(topics=["orders", 5]), ["c0", "topics", "got 5"]),
        (billing_with(topics=[None]), ["c0", "topics", "got nothing"]),
        (billing_with(topics=[["orders"]]), ["c0", "topics", "got ['orders']"]),
        (billing_document(pins=[["orders", 0]]), ["pins"]),
        (billing_document(pins=5), ["pins"]),
        (billing_document(pins=[["orders", 0, "c0"], ["orders", 0, "c1"]]), ["orders-0", "c0", "c1"]),
        (billing_document(pins=[["paid", 0, "c1"]]), ["paid-0", "c1", "subscribe"]),
        (billing_document(pins=[["orders", 2, "c1"]]), ["orders-2", "c1"]),
        (billing_document(pins=[["order", 0, "c1"]]), ["order-0", "c1"]),
        (billing_document(pins=[["orders", 0, "c2"]]), ["orders-0", "c2"]),
        (billing_document(pins=[["orders", "0", "c0"]]), ["pins", "'0'", "a whole number"]),
        (billing_document(pins=[["orders", 0, ["c0"]]]), ["orders-0", "c0"]),
        (
            billing_document(
                members={"c0": {"topics": ["orders"], "max_partitions": 1}},
                pins=[["orders", 0, "c0"], ["orders", 1, "c0"]],
            ),
            ["c0", "max_partitions"],
        ),
    ],
)
def test_what_is_wrong_is_named(wrong: Any, places: list[str]) -> None:
    with pytest.raises(InvalidProblemError) as caught:
        Problem.from_dict(wrong)
    for place in places:
        assert place in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "places"),
    [
        ({"lags": {"orders": np.array([1.5, 2])}}, ["orders-0", "1.5"]),
        ({"lags": {"orders": np.array([1, np.nan])}}, ["orders-1", "nan"]),
        ({"lags": {"orders": np.array([1, -2])}}, ["orders-1", "-2"]),
        ({"lags": {"orders": np.array([2**63 + 1], dtype=np.uint64)}}, ["orders-0"]),
        ({"lags": {"orders": np.array([[1], [2]])}}, ["orders-0"]),
        ({"lags": {"orders": np.array(5)}}, ["orders", "list"]),
        ({"lags": {"orders": {0: 5, "0": 3}}}, ["orders", "twice"]),
        ({"lags": {"orders": {True: 5}}}, ["orders", "True"]),
        ({"lags": {"orders": {0.0: 5}}}, ["orders", "0.0"]),
        ({"members": {"c0": "orders"}}, ["c0"]),
        ({"members": {"c0": None}}, ["c0"]),
        ({"weights": {"c9": 1}}, ["weights", "c9"]),
        ({"weights": {"c0": Fraction(0)}}, ["c0", "weight"]),
        ({"weights": {"c0": 1j}}, ["c0", "weight"]),
        ({"max_partitions": {"c9": 1}}, ["max_partitions", "c9"]),
        ({"generations": {"c9": 1}}, ["generations", "c9"]),
        ({"pins": [("orders", 0, "c9")]}, ["orders-0", "c9"]),
        ({"pins": [("orders", 0)]}, ["pin"]),
        ({"owned": {"c0": [("orders",)]}}, ["c0", "owned"]),
        ({"owned": {"c0": "orders"}}, ["c0", "owned"]),
        ({"owned": {"c0": [(["orders"], 0)]}}, ["c0", "owned"]),
        ({"group": ""}, ["group"]),
        ({"lags": None}, ["lags", "mapping of topic", "nothing"]),
        ({"lags": "x"}, ["lags", "mapping of topic", "str"]),
        ({"lags": {"orders": np.ma.array([1, 2], mask=[False, True])}}, ["orders-1", "nothing"]),
        ({"lags": {"orders": [np.timedelta64(3, "s")]}}, ["orders-0", "timedelta64"]),
        ({"lags": {"orders": np.array([3], dtype="m8[ns]")}}, ["orders-0", "timedelta64"]),
        ({"lags": {"orders": np.array([3], dtype="M8[ns]")}}, ["orders-0", "datetime64"]),
        ({"lags": {"orders": [np.float32(1.5)]}}, ["orders-0", "1.5"]),
        ({"lags": {"orders": [np.float32("nan")]}}, ["orders-0", "nan"]),
        ({"lags": {"orders": [np.float16("inf")]}}, ["orders-0", "inf"]),
        ({"members": None}, ["members", "mapping of member", "nothing"]),
        ({"members": 5}, ["members", "mapping of member", "int"]),
        ({"members": "x"}, ["members", "mapping of member", "str"]),
        ({"members": [["c0"]]}, ["member", "name", "['c0']"]),
        ({"owned": 5}, ["owned", "mapping of member", "int"]),
        ({"owned": []}, ["owned", "mapping of member", "list"]),
        ({"owned": {5: [], "c0": []}}, ["owned", "5"]),
        ({"weights": 5}, ["weights", "mapping of member", "int"]),
        ({"weights": {"c0": np.timedelta64(3, "s")}}, ["c0", "weight"]),
        ({"max_partitions": 5}, ["max_partitions", "mapping of member", "int"]),
        ({"generations": 5}, ["generations", "mapping of member", "int"]),
        ({"scenarios": None}, ["scenarios", "list", "nothing"]),
        ({"scenarios": 5}, ["scenarios", "list", "int"]),
        ({"scenarios": {"orders": [1]}}, ["scenarios", "list", "dict"]),
    ],
)
def test_wrong_arguments_are_named(changes: dict[str, Any], places: list[str]) -> None:
    with pytest.raises(InvalidProblemError) as caught:
        Problem.from_lags(**{"lags": LAGS, "members": MEMBERS, **changes})
    for place in places:
        assert place in str(caught.value)


NO_PROBLEM: dict[str, Callable[[Any], Any]] = {
    "solve": evenlag.solve,
    "solve with rates": lambda problem: evenlag.solve(problem, rates={}),
    "audit": evenlag.compare.audit,
    "frontier": evenlag.compare.frontier,
    "whatif": lambda problem: evenlag.compare.whatif(problem, evenlag.compare.Change(members=1)),
    "changed": lambda problem: evenlag.compare.changed(problem, evenlag.compare.Change(members=1)),
    "size": lambda problem: evenlag.compare.size(problem, 60, 10),
}


@pytest.mark.parametrize("call", NO_PROBLEM.values(), ids=NO_PROBLEM)
@pytest.mark.parametrize(("given", "said"), [(None, "nothing"), ({}, "dict"), ("billing.json", "str")])
def test_every_call_refuses_other_types_by_name(call: Callable[[Any], Any], given: Any, said: str) -> None:
    with pytest.raises(InvalidProblemError, match=rf"the problem must be a Problem, .*; got {said}"):
        call(given)


@pytest.mark.parametrize("history", [None, 5, {}, [Problem.from_lags(LAGS, MEMBERS)]])
def test_a_replay_refuses_anything_but_snapshots(history: Any) -> None:
    with pytest.raises(InvalidProblemError, match="a history must be a list of Snapshots"):
        evenlag.compare.replay(history)


def test_input_errors_are_value_errors_too() -> None:
    assert issubclass(InvalidProblemError, ValueError)
    assert issubclass(InvalidProblemError, EvenlagError)
    assert not issubclass(InfeasibleError, ValueError)


def test_too_little_capacity_is_found_when_solving() -> None:
    problem = Problem.from_lags({"t": [1, 1, 1]}, {"a": ["t"], "b": ["t"]}, max_partitions={"a": 1, "b": 1})
    with pytest.raises(InfeasibleError, match="1 of 3"):
        evenlag.solve(problem)


def test_capacity_that_pins_leave_no_room_in() -> None:
    problem = Problem.from_lags(
        {"t": [1], "u": [1]}, {"a": ["t", "u"], "b": ["t"]}, max_partitions={"a": 1}, pins=[("t", 0, "a")]
    )
    with pytest.raises(InfeasibleError):
        evenlag.solve(problem)
