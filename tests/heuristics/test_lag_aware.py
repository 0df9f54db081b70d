"""lag-aware, against a plain reference."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given

from evenlag.heuristics.lag_aware import MANY
from evenlag.model.problem import Problem
from tests.support.heuristic_groups import Assignment, any_group, plan_of, problem_of
from tests.support.problems import LAG_KINDS, lags, seeds


def naive_lag_aware(problem: Problem) -> Assignment:
    assignment: Assignment = {member: [] for member in problem.members}
    for t in range(len(problem.topics)):
        members = [member for m, member in enumerate(problem.members) if problem.subscribed[t, m]]
        here = problem.topic_slice(t)
        by_lag = sorted(range(here.start, here.stop), key=lambda p: (-int(problem.lags[p]), p))
        counts: Counter[str] = Counter()
        loads: Counter[str] = Counter()
        for p in by_lag if members else []:
            taker = min(members, key=lambda member: (counts[member], loads[member], member))
            counts[taker] += 1
            loads[taker] += int(problem.lags[p])
            assignment[taker].append(problem.partitions[p])
    return {member: sorted(partitions) for member, partitions in assignment.items()}


@pytest.mark.slow
@given(arguments=any_group)
def test_lag_aware_equals_the_plain_reference(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    assert plan_of("lag-aware", problem).assignment == naive_lag_aware(problem)


@pytest.mark.parametrize("kind", LAG_KINDS)
@pytest.mark.parametrize("members", [MANY - 1, MANY, MANY + 40])
def test_lag_aware_equals_the_plain_reference_with_many_members(kind: str, members: int) -> None:
    for seed in seeds(4):
        random = Random(seed)
        topics = {f"t{i}": lags(random, random.randint(1, 5 * members), kind) for i in range(3)}
        names = [f"c{i:03d}" for i in range(members)]
        subscriptions = {name: [topic for topic in topics if random.random() < 0.8] for name in names}
        problem = Problem.from_lags(topics, subscriptions)
        assert plan_of("lag-aware", problem).assignment == naive_lag_aware(problem)


def test_lag_aware_adds_lags_beyond_int64_with_many_members() -> None:
    random = Random(1)
    problem = Problem.from_lags(
        {"t": [random.randint(2**61, 2**62) for _ in range(4 * MANY)]}, {f"c{i:03d}": ["t"] for i in range(MANY)}
    )
    assert plan_of("lag-aware", problem).assignment == naive_lag_aware(problem)


def test_lag_aware_puts_one_partition_topics_on_the_smallest_member() -> None:
    problem = Problem.from_lags({f"t{i}": [7 + i] for i in range(9)}, {m: [f"t{i}" for i in range(9)] for m in "abc"})
    assert plan_of("lag-aware", problem).counts.tolist() == [9, 0, 0]


def test_lag_aware_tells_lags_apart_that_are_equal_as_floating_point() -> None:
    plan = plan_of("lag-aware", Problem.from_lags({"t": [2**53, 2**53 + 1]}, {"c0": ["t"], "c1": ["t"]}))
    assert plan.assignment == {"c0": [("t", 1)], "c1": [("t", 0)]}


def test_lag_aware_adds_lags_beyond_int64() -> None:
    lags = {"t": [2**62, 2**62, 2**62, 2**62 - 1, 2**62 - 1, 2**62 - 2]}
    plan = plan_of("lag-aware", Problem.from_lags(lags, {"c0": ["t"], "c1": ["t"]}))
    assert plan.assignment == {"c0": [("t", 0), ("t", 2), ("t", 5)], "c1": [("t", 1), ("t", 3), ("t", 4)]}
    assert plan.loads.tolist() == [3 * 2**62 - 2, 3 * 2**62 - 2]
