"""swap-balance: swaps keep counts and subscriptions, and never widen the spread."""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from evenlag.heuristics import swap_balance
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Problem
from tests.support.heuristic_groups import any_group, equal_groups, plan_of, problem_of
from tests.support.problems import LAG_KINDS, lags, seeds


def sticky_and_swapped(problem: Problem) -> tuple[Plan, Plan]:
    return plan_of("sticky", problem), plan_of("swap-balance", problem)


@given(arguments=any_group)
def test_swaps_keep_the_counts_and_never_widen_the_spread(arguments: dict[str, Any]) -> None:
    before, after = sticky_and_swapped(problem_of(arguments))
    assert after.counts.tolist() == before.counts.tolist()
    assert sum(int(load) ** 2 for load in after.loads) <= sum(int(load) ** 2 for load in before.loads)
    if after.member_of.tolist() != before.member_of.tolist():
        assert sum(int(load) ** 2 for load in after.loads) < sum(int(load) ** 2 for load in before.loads)


@given(arguments=equal_groups)
def test_no_swap_of_the_most_with_the_least_loaded_helps(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    plan = plan_of("swap-balance", problem)
    holding = [m for m in range(len(problem.members)) if plan.counts[m]]
    if not holding:
        return
    descending = sorted(holding, key=lambda m: -int(plan.loads[m]))
    most, least = descending[0], descending[-1]
    difference = int(plan.loads[most]) - int(plan.loads[least])
    lags_of = {m: [int(lag) for lag in problem.lags[plan.member_of == m]] for m in (most, least)}
    for given_away in lags_of[most]:
        for taken in lags_of[least]:
            assert abs(difference - 2 * (given_away - taken)) >= difference


@pytest.mark.parametrize("seed", seeds(60))
def test_trying_all_swaps_and_searching_give_equally_good_ones(seed: int) -> None:
    random = Random(seed)
    more, less = (lags(random, random.randint(1, 40), random.choice(LAG_KINDS)) for _ in range(2))
    if sum(more) < sum(less):
        more, less = less, more
    topics = [["a", "b"], ["b", "c"]] if seed % 2 else [["a", "b", "c"]] * 2
    lags_of: dict[str, dict[int, int]] = {"a": {}, "b": {}, "c": {}}
    owner: list[tuple[str, int, int]] = []
    for m, held in enumerate((more, less)):
        for p, lag in enumerate(held):
            topic = random.choice(topics[m])
            lags_of[topic][100 * m + p] = lag
            owner.append((topic, 100 * m + p, m))
    held_topics = {topic: held for topic, held in lags_of.items() if held}
    members = {f"c{m}": [topic for topic in topics[m] if topic in held_topics] for m in (0, 1)}
    problem = Problem.from_lags(held_topics, members)
    place = {name: p for p, name in enumerate(problem.partitions)}
    member_of = np.full(len(place), NOBODY, dtype=np.int32)
    for topic, p, m in owner:
        member_of[place[topic, p]] = m
    swaps = swap_balance._Swaps(Plan(problem, member_of))
    pair = np.array([0]), np.array([1])
    by_trying = [int(slot[0]) for slot in swaps._best_of_all(*pair)]
    by_search = swaps._best_by_search(0, 1)
    difference = sum(more) - sum(less)

    def miss(given_away: int, taken: int) -> int:
        return abs(difference - (int(swaps._twice[given_away]) - int(swaps._twice[taken])))

    able = [
        (a, b) for a in range(len(more)) for b in range(len(more), len(more) + len(less))
        if problem.partitions[swaps._partitions[a]][0] in topics[1]
        and problem.partitions[swaps._partitions[b]][0] in topics[0]
    ]  # fmt: skip
    best = min([difference, *(miss(a, b) for a, b in able)])
    for found in (by_trying, by_search):
        if best == difference:
            assert tuple(found) == (-1, -1)
        else:
            assert tuple(found) in able
            assert miss(*found) == best


@pytest.mark.slow
@given(arguments=any_group)
def test_swaps_are_valid_however_they_are_found(arguments: dict[str, Any]) -> None:
    problem = problem_of(arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(swap_balance, "FEW", 1)
        searched = plan_of("swap-balance", problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(swap_balance, "AT_ONCE", 1)
        one_at_a_time = plan_of("swap-balance", problem)
    assert one_at_a_time.member_of.tolist() == plan_of("swap-balance", problem).member_of.tolist()
    assert searched.counts.tolist() == one_at_a_time.counts.tolist()
    held = searched.member_of != NOBODY
    assert held.tolist() == problem.assignable.tolist()
    assert problem.subscribed[problem.topic_of[held], searched.member_of[held]].all()


def test_swaps_are_made_among_members_with_a_topic_in_common() -> None:
    """Two groups without a common topic are evened out independently."""
    lags_of = {"s": [90, 50, 70, 10], "t": [900, 500, 700, 100]}
    both = Problem.from_lags(lags_of, {"c0": ["s"], "c1": ["s"], "c2": ["t"], "c3": ["t"]})
    assert plan_of("swap-balance", both).loads.tolist() == [120, 100, 1_200, 1_000]


def test_swaps_pass_over_a_member_that_none_relieves() -> None:
    """`c0` has the hot partition; the others are still evened out."""
    owned = {"c0": [("t", 0), ("t", 1)], "c1": [("t", 2), ("t", 3)], "c2": [("t", 4), ("t", 5)]}
    problem = Problem.from_lags({"t": [9_000, 0, 50, 60, 10, 20]}, {member: ["t"] for member in owned}, owned=owned)
    before, after = sticky_and_swapped(problem)
    assert before.loads.tolist() == [9_000, 110, 30]
    assert after.loads.tolist() == [9_000, 70, 70]
