"""The sticky assignors: plans recorded from Kafka 4.1.0, and moves."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from evenlag.model.balance import count_rule
from evenlag.model.problem import NO_CAP, NOBODY, Problem
from tests.support.heuristic_groups import (
    STICKY,
    any_group,
    count_kept,
    equal_groups,
    group_of_sizes,
    is_defined,
    mixed_groups,
    plan_of,
    problem_of,
    with_plan_as_owners,
)
from tests.support.problems import random_problem, seeds


def test_sticky_moves_partitions_that_were_free_before_others() -> None:
    """Recorded; without that rule, an owned partition moves too."""
    owned = {"c0": [("t0", 0)], "c1": [("t1", 1), ("t1", 2)], "c2": [("t0", 1)]}
    plan = plan_of("sticky", group_of_sizes([3, 3], {"c0": ["t0", "t1"], "c1": ["t1"], "c2": ["t0"]}, owned))
    assert plan.assignment == {
        "c0": [("t0", 0), ("t1", 0)],
        "c1": [("t1", 1), ("t1", 2)],
        "c2": [("t0", 1), ("t0", 2)],
    }


def test_sticky_keeps_the_lowest_partition_numbers() -> None:
    topics = ["t0", "t1"]
    owned = {"c0": [("t0", 0), ("t0", 1), ("t1", 0), ("t1", 1)]}
    plan = plan_of("sticky", group_of_sizes([2, 2], {"c0": topics, "c1": topics}, owned))
    assert plan.assignment == {"c0": [("t0", 0), ("t1", 0)], "c1": [("t0", 1), ("t1", 1)]}


def test_sticky_sends_back_a_partition_that_went_the_other_way() -> None:
    """Recorded; without that rule, four partitions move instead of two."""
    owned = {
        "c1": [("t0", 1), ("t0", 3), ("t1", 0), ("t1", 1), ("t1", 2)],
        "c2": [("t0", 0), ("t0", 2), ("t0", 4)],
    }
    plan = plan_of("sticky", group_of_sizes([5, 3], {"c0": ["t1"], "c1": ["t0", "t1"], "c2": ["t0"]}, owned))
    assert plan.assignment == {
        "c0": [("t1", 0), ("t1", 1)],
        "c1": [("t0", 1), ("t0", 3), ("t1", 2)],
        "c2": [("t0", 0), ("t0", 2), ("t0", 4)],
    }


def test_sticky_returns_a_partition_to_its_owner_of_an_older_generation() -> None:
    """Recorded; without that rule, nine partitions move instead of eight."""
    subscriptions = {
        "c0": ["t0", "t1", "t2", "t3"],
        "c1": ["t0", "t1", "t3"],
        "c2": ["t0", "t1", "t2"],
        "c3": ["t2", "t3"],
        "c4": ["t3"],
    }
    owned = {"c0": [*(("t1", i) for i in range(5)), *(("t3", i) for i in range(4))], "c2": [("t0", 0), ("t2", 0)]}
    generations = {"c0": 4, "c1": 3, "c2": 3, "c3": 3, "c4": 4}
    problem = Problem.from_lags(
        {"t0": [0], "t1": [0] * 5, "t2": [0] * 2, "t3": [0] * 4}, subscriptions, owned=owned, generations=generations
    )
    assert plan_of("sticky", problem).assignment == {
        "c0": [("t3", 2), ("t3", 3)],
        "c1": [("t1", 0), ("t1", 2), ("t1", 4)],
        "c2": [("t0", 0), ("t1", 1), ("t1", 3)],
        "c3": [("t2", 0), ("t2", 1)],
        "c4": [("t3", 0), ("t3", 1)],
    }


@pytest.mark.slow
@given(arguments=any_group)
def test_a_second_run_moves_nothing(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    for name in [*STICKY, "fairest-sticky"]:
        if is_defined(name, problem):
            plan = plan_of(name, problem)
            assert plan_of(name, with_plan_as_owners(plan)).member_of.tolist() == plan.member_of.tolist(), name


@pytest.mark.slow
@given(arguments=equal_groups)
def test_fewest_moves_with_equal_subscriptions(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    owned = [int((problem.owner == m).sum()) for m in range(len(problem.members))]
    low, extra = divmod(int(problem.assignable.sum()), len(owned))
    most = max(
        sum(min(count, low + (m in raised)) for m, count in enumerate(owned))
        for raised in combinations(range(len(owned)), extra)
    )
    for name in STICKY:
        assert count_kept(plan_of(name, problem)) == most, name


@given(arguments=mixed_groups)
def test_sticky_leaves_no_partition_that_would_even_the_counts(arguments: dict[str, Any]) -> None:
    """KIP-54's second clause, from the fuller member to the emptier."""
    problem = problem_of(arguments)
    plan = plan_of("sticky", problem)
    for p in np.flatnonzero(problem.assignable):
        able = plan.counts[problem.subscribed[problem.topic_of[p]]]
        assert plan.counts[plan.member_of[p]] <= able.min() + 1


@given(arguments=mixed_groups)
def test_sticky_moves_nothing_that_is_balanced_already(arguments: dict[str, Any]) -> None:
    plan = plan_of("sticky", problem_of(arguments))
    without_first = replace(
        with_plan_as_owners(plan), owner=np.where(plan.member_of == 0, NOBODY, plan.member_of).astype(np.int32)
    )
    assert count_kept(plan_of("sticky", without_first)) == int((without_first.owner != NOBODY).sum())


@given(arguments=any_group)
def test_fair_is_sticky_without_a_past(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    forgetful = problem_of(arguments | {"owned": {}})
    assert plan_of("fair", problem).assignment == plan_of("sticky", forgetful).assignment
    assert plan_of("fair", problem).assignment == plan_of("fair", forgetful).assignment


@given(arguments=any_group)
def test_fairest_sticky_moves_nothing_and_no_free_partition_does_better_elsewhere(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    plan = plan_of("fairest-sticky", problem)
    assert plan.moves == 0
    for p in np.flatnonzero(problem.assignable & (problem.owner == NOBODY)).tolist():
        fewest = plan.counts[problem.subscribed[problem.topic_of[p]]].min()
        assert plan.counts[plan.member_of[p]] <= fewest + 1


def test_fairest_sticky_is_nearly_always_the_fairest_of_all() -> None:
    fairest = total = 0
    for seed in seeds(150):
        problem = random_problem(Random(seed), partitions=20, members=6, topics=5)
        problem = Problem.from_dict(problem.to_dict() | {"pins": []})
        problem = replace(
            problem, caps=np.full_like(problem.caps, NO_CAP), weights=(Fraction(1),) * len(problem.members)
        )
        counts = count_rule(replace(problem, pins=problem.owner.copy()), "group").some_counts().sum(axis=0)
        mine = plan_of("fairest-sticky", problem).counts
        assert (mine**2).sum() >= (counts**2).sum()
        fairest += bool((mine**2).sum() == (counts**2).sum())
        total += 1
    assert fairest >= 0.98 * total
