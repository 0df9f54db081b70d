"""Bounds on loads, against the loads of every plan."""

from fractions import Fraction
from random import Random

import pytest

import evenlag
from evenlag import Problem
from evenlag.errors import InfeasibleError
from evenlag.model.balance import CountRule, count_rule
from evenlag.model.bounds import LoadBounds, load_bounds
from evenlag.model.plan import Plan
from tests.support.exact import Goal, exhaustive
from tests.support.problems import HUGE, PROVOKING_LAGS, alike, provoking_lags, seeds
from tests.support.searching import BALANCES, feasible_plans, loads_of, tiny_case, tiny_plans, tiny_seeds

PROVOKING = {  # lags that each bound of load_bounds is the best one for
    "giants": ({"t": [900, 5, 3, 2, 1, 1]}, 3),
    "giants and what must go with them": ({"t": [100, 100, 7, 7, 6, 5]}, 3),
    "near-giants that need a companion": ({"t": [35, 34, 0, 0, 0, 3, 3]}, 3),
    "a near-giant among zeros": ({"t": [9, 8, 0, 0, 0, 5]}, 2),
    "near-giants whose companions are too big or too small": ({"t": [31, 29, 29, 14, 13, 6, 0]}, 3),
    "pairs": ({"t": [50, 41, 33, 30, 8, 5]}, 3),
    "fewer partitions than members": ({"t": [7, 4]}, 3),
    "one more for some": ({"t": [1_000, 1_001, 1_002, 1_003, 1_000]}, 2),
    "one more for some of three": ({"t": [1_000, 1_001, 1_000, 1_003, 1_002, 1_000, 1_000]}, 3),
    "pigeons": ({"t": [10, 10, 10, 10, 1, 1, 1]}, 3),
    "giants of two topics": ({"t": [500, 400, 3], "u": [450, 2, 1]}, 3),
    "giants of one topic beside big companions": ({"t": [500, 1, 1], "u": [90, 80, 70]}, 3),
    "a topic of one": ({"t": [60], "u": [50, 10, 10], "v": [40, 1]}, 2),
    "multiples": ({"t": [12, 18, 30, 6, 24]}, 2),
    "huge": ({"t": [HUGE, HUGE - 1, HUGE - 5, 3]}, 2),
}


def assert_window_holds(rule: CountRule, plans: list[Plan]) -> LoadBounds:
    window = load_bounds(rule)
    assert plans
    ends = [(min(loads), max(loads)) for loads in map(loads_of, plans)]
    for plan, (low, high) in zip(plans, ends, strict=True):
        assert high >= window.max_load_lb, plan.assignment
        assert low <= window.min_load_ub, plan.assignment
    for kind, best in (("spread", min(high - low for low, high in ends)), ("makespan", min(high for _, high in ends))):
        assert window.least(kind) <= best
    return window


@pytest.mark.slow
@pytest.mark.parametrize("name", PROVOKING)
@pytest.mark.parametrize("balance", BALANCES)
def test_no_plan_lies_inside_the_window_of_provoking_lags(name: str, balance: str) -> None:
    rule = count_rule(alike(*PROVOKING[name]), balance)
    window = assert_window_holds(rule, feasible_plans(rule))
    mean = Fraction(sum(map(int, rule.problem.lags)), len(rule.problem.members))
    if balance == "both":
        assert window.max_load_lb > mean > window.min_load_ub


def subscribed(lags: dict[str, list[int]], **topics: str) -> evenlag.Problem:
    """A group whose members read the topics named by their letters."""
    return evenlag.Problem.from_lags(lags, {name: list(letters) for name, letters in topics.items()})


ENDS = ("low", "high")


MET: dict[str, tuple[str, tuple[str, ...], evenlag.Problem]] = {  # balance, ends of the window that a plan meets, group
    "the biggest, and the smallest beside them": ("group", ENDS, alike([1, 12, 30, 3, 2], 2)),
    "pigeons": ("none", ENDS, alike([10, 12, 12], 2)),
    "pigeons and counts": ("group", ENDS, alike([5, 1, 60, 60, 2, 1], 2)),
    "pairs, the largest load": ("topic", ENDS, alike([30, 3, 30, 12, 2], 3)),
    "pairs, the smallest load": ("group", ENDS, alike([1, 5, 5, 12, 6], 3)),
    "one more for two of three": ("group", ENDS, alike([14, 10, 12, 10, 13, 13, 13, 13], 3)),
    "companions of another topic": ("topic", ENDS, alike({"t": [12], "u": [10, 3]}, 2)),
    "multiples, the largest load": ("none", ENDS, alike([20, 12, 6, 12], 2)),
    "multiples, the smallest load": ("none", ENDS, alike([30, 1, 30], 2)),
    "fewer than members": ("group", ENDS, alike([7, 4], 3)),
    "weights": ("group", ENDS, alike([3, 12], "ab", weights={"a": 3, "b": 2})),
    "weights, two big ones": ("none", ("low",), alike([30, 30, 10], "abc", weights={"a": 3, "b": 2, "c": 1})),
    "little for one": ("both", ("low",), subscribed({"t": [1, 2], "u": [3]}, a="t", b="tu")),
    "what two can take": ("both", ENDS, subscribed({"t": [1], "u": [2, 2]}, a="u", b="t", c="t")),
    "what two must take": ("both", ENDS, subscribed({"t": [2, 3], "u": [2, 3]}, a="t", b="t", c="tu")),
    "room for one": ("none", ENDS, alike([5, 5, 5, 6, 6], "abc", max_partitions={"a": 1, "b": 1})),
    "room for two of four": ("none", ENDS, alike([5, 5, 5, 5, 9, 9], "abcd", max_partitions={"a": 1, "b": 1})),
    "pins": ("none", ("high",), alike([4, 4, 4, 3], 3, pins=[("t", 0, "c001"), ("t", 1, "c001")])),
}


@pytest.mark.parametrize("name", MET)
def test_a_plan_meets_the_window(name: str) -> None:
    balance, met, problem = MET[name]
    rule = count_rule(problem, balance)
    loads = [loads_of(plan) for plan in feasible_plans(rule)]
    best = {"low": max(map(min, loads)), "high": min(map(max, loads))}
    window = load_bounds(rule)
    proven = {"low": window.min_load_ub, "high": window.max_load_lb}
    assert {end: proven[end] for end in met} == {end: best[end] for end in met}


def test_the_window_counts_only_companions_that_exist() -> None:
    rule = count_rule(alike(*PROVOKING["near-giants whose companions are too big or too small"]), "group")
    best = max(min(loads_of(plan)) for plan in feasible_plans(rule))
    assert load_bounds(rule).min_load_ub == best == 37


def test_holders_of_the_biggest_hold_what_their_counts_require() -> None:
    """The member of weight 2 holds 6 of the 9 partitions, the other one 3; the heavier member is best for the 100."""
    problem = Problem.from_lags({"t": [100, 1, 1, 1, 1, 1, 1, 1, 1]}, ["a", "b"], weights={"a": 2})
    bounds = load_bounds(count_rule(problem, "group"))
    assert (bounds.max_load_lb, bounds.min_load_ub) == (Fraction(105 * 3, 4), Fraction(3 * 3, 2))
    assert (bounds.largest_by, bounds.smallest_by) == (("weights_and_counts", 1), ("weights_and_counts", 1))
    plans = [loads_of(plan) for plan in feasible_plans(count_rule(problem, "group"))]
    assert (min(map(max, plans)), max(map(min, plans))) == (bounds.max_load_lb, bounds.min_load_ub)


@pytest.mark.parametrize("seed", seeds(60))
def test_the_bound_of_unlike_members_is_no_higher_than_the_optimum(seed: int) -> None:
    random = Random(seed)
    unlike = random.choice([[1], [1, 1, 2, 3]])
    weights = {f"m{i}": random.choice(unlike) for i in range(random.choice([2, 3]))}
    lags = provoking_lags(random, random.randint(3, 8), random.choice(PROVOKING_LAGS[:7]))
    caps = {name: random.randint(1, 8) for name in weights if random.random() < 1 / len(unlike)}
    problem = Problem.from_lags({"t": lags}, list(weights), weights=weights, max_partitions=caps)
    for balance in BALANCES:
        try:
            rule = count_rule(problem, balance)
        except InfeasibleError:
            continue
        for kind in ("spread", "makespan"):
            assert load_bounds(rule).least(kind) <= exhaustive(problem, Goal(balance, 0, objective=kind)).objective


@pytest.mark.parametrize("seed", tiny_seeds(120))
def test_no_plan_lies_inside_the_window(seed: int) -> None:
    assert_window_holds(tiny_case(seed)[1], tiny_plans(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(60))
def test_the_bound_of_larger_groups_is_no_higher_than_the_optimum(seed: int) -> None:
    random = Random(seed)
    members = random.choice([2, 3, 3, 4])
    total = random.randint(members, {2: 12, 3: 9, 4: 7}[members])
    cut = random.choice([0, 0, random.randint(1, total - 1)])
    lags = provoking_lags(random, total, random.choice(PROVOKING_LAGS[:7]))
    problem = alike({"t": lags[cut:], "u": lags[:cut]} if cut else {"t": lags}, members)
    for balance in BALANCES:
        rule = count_rule(problem, balance)
        for kind in ("spread", "makespan"):
            assert load_bounds(rule).least(kind) <= exhaustive(problem, Goal(balance, 0, objective=kind)).objective
