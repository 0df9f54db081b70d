"""The exact solver of the tests, against examples by hand, and its two methods against each other."""

from random import Random

import pytest

from evenlag import Problem
from tests.support.exact import FEWEST, Goal, Group, Infeasible, Optimum, assess, by_cp_sat, exhaustive
from tests.support.problems import alike, random_parameters, random_problem, seeds


def test_four_partitions_by_hand() -> None:
    problem = Problem.from_lags({"orders": [9, 5, 4, 1]}, {"a": ["orders"], "b": ["orders"]})
    goal = Goal(stickiness=0)
    assert exhaustive(problem, goal) == by_cp_sat(problem, goal) == Optimum(1, 0)  # 9 + 1 and 5 + 4


def test_balance_costs_spread() -> None:
    problem = Problem.from_lags({"orders": [9, 3, 3, 3]}, {"a": ["orders"], "b": ["orders"]})
    assert exhaustive(problem, Goal("none", stickiness=0)).objective == 0
    assert exhaustive(problem, Goal("topic", stickiness=0)).objective == 6
    assert exhaustive(problem, Goal("topic", stickiness=0, slack=1)).objective == 0


def test_stickiness_by_hand() -> None:
    owned = {"a": [("orders", 0), ("orders", 1)], "b": [("orders", 2), ("orders", 3)]}
    problem = Problem.from_lags({"orders": [9, 5, 4, 1]}, {"a": ["orders"], "b": ["orders"]}, owned=owned)
    assert exhaustive(problem, Goal(stickiness=3)).objective == 1 + 2 * 3  # against 9 when nothing moves
    assert exhaustive(problem, Goal(stickiness=5)).objective == 9
    assert exhaustive(problem, Goal(stickiness=FEWEST)) == Optimum(9, 0)
    assert exhaustive(problem, Goal(stickiness=0, max_moves=1)).objective == 9


def test_weights_are_normalised_to_mean_one() -> None:
    members = {"a": ["orders"], "b": ["orders"]}
    problem = Problem.from_lags({"orders": [10, 10, 10, 10]}, members, weights={"a": 3, "b": 1})
    assert exhaustive(problem, Goal(stickiness=0)).objective == 0  # 30 / 1.5 and 10 / 0.5
    assert exhaustive(problem, Goal(objective="makespan", stickiness=0)).objective == 20


def test_mixed_subscriptions_by_hand() -> None:
    problem = Problem.from_lags({"t": [1, 1], "u": [1, 1, 1, 1]}, {"a": ["t"], "b": ["t", "u"]})
    group = Group(problem)
    assert group.allowed_counts("topic").tolist() == [[[1, 1], [0, 4]]]
    assert group.allowed_counts("group").tolist() == [[[2, 0], [0, 4]]]
    assert group.allowed_counts("both").tolist() == [[[1, 1], [0, 4]]]
    assert len(group.allowed_counts("none")) == 3
    assert len(group.allowed_counts("group", slack=1)) == 2


def test_caps_take_members_out_and_pull_counts_aside() -> None:
    problem = alike([1] * 6, "abc", max_partitions={"a": 0, "b": 2})
    group = Group(problem)
    assert group.active == [1, 2]
    assert group.allowed_counts("topic").tolist() == [[[0, 2, 4]]]
    assert group.allowed_counts("topic", slack=1).tolist() == [[[0, 1, 5]], [[0, 2, 4]]]
    with pytest.raises(Infeasible):
        exhaustive(alike([1], "a", max_partitions={"a": 0}), Goal())


def test_assess_refuses_what_breaks_a_rule() -> None:
    problem = Problem.from_lags(
        {"t": [4, 3, 2], "u": [1]},
        {"a": ["t"], "b": ["t", "u"], "c": ["t"]},
        max_partitions={"c": 1},
        pins=[("t", 0, "a")],
    )
    good = {"a": [("t", 0)], "b": [("t", 1), ("u", 0)], "c": [("t", 2)]}
    assert assess(problem, good, Goal(stickiness=0)).spread == 2
    for bad, reason in (
        ({**good, "c": []}, "not every partition"),
        ({**good, "c": [("t", 0), ("t", 2)]}, "given twice"),
        ({"a": [("t", 1)], "b": [("t", 0), ("u", 0)], "c": [("t", 2)]}, "pinned"),
        ({"a": [("t", 0), ("u", 0)], "b": [("t", 1)], "c": [("t", 2)]}, "does not subscribe"),
        ({"a": [("t", 0)], "b": [("u", 0)], "c": [("t", 1), ("t", 2)]}, "max_partitions"),
        ({"a": [("t", 0), ("t", 1)], "b": [("u", 0)], "c": [("t", 2)]}, "break the balance"),
    ):
        with pytest.raises(AssertionError, match=reason):
            assess(problem, bad, Goal())


@pytest.mark.parametrize("seed", seeds(60))
def test_both_methods_agree(seed: int) -> None:
    random = Random(seed)
    problem, goal = random_problem(random, partitions=7), Goal(**random_parameters(random))
    if not Group(problem).assignable:
        return
    try:
        wanted = exhaustive(problem, goal)
    except Infeasible as error:
        with pytest.raises(Infeasible, match=f"^{error}$"):
            by_cp_sat(problem, goal)
    else:
        assert by_cp_sat(problem, goal) == wanted


@pytest.mark.parametrize("seed", seeds(60))
def test_names_of_members_that_are_alike_make_no_difference(seed: int) -> None:
    random = Random(seed)
    problem, goal = random_problem(random, partitions=7, plain=seed % 2 == 0), Goal(**random_parameters(random))
    if not Group(problem).assignable:
        return
    try:
        wanted = exhaustive(problem, goal, alike=False)
    except Infeasible as error:
        with pytest.raises(Infeasible, match=f"^{error}$"):
            exhaustive(problem, goal)
    else:
        assert exhaustive(problem, goal) == wanted


def test_which_members_are_alike() -> None:
    members = {name: ["t"] for name in "abcdef"} | {"g": ["t", "u"], "h": ["u"]}
    problem = Problem.from_lags(
        {"t": [4, 3, 2, 1], "u": [1]},
        members,
        owned={"a": [("t", 0)]},
        pins=[("t", 1, "b")],
        weights={"c": 2},
        max_partitions={"d": 1},
    )
    assert Group(problem).alike == [[2], [3], [4, 5], [6], [7]]
