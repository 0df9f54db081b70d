"""The promises that all published assignors keep, and plain references of the simple ones."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenlag.errors import InvalidPlanError
from evenlag.heuristics import HEURISTICS, PROMISED_BALANCE
from evenlag.model.problem import NOBODY, Problem
from tests.support.heuristic_groups import (
    EVEN,
    VALID,
    Assignment,
    any_group,
    equal_groups,
    group_arguments,
    is_defined,
    plan_of,
    problem_of,
)


def test_every_heuristic_promises_a_balance() -> None:
    assert PROMISED_BALANCE.keys() == HEURISTICS.keys()
    free = {name for name, balance in PROMISED_BALANCE.items() if balance == "none"}
    assert free == {"fairest-sticky", "variance-based"}
    assert set(PROMISED_BALANCE.values()) == {"topic", "group", "none"}


@pytest.mark.slow
@given(arguments=any_group)
def test_plans_are_complete_and_valid(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    at = np.flatnonzero(problem.assignable)
    for name in HEURISTICS:
        if not is_defined(name, problem):
            with pytest.raises(InvalidPlanError, match=r"^constrained-sticky is defined only for .* same topics$"):
                plan_of(name, problem)
            continue
        plan = plan_of(name, problem)
        assert ((plan.member_of != NOBODY) == problem.assignable).all(), name
        assert name not in VALID or problem.subscribed[problem.topic_of[at], plan.member_of[at]].all(), name


@pytest.mark.slow
@given(arguments=equal_groups)
def test_promised_balance_with_equal_subscriptions(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    for name in EVEN:
        plan = plan_of(name, problem)
        counts = plan.topic_counts if PROMISED_BALANCE[name] == "topic" else plan.counts[None, :]
        assert (np.ptp(counts, axis=1) <= 1).all(), name


@pytest.mark.slow
@given(arguments=any_group, random=st.randoms(use_true_random=True))
def test_order_of_the_input_does_not_matter(arguments: dict[str, Any], random: Any) -> None:
    def shuffled(mapping: dict[str, Any]) -> dict[str, Any]:
        return dict(random.sample(list(mapping.items()), len(mapping)))

    members = {member: tuple(random.sample(topics, len(topics))) for member, topics in arguments["members"].items()}
    owned = {member: random.sample(partitions, len(partitions)) for member, partitions in arguments["owned"].items()}
    problem = problem_of(arguments)
    other = problem_of(
        arguments | {"lags": shuffled(arguments["lags"]), "members": shuffled(members), "owned": shuffled(owned)}
    )
    for name in HEURISTICS:
        if is_defined(name, problem):
            assert plan_of(name, other).assignment == plan_of(name, problem).assignment, name


@pytest.mark.parametrize("name", HEURISTICS)
def test_pins_and_caps_are_ignored(name: str) -> None:
    members = {"c0": ["t0", "t1"], "c1": ["t0", "t1"], "c2": ["t0", "t1"]}
    lags = {"t0": [5, 3, 2], "t1": [9, 1]}
    ruled = Problem.from_lags(lags, members, max_partitions={"c0": 0}, pins=[("t0", 0, "c2")])
    assert plan_of(name, ruled).assignment == plan_of(name, Problem.from_lags(lags, members)).assignment


@pytest.mark.slow
@given(arguments=group_arguments(equal=True, weighted=True))
def test_weights_are_ignored_by_all_but_weighted_sticky(arguments: dict[str, Any]) -> None:
    weighted, plain = problem_of(arguments), problem_of(arguments | {"weights": None})
    for name in VALID:
        assert plan_of(name, weighted).assignment == plan_of(name, plain).assignment, name


@pytest.mark.parametrize("name", HEURISTICS)
@pytest.mark.parametrize("members", [{}, {"c0": [], "c1": []}])
def test_without_subscribers_nothing_is_assigned(name: str, members: dict[str, list[str]]) -> None:
    plan = plan_of(name, Problem.from_lags({"t": [1, 2]}, members))
    assert plan.member_of.tolist() == [NOBODY, NOBODY]


def naive_range(problem: Problem) -> Assignment:
    assignment: Assignment = {member: [] for member in problem.members}
    for t, topic in enumerate(problem.topics):
        numbers = problem.partition_ids[problem.topic_slice(t)].tolist()
        members = [member for m, member in enumerate(problem.members) if problem.subscribed[t, m]]
        for i, member in enumerate(members):
            each, extra = divmod(len(numbers), len(members))
            start = each * i + min(i, extra)
            assignment[member] += [(topic, number) for number in numbers[start : start + each + (i < extra)]]
    return assignment


def naive_roundrobin(problem: Problem) -> Assignment:
    assignment: Assignment = {member: [] for member in problem.members}
    turn = 0
    for p, (topic, number) in enumerate(problem.partitions):
        if problem.assignable[p]:
            while not problem.subscribed[problem.topic_of[p], turn % len(problem.members)]:
                turn += 1
            assignment[problem.members[turn % len(problem.members)]].append((topic, number))
            turn += 1
    return assignment


@pytest.mark.slow
@given(arguments=any_group)
def test_range_and_roundrobin_equal_plain_references(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    references = {"range": naive_range, "roundrobin": naive_roundrobin}
    for name, reference in references.items():
        assert plan_of(name, problem).assignment == reference(problem), name
