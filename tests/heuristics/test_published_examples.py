"""The worked examples of the published assignors' sources."""

import doctest
import importlib
from dataclasses import replace
from fractions import Fraction

import pytest

from evenlag.heuristics import HEURISTICS
from evenlag.model.plan import Plan
from evenlag.model.problem import Problem
from tests.support.heuristic_groups import STICKY, Assignment, count_kept, group_of_sizes, plan_of, with_plan_as_owners


@pytest.mark.parametrize("module", sorted({heuristic.__module__ for heuristic in HEURISTICS.values()}))
def test_docstring_examples(module: str) -> None:
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize(
    ("name", "loads"),
    [("range", [160_000, 50_000]), ("roundrobin", [150_000, 60_000]), ("lag-aware", [100_000, 110_000])],
)
def test_kip_169_example(name: str, loads: list[int]) -> None:
    lags = {"t0": [100_000, 60_000, 50_000]}
    assert plan_of(name, Problem.from_lags(lags, {"c0": ["t0"], "c1": ["t0"]})).loads.tolist() == loads


def owned_by(plan: Plan, *members: str) -> Assignment:
    return {member: plan.assignment[member] for member in members}


def test_kip_54_example_1() -> None:
    topics = ["t0", "t1", "t2", "t3"]
    fresh = group_of_sizes([2, 2, 2, 2], {"c0": topics, "c1": topics, "c2": topics})
    before = plan_of("sticky", fresh)
    assert before.assignment == plan_of("roundrobin", fresh).assignment
    assert before.assignment == {
        "c0": [("t0", 0), ("t1", 1), ("t3", 0)],
        "c1": [("t0", 1), ("t2", 0), ("t3", 1)],
        "c2": [("t1", 0), ("t2", 1)],
    }
    without_c1 = group_of_sizes([2, 2, 2, 2], {"c0": topics, "c2": topics}, owned_by(before, "c0", "c2"))
    after = plan_of("sticky", without_c1)
    assert after.counts.tolist() == [4, 4]
    assert count_kept(after) == 5
    assert count_kept(plan_of("roundrobin", without_c1)) == 3


def test_kip_54_example_2() -> None:
    subscriptions = {"c0": ["t0"], "c1": ["t0", "t1"], "c2": ["t0", "t1", "t2"]}
    fresh = group_of_sizes([1, 2, 3], subscriptions)
    before = plan_of("sticky", fresh)
    assert before.counts.tolist() == [1, 2, 3]
    assert plan_of("roundrobin", fresh).counts.tolist() == [1, 1, 4]
    del subscriptions["c0"]
    after = plan_of("sticky", group_of_sizes([1, 2, 3], subscriptions, owned_by(before, "c1", "c2")))
    assert after.assignment == {"c1": [("t0", 0), ("t1", 0), ("t1", 1)], "c2": [("t2", 0), ("t2", 1), ("t2", 2)]}
    assert count_kept(after) == 5
    dealt = plan_of("roundrobin", fresh)
    assert count_kept(plan_of("roundrobin", group_of_sizes([1, 2, 3], subscriptions, owned_by(dealt, "c1", "c2")))) == 3


def test_kip_54_example_3() -> None:
    topics = ["t0", "t1"]
    fresh = group_of_sizes([2, 2], {"c0": topics, "c1": topics})
    plans = [plan_of(name, fresh) for name in ("range", "roundrobin", "sticky")]
    expected = {"c0": [("t0", 0), ("t1", 0)], "c1": [("t0", 1), ("t1", 1)]}
    assert [plan.assignment for plan in plans] == [expected] * 3
    joined = group_of_sizes([2, 2], {"c0": topics, "c1": topics, "c2": topics}, expected)
    assert plan_of("range", joined).counts.tolist() == [2, 2, 0]
    assert plan_of("roundrobin", joined).assignment == {
        "c0": [("t0", 0), ("t1", 1)], "c1": [("t0", 1)], "c2": [("t1", 0)]
    }  # fmt: skip
    after = plan_of("sticky", joined)
    assert sorted(after.counts.tolist()) == [1, 1, 2]
    assert after.counts[2] == 1
    assert count_kept(after) == 3


@pytest.mark.parametrize("name", STICKY)
def test_kafka_9987_one_joins_four_with_three_each(name: str) -> None:
    owned = {f"c{m}": [("t", 3 * m + i) for i in range(3)] for m in range(4)}
    plan = plan_of(name, Problem.from_lags({"t": [0] * 12}, {f"c{m}": ["t"] for m in range(5)}, owned=owned))
    assert sorted(plan.counts.tolist()) == [2, 2, 2, 3, 3]
    assert plan.moves == 2


def test_kafka_9987_fills_members_one_after_the_other_by_partition_number() -> None:
    topics = ["t0", "t1"]
    plan = plan_of("constrained-sticky", group_of_sizes([3, 2], {"c0": topics, "c1": topics}))
    assert plan.assignment == {"c0": [("t0", 0), ("t0", 2), ("t1", 0)], "c1": [("t0", 1), ("t1", 1)]}


def test_weights_of_the_post() -> None:
    members, weights = {member: ["t"] for member in "abc"}, {"a": 900, "b": 90, "c": 10}
    fresh = plan_of("weighted-sticky", Problem.from_lags({"t": [0] * 100}, members, weights=weights))
    assert fresh.counts.tolist() == [90, 9, 1]
    swapped = replace(with_plan_as_owners(fresh), weights=(Fraction(90), Fraction(900), Fraction(10)))
    after = plan_of("weighted-sticky", swapped)
    assert after.counts.tolist() == [9, 90, 1]
    assert after.moves == 81
