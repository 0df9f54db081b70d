"""Bounds on the objective by moves, against every plan."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from evenlag.model.balance import count_rule
from evenlag.model.bounds import load_bounds
from evenlag.model.move_bounds import MoveBound
from evenlag.model.plan import Number, Plan
from evenlag.model.problem import NOBODY
from evenlag.model.rounded_moves import rounded_moves
from tests.support.exact import Goal, by_moves, within
from tests.support.problems import HUGE, alike
from tests.support.searching import feasible_plans, loads_of, tiny_case, tiny_plans, tiny_seeds


@cache
def tiny_loads(seed: int) -> list[tuple[int, Fraction, Fraction]]:
    """Return moves, greatest and smallest load of each plan."""
    return [(plan.moves, max(loads), min(loads)) for plan in tiny_plans(seed) for loads in [loads_of(plan)]]


@pytest.mark.parametrize("seed", tiny_seeds(110))
def test_no_plan_beats_the_bound_on_moves(seed: int) -> None:
    problem, rule = tiny_case(seed)
    if not (problem.owner != NOBODY).any():
        return
    fewest = min(plan.moves for plan in tiny_plans(seed))
    assert rule.fewest_moves()[0] == fewest
    most = max(plan.moves for plan in tiny_plans(seed))
    for spread in (True, False):
        least = {  # of plans with so many moves
            moves: min(high - (low if spread else 0) for count, high, low in tiny_loads(seed) if count == moves)
            for moves in {count for count, _, _ in tiny_loads(seed)}
        }
        bound = MoveBound(rule, load_bounds(rule), fewest, spread=spread)
        bases = [bound.base(moves) for moves in range(fewest, most + 1)]
        assert bases == sorted(bases, reverse=True)
        assert bases[-1] >= bound.base(None)
        for moves, base in least.items():
            assert bound.base(moves) <= base
        known = MoveBound(rule, load_bounds(rule), fewest, spread=spread, least=min(least.values()))
        assert known.base(None) >= bound.base(None)
        assert known.base(None) <= min(least.values())
        for price in (0, 1, 7, Fraction(1, 3), 1_000, HUGE):
            for budget in (None, *range(fewest, most + 1)):
                best = min(base + price * m for m, base in least.items() if budget is None or m <= budget)
                assert bound.objective(price, budget) <= known.objective(price, budget) <= best, (price, budget)
                assert bound.objective(price, budget, evaluations=3) <= best, (price, budget)


BOUGHT: list[tuple[str, str, list[int], dict[str, list[int]]]] = [  # lags, and who holds what
    ("spread", "none", [8, 2, 5, 5], {"a": [0, 1, 2, 3], "b": []}),
    ("spread", "none", [20, 20, 3], {"a": [0, 1, 2], "b": [], "c": []}),
    ("spread", "none", [13, 3, 20, 13, 20], {"a": [0, 1, 3, 4], "b": [], "c": []}),  # 2 is nobody's yet
    ("spread", "group", [13, 8, 1, 20], {"a": [0, 3], "b": [2], "c": [1]}),
    ("spread", "group", [8, 5, 3, 1, 20], {"a": [0, 4], "b": [], "c": [2, 3]}),
    ("makespan", "none", [13, 2, 13, 2, 13], {"a": [0, 1, 2, 3, 4], "b": [], "c": []}),
    ("makespan", "none", [20, 3, 13, 20, 3], {"a": [0, 1, 2, 3], "b": []}),
    ("makespan", "group", [3, 13, 20, 20, 8, 1], {"a": [2, 4], "b": [], "c": [1, 3]}),
    ("spread", "none", [1, 1, 20, 8, 8], {"a": [3], "b": [0, 1], "c": [4]}),  # 2 is nobody's: one taker is too few
    ("makespan", "group", [1, 3, 13, 13], {"a": [1], "b": [0], "c": [2, 3]}),  # as above
    ("spread", "group", [3, 2, 1, 5, 5], {"a": [1, 4], "b": [2], "c": [0, 3]}),  # one giver is too few
]


@pytest.mark.parametrize(("kind", "balance", "lags", "held"), BOUGHT)
def test_the_bound_by_moves_is_met_by_a_plan(
    kind: str, balance: str, lags: list[int], held: dict[str, list[int]]
) -> None:
    problem = alike(lags, held, owned={name: [("t", p) for p in these] for name, these in held.items()})
    least, rule = by_moves(problem, Goal(balance, 0, objective=kind)), count_rule(problem, balance)
    fewest = min(least)
    bound = MoveBound(rule, load_bounds(rule), fewest, spread=kind == "spread")
    best = [within(least, budget) for budget in least]
    assert len(set(best)) >= 3
    assert [bound.base(budget) for budget in least] == best
    for price in (0, 1, 3, 1_000):
        assert bound.objective(price, None) == min(base + price * moves for moves, base in least.items())


def test_the_bound_on_moves_is_met_where_swaps_are_all_that_helps() -> None:
    lags = {"t": [8, 8, 0, 0]}
    problem = alike(lags, 2, owned={"c000": [("t", 0), ("t", 1)], "c001": [("t", 2), ("t", 3)]})
    rule = count_rule(problem)
    bound = MoveBound(rule, load_bounds(rule), 0)
    plans = feasible_plans(rule)
    for budget in (0, 2, 4, None):
        least = min(plan.spread for plan in plans if budget is None or plan.moves <= budget)
        assert bound.base(budget) == least
    for price in (0, 1, 7, Fraction(1, 3), 1_000):
        least = min(plan.spread + price * plan.moves for plan in plans)
        assert bound.objective(price, 0) == least_spread_at(plans, 0)
        assert bound.objective(price, None) <= least
    assert bound.objective(1, None) == min(plan.spread + plan.moves for plan in plans)


def least_spread_at(plans: list[Plan], moves: int) -> Number:
    return min(plan.spread for plan in plans if plan.moves == moves)


def test_what_a_member_left_takes_many_members_to_carry() -> None:
    """Ten members with ten partitions of 10 messages each, and two of 50 that the last one left."""
    held = {f"m{m}": list(range(10 * m, 10 * m + 10)) for m in range(10)}
    owned = {name: [("t", p) for p in these] for name, these in held.items()}
    problem = alike([10] * 100 + [50] * 2, held, owned=owned)
    rule = count_rule(problem, "none")
    bound = MoveBound(rule, load_bounds(rule), 0)
    assert [bound.base(moves) for moves in (0, 2, 7, 8, None)] == [50, 25, 13, 0, 0]  # 2 more members take than moves
    assert [bound.objective(price, None) for price in (20, 7, 2)] == [50, 25 + 2 * 7, 8 * 2]


def test_a_partition_without_room_displaces_others() -> None:
    """One of nine members with five partitions of 20 messages each takes one of 35, which nobody owns."""
    held = {f"m{m}": list(range(5 * m, 5 * m + 5)) for m in range(9)}
    owned = {name: [("t", p) for p in these] for name, these in held.items()}
    problem = alike([20] * 45 + [35], held, owned=owned)
    rule = count_rule(problem, "none")
    bound = MoveBound(rule, load_bounds(rule), 0)
    assert [bound.base(moves) for moves in (0, 1, 2)] == [35, 20, 20]


def test_moves_that_no_plan_has_are_not_counted_one_by_one() -> None:
    none = np.zeros(0, dtype=np.int64)
    steps = rounded_moves(np.array([5, 5]), np.array([10**12]), none, first=6, enough=3)
    assert [(step.end, step.moves) for step in steps][-1] == (5 + 10**12 // 3, 3)
    assert rounded_moves(none, none, none, first=6, enough=3) == []
