"""Groups with nobody, nothing or hardly a choice, and figures as large as they may be."""

import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from random import Random
from typing import Any

import pytest

import evenlag
from evenlag.errors import InfeasibleError
from evenlag.model.balance import count_rule
from evenlag.search.exact import small_groups
from tests.support.exact import Goal, assess, exhaustive
from tests.support.problems import alike, seeds
from tests.support.small_groups import LIMIT

HOPELESS = 0.2  # seconds, where the bound cannot meet the objective because it is rounded, so that time runs out


def test_one_partition_goes_to_one_of_two_members() -> None:
    problem = alike([5], "ab")
    result = evenlag.solve(problem)
    assert (result.status, result.spread, sorted(result.counts.values())) == ("OPTIMAL", 5, [0, 1])


def test_a_topic_of_one_hot_partition_beside_another() -> None:
    problem = evenlag.Problem.from_lags({"t": [5_000], "u": [1, 1]}, {"a": ["t", "u"], "b": ["t", "u"]})
    result = evenlag.solve(problem, balance="topic", stickiness=0)  # each takes one of "u"
    assert (result.status, result.spread) == ("OPTIMAL", 5_000)
    assert result.binding == ("hot-partition", "count-balance")


@pytest.mark.parametrize("pinned", [False, True])
def test_hundreds_of_partitions_with_one_or_two_plans_are_solved(pinned: bool) -> None:
    """The groups have more partitions than an array may have axes, but only one or two plans."""
    if not pinned:
        result = evenlag.solve(alike([1] * 100, "a"))
        assert (result.status, result.makespan) == ("OPTIMAL", 100)
        return
    pins = [("t", p, "ab"[p % 2]) for p in range(99)]
    result = evenlag.solve(alike([1] * 99 + [5], "ab", pins=pins))
    assert (result.status, result.spread, result.method) == ("OPTIMAL", 4, "enumeration")


def test_threads_share_the_cache_of_allowed_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads share a cache of allowed plans that keeps one shape."""
    monkeypatch.setattr(small_groups, "MOST_SHAPES", 1)
    groups = [alike([9, 5, 3], "abc", pins=[("t", 0, one), ("t", 1, two)]) for one, two in product("abc", repeat=2)]
    rules = [count_rule(problem, "none") for problem in groups]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(small_groups.allowed_plans, rules * 400))
    finally:
        sys.setswitchinterval(before)
    expected = [[[one, two, last] for last in range(3)] for one, two in product(range(3), repeat=2)]
    assert [plans.tolist() for plans in found] == expected * 400


@pytest.mark.parametrize("lags", [[2**62 - 1], [2**62 - 1, 0, 0], [2**62 - 1, 2**62, 3], [2**61, 2**61 - 1, 0]])
@pytest.mark.parametrize("stickiness", [0, 5, "1%"])
def test_the_largest_lags_are_solved_exactly(lags: list[int], stickiness: Any) -> None:
    result = evenlag.solve(alike(lags, "ab", owned={"b": [("t", 0)]}), stickiness=stickiness)
    best = exhaustive(result.plan.problem, Goal("both", result.stickiness))
    assert (result.status, result.objective) == ("OPTIMAL", best.objective)


def test_a_group_without_members_is_empty() -> None:
    result = evenlag.solve(evenlag.Problem.from_lags({"t": [5, 3]}, {}))
    assert (result.status, result.assignment, result.unassigned) == ("EMPTY", {}, [("t", 0), ("t", 1)])
    assert (result.objective, result.bound, result.spread, result.makespan, result.moves) == (0, 0, 0, 0, 0)
    assert result.to_dict()["unassigned"] == [["t", 0], ["t", 1]]


def test_a_group_without_subscriptions_is_empty() -> None:
    result = evenlag.solve(evenlag.Problem.from_lags({"t": [5, 3]}, {"a": [], "b": []}))
    assert (result.status, result.assignment, len(result.unassigned)) == ("EMPTY", {"a": [], "b": []}, 2)


def test_topics_without_subscribers_are_left_unassigned() -> None:
    problem = evenlag.Problem.from_lags({"t": [5, 3], "u": [900]}, {"a": ["t"], "b": ["t"]})
    result = evenlag.solve(problem)
    assert (result.status, result.unassigned, result.spread) == ("OPTIMAL", [("u", 0)], 2)


def test_a_member_without_subscriptions_gets_nothing() -> None:
    problem = evenlag.Problem.from_lags({"t": [5, 3]}, {"a": ["t"], "b": ["t"], "idle": []})
    result = evenlag.solve(problem)
    assert (result.status, result.spread, result.counts["idle"]) == ("OPTIMAL", 2, 0)


@pytest.mark.parametrize("balance", ["both", "topic", "group", "none"])
def test_too_little_capacity_is_infeasible(balance: str) -> None:
    problem = alike([5, 3, 1], "ab", max_partitions={"a": 1, "b": 1})
    with pytest.raises(InfeasibleError):
        evenlag.solve(problem, balance=balance)


@pytest.mark.parametrize("balance", ["both", "topic", "group", "none"])
def test_a_topic_whose_only_subscriber_is_capped_at_0_is_infeasible(balance: str) -> None:
    problem = evenlag.Problem.from_lags({"t": [5], "u": [1]}, {"a": ["t"], "b": ["u"]}, max_partitions={"a": 0})
    with pytest.raises(InfeasibleError, match="t"):
        evenlag.solve(problem, balance=balance)


def test_a_pin_elsewhere_is_a_move() -> None:
    problem = alike([5, 5], "ab", owned={"a": [("t", 0)], "b": [("t", 1)]}, pins=[("t", 0, "b")])
    result = evenlag.solve(problem, stickiness=1)
    assert (result.assignment, result.moves) == ({"a": [("t", 1)], "b": [("t", 0)]}, 2)
    with pytest.raises(InfeasibleError, match=r"\b2\b"):
        evenlag.solve(problem, max_moves=1)


def test_a_share_is_rounded_up_to_whole_messages() -> None:
    problem = alike([1_001, 1_000], "ab")
    assert evenlag.solve(problem).stickiness == 2  # of 1,000.5
    assert evenlag.solve(problem, stickiness="10%").stickiness == 101
    assert evenlag.solve(problem, stickiness="0%").stickiness == 0
    assert evenlag.solve(problem, stickiness=0.5).stickiness * 2 == 1


@pytest.mark.parametrize(
    "parameters", [{"stickiness": 1e30}, {"slack": 2**70}, {"max_moves": 2**70}, {"gap": float("inf")}]
)
def test_huge_parameters_are_solved(parameters: dict[str, Any]) -> None:
    random = Random(3)
    problem = evenlag.Problem.from_lags(
        {"t": [random.randint(1, 1_000) for _ in range(9)]},
        {"a": ["t"], "b": ["t"]},
        owned={"a": [("t", i) for i in range(7)]},
    )
    result = evenlag.solve(problem, **parameters, time_limit=LIMIT)
    plan = {name: value for name, value in parameters.items() if name != "gap"}
    assert assess(problem, result.assignment, Goal(**{**plan, "slack": min(plan.get("slack", 0), 9)}))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "cp-sat", "cbc", "highs"])
@pytest.mark.parametrize("seed", seeds(10))
def test_bounds_hold_for_weights_of_many_digits(seed: int, method: str) -> None:
    random = Random(seed)
    members = {name: ["t"] for name in "abc"}
    weights = {name: random.uniform(0.3, 3) for name in members}
    lags = [random.randint(0, 100_000) for _ in range(8)]
    owned = {random.choice("abc"): [("t", i) for i in range(seed % 4)]}
    problem = evenlag.Problem.from_lags({"t": lags}, members, weights=weights, owned=owned)
    goal = Goal(stickiness=random.choice([0, "0.1%"]))
    limit = HOPELESS if method == "auto" else LIMIT
    result = evenlag.solve(problem, stickiness=goal.stickiness, method=method, time_limit=limit)
    wanted = exhaustive(problem, goal).objective
    assert assess(problem, result.assignment, goal).objective == result.objective
    assert result.bound <= wanted <= result.objective
    faults = [warning for warning in result.warnings for word in ("discarded", "withdrew", "Error") if word in warning]
    assert not faults


@pytest.mark.slow
def test_bounds_hold_for_weights_of_many_digits_and_small_lags() -> None:
    members = {"a": ["t"], "b": ["t"]}
    weights = {"a": 3.141592653589793, "b": 2.718281828459045}
    problem = evenlag.Problem.from_lags({"t": [5, 3, 9, 1]}, members, weights=weights)
    result = evenlag.solve(problem, time_limit=HOPELESS)
    assert result.bound <= exhaustive(problem, Goal()).objective <= result.objective
