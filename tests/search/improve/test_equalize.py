"""Equalizing, pair search and three-way search keep the rule and come no farther from the window."""

from collections.abc import Callable
from fractions import Fraction
from itertools import islice
from random import Random
from typing import Any

import numpy as np
import pytest

from evenlag.errors import EvenlagError, InfeasibleError
from evenlag.heuristics import HEURISTICS
from evenlag.model.balance import CountRule, count_rule
from evenlag.model.check import violation
from evenlag.model.plan import Number, Plan, current_plan
from evenlag.model.problem import NOBODY
from evenlag.search.construct.fresh import fewest_moves_plan, greedy
from evenlag.search.improve import few_held
from evenlag.search.improve.equalize import equalize
from evenlag.search.improve.pairs import PairSearch
from evenlag.search.improve.state import SearchState
from evenlag.search.subsets import exact_cover_is_a_plan
from tests.support.exact import Group
from tests.support.problems import PROVOKING_LAGS, alike, provoking_lags, seeds
from tests.support.searching import BALANCES, feasible_plans, loads_of, random_case, stop_after, target_window


def pairs_alone(
    plan: Plan,
    rule: CountRule,
    window: tuple[Number, Number],
    stop: Callable[[], bool],
    seed: int = 0,
) -> Plan:
    """Run pair search alone, without the other ways to equalize."""
    state = SearchState(plan, rule, window, seed)
    pairs = PairSearch(state)
    pairs.rounds(stop)
    pairs.worst_first(stop)
    return Plan(plan.problem, state.member_of)


def start_plans(rule: CountRule) -> list[Plan]:
    """Return start plans that keep the rule: fewest moves, greedy, today's and the published assignors'."""
    plans = [fewest_moves_plan(rule), greedy(rule), current_plan(rule.problem)]
    for heuristic in HEURISTICS.values():
        try:
            plans.append(heuristic(rule.problem))
        except EvenlagError:
            continue
    return [plan for plan in plans if violation(plan, rule) is None]


def distance_outside(plan: Plan, window: tuple[Number, Number]) -> Number:
    """Return the largest distance of a load from the window, whose ends are rounded outward to possible loads."""
    unit = plan.problem.load_unit
    low, high = window[0] // unit * unit, -(-window[1] // unit) * unit
    outside: list[Number] = [max(low - load, load - high, Fraction(0)) for load in loads_of(plan)]
    return max(outside)


@pytest.mark.slow
@pytest.mark.parametrize("search", [equalize, pairs_alone])
@pytest.mark.parametrize("seed", seeds(120))
def test_equalizing_comes_no_farther_from_the_window(seed: int, search: Callable[..., Plan]) -> None:
    problem, rule, random = random_case(seed)
    window = target_window(rule)
    found = start_plans(rule)
    for start in random.sample(found, min(2, len(found))):
        plan = search(start, rule, window, stop_after(random.choice([0, 3, 60])), seed)
        assert violation(plan, rule) is None
        pinned = problem.pins != NOBODY
        assert (plan.member_of[pinned] == problem.pins[pinned]).all()
        assert distance_outside(plan, window) <= distance_outside(start, window)


def restricted_rule(seed: int, kind: str) -> CountRule:
    """A rule for members with a few interchangeable partitions each, alike but for one restriction."""
    random = Random(f"{seed} {kind}")
    while True:
        members = random.randint(2, 5)
        count = random.randint(members, 4 * members)
        names = [f"c{m:03}" for m in range(members)]
        more: dict[str, Any] = {}
        if kind == "pins":
            more["pins"] = [("t", i, random.choice(names)) for i in random.sample(range(count), min(3, count))]
        elif kind == "caps":
            more["max_partitions"] = {name: random.randint(1, 5) for name in random.sample(names, members // 2 + 1)}
        elif kind == "weights":
            more["weights"] = {name: random.choice([1, 2, 3, 10, 0.5]) for name in names}
            count = random.randint(2, 2 * members)
        problem = alike({"t": provoking_lags(random, count, random.choice(PROVOKING_LAGS))}, members, **more)
        try:
            return count_rule(problem, random.choice(BALANCES), random.randint(1, 2) if kind == "slack" else 0)
        except InfeasibleError:
            continue


def random_plans(rule: CountRule, random: Random, most: int) -> list[Plan]:
    """Return up to `most` random plans that keep the rule; 100 are drawn."""
    group = Group(rule.problem)
    drawn = (
        Plan(rule.problem, np.array([random.choice(group.options[p]) for p in group.assignable], dtype=np.int32))
        for _ in range(100)
    )
    return list(islice((plan for plan in drawn if violation(plan, rule) is None), most))


def three_way_alone(
    plan: Plan, rule: CountRule, window: tuple[Number, Number], stop: Callable[[], bool], seed: int = 0
) -> Plan:
    """Run three-way search alone, where it applies."""
    state = SearchState(plan, rule, window, seed)
    if exact_cover_is_a_plan(rule) and few_held.three_way_applies(state):
        few_held.three_way_search(state, stop)
    return Plan(plan.problem, state.member_of)


def test_two_members_share_anew_what_both_hold() -> None:
    problem = alike([9, 7, 4, 2], "ab", owned={"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)]})
    rule = count_rule(problem)
    state = SearchState(current_plan(problem), rule, (11, 11), 0)
    few_held.best_pair_search(state, stop_after(10))
    assert loads_of(Plan(problem, state.member_of)) == [11, 11]


@pytest.mark.slow
@pytest.mark.parametrize("search", [equalize, pairs_alone, three_way_alone])
@pytest.mark.parametrize("kind", ["none", "pins", "caps", "weights", "slack"])
@pytest.mark.parametrize("seed", seeds(25))
def test_equalizing_keeps_pins_caps_weights_and_slack(seed: int, kind: str, search: Callable[..., Plan]) -> None:
    rule = restricted_rule(seed, kind)
    window = target_window(rule)
    for start in (greedy(rule), *random_plans(rule, Random(seed), 2)):
        plan = search(start, rule, window, stop_after(60), seed)
        assert violation(plan, rule) is None
        assert distance_outside(plan, window) <= distance_outside(start, window)


@pytest.mark.slow
@pytest.mark.parametrize("search", [equalize, pairs_alone])
@pytest.mark.parametrize("seed", seeds(12))
def test_equalizing_by_weight_comes_no_farther_from_the_window(seed: int, search: Callable[..., Plan]) -> None:
    random = Random(seed)
    weights = {"c000": 0.5, "c001": random.choice([2, 3]), "c002": 0.5}
    problem = alike({"t": provoking_lags(random, random.randint(2, 3), "few")}, 3, weights=weights)
    rule = count_rule(problem, "none")
    for start in feasible_plans(rule):
        plan = search(start, rule, target_window(rule), stop_after(60), seed)
        assert violation(plan, rule) is None
        assert distance_outside(plan, target_window(rule)) <= distance_outside(start, target_window(rule))


@pytest.mark.parametrize("held", [2, 3, 4, 5])
@pytest.mark.parametrize("seed", seeds(6))
def test_three_members_equalize_where_no_two_can(seed: int, held: int) -> None:
    """Equal loads are disturbed by a rotation of three members, so a rotation makes them equal again."""
    random = Random(f"{seed} {held}")
    half = [[random.randint(1, 10**6) for _ in range(held - 1)] for _ in range(3)]
    even = max(map(sum, half)) + 10**6
    rows = [[*row, even - sum(row)] for row in half]
    firsts = [row[0] for row in rows]
    for row, lag in zip(rows, firsts[1:] + firsts[:1], strict=True):
        row[0] = lag
    rule = count_rule(alike({"t": [lag for row in rows for lag in row]}, 3), "group")
    start = Plan(rule.problem, np.repeat(np.arange(3), held).astype(np.int32))
    plan = three_way_alone(start, rule, (even, even), stop_after(3_000), seed)
    assert violation(plan, rule) is None
    assert plan.counts.tolist() == [held] * 3
    assert plan.spread == 0


@pytest.mark.parametrize("seed", seeds(25))
def test_equalizing_keeps_slack_where_counts_are_as_uneven_as_it_allows(seed: int) -> None:
    random = Random(seed)
    rule = count_rule(alike({"t": provoking_lags(random, 12, random.choice(PROVOKING_LAGS))}, 4), "group", 1)
    members = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3]
    random.shuffle(members)
    start = Plan(rule.problem, np.array(members, dtype=np.int32))
    plan = equalize(start, rule, target_window(rule), stop_after(60), seed)
    assert violation(plan, rule) is None
    assert distance_outside(plan, target_window(rule)) <= distance_outside(start, target_window(rule))


@pytest.mark.parametrize("seed", seeds(10))
def test_equalizing_reaches_the_window_where_there_is_much_to_choose_from(seed: int) -> None:
    random = Random(seed)
    lags = {"t": [random.randint(0, 1_000) for _ in range(60)]}
    rule = count_rule(alike(lags, 6))
    start = HEURISTICS["range"](rule.problem)
    plan = equalize(start, rule, target_window(rule), stop_after(2_000), seed)
    assert start.spread > plan.spread == (sum(lags["t"]) % 6 > 0)
