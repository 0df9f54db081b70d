"""Bounds of backends stay true for figures beyond their digits."""

import math
from itertools import product

import numpy as np
import pytest

import evenlag
from evenlag.model.asked_terms import AskedTerms, resolve_objective
from evenlag.model.backends import BACKENDS, Limits
from evenlag.model.backends.cp_sat import round_up
from evenlag.model.balance import count_rule
from evenlag.model.formulation import formulate
from evenlag.model.plan import Plan
from tests.support.exact import FEWEST, Goal, assess, exhaustive
from tests.support.problems import alike
from tests.support.programs import ROOM, program, run_backend


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("lags", [[10**12 + 7, 10**12, 3, 2, 1], [987_654_321, 123_456_789, 55_555_555, 7, 5]])
def test_no_bound_passes_the_optimum_through_rounding(lags: list[int], name: str) -> None:
    problem = alike(lags, "ab")
    goal = Goal(stickiness=0)
    mip = program(problem, goal)
    outcome = run_backend(name, mip, Limits(ROOM))
    assert outcome.bound is None or mip.in_messages(outcome.bound) <= exhaustive(problem, goal).objective


@pytest.mark.parametrize("exponent", range(63))
def test_a_bound_is_rounded_up_after_the_error_of_a_double_is_taken_off(exponent: int) -> None:
    whole = 2.0**exponent
    above = [math.nextafter(whole, math.inf), whole + 1e-7]
    assert all(round_up(bound) <= int(whole) for bound in [whole, *above] if not bound.is_integer() or bound == whole)
    assert round_up(whole) == int(whole) if exponent < 53 else int(whole) - 2**20 <= round_up(whole) < int(whole)
    if exponent < 40:
        assert round_up(whole + 0.5) == int(whole) + 1
        assert round_up(whole, margin=0.25) == int(whole)
        assert round_up(whole, margin=1.25) == int(whole) - 1


def test_infinity_and_nan_give_no_bound() -> None:
    assert [round_up(bound) for bound in (math.inf, -math.inf, math.nan)] == [None] * 3


Costs = dict[str, dict[tuple[str, int, str], int]]


def far_pairs(*pairs: tuple[int, int, int]) -> dict[tuple[str, int, str], int]:
    return {("t", p, f"c{m}"): units for p, m, units in pairs}


WIDE: dict[str, tuple[list[int], Costs, dict[str, float]]] = {
    "large lags": (
        [518102157, 2, 4, 4, 9, 3, 2],
        {"near": far_pairs(*((p, 0, 1) for p in range(7))), "far": far_pairs((0, 0, 1), (1, 0, 1), (4, 0, 1))},
        {"far": 1, "near": 1000},
    ),
    "large lags, small prices": (
        [87, 704202, 3, 7, 6, 8, 2, 322353284],
        {"near": far_pairs((5, 1, 34)), "far": far_pairs()},
        {"near": 1e-9, "far": 1000},
    ),
    "large costs and prices beside small ones": (
        [0, 29, 0, 8],
        {
            "near": far_pairs(
                (0, 0, 199368), (1, 0, 983552), (2, 0, 732310), (3, 0, 412277),
                (0, 1, 116987), (1, 1, 996391), (2, 1, 351077), (3, 1, 819052),
            ),
            "far": far_pairs((1, 0, 557650)),
        },
        {"far": 1e-9, "near": 1e12},
    ),
    "small costs, large prices beside small ones": (
        [40, 3, 12, 7],
        {"near": far_pairs((0, 0, 1), (1, 1, 2), (2, 0, 1)), "far": far_pairs((1, 0, 1), (3, 0, 1), (3, 1, 1))},
        {"near": 1e-9, "far": 1e12},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case_of", WIDE)
@pytest.mark.parametrize("backend", BACKENDS)
def test_bounds_stay_true_where_costs_and_prices_differ_widely(backend: str, case_of: str) -> None:
    lags, costs, prices = WIDE[case_of]
    problem = evenlag.Problem.from_lags({"t": lags}, ["c0", "c1"], costs=costs)
    rule = count_rule(problem, "both")
    goal = resolve_objective(rule, stickiness=0, asked=AskedTerms(prices))
    members = np.array(list(product(range(2), repeat=len(lags))), dtype=np.int32)
    even = members[abs(2 * members.sum(axis=1) - len(lags)) <= 1]
    least = min(goal.value(Plan(problem, member_of)) for member_of in even)
    mip = formulate(problem, rule, goal)
    outcome = run_backend(backend, mip, Limits(ROOM))
    assert not outcome.infeasible
    assert outcome.bound is None or mip.in_messages(outcome.bound) <= least


SIZES = {
    "2**62 each": [2**62] * 7,
    "near 2**62": [2**62, 2**62 - 1, 2**62 - 5, 2**61 + 3, 12, 1, 0],
    "10**15 each": [10**15] * 7,
    "near 10**15": [10**15 + i * i for i in range(7)],
    "zero": [0] * 7,
    "equal": [42] * 7,
}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", *BACKENDS])
@pytest.mark.parametrize("size", SIZES)
def test_methods_are_right_for_lags_of_every_size(size: str, method: str) -> None:
    lags, members = SIZES[size], {"a": ["t"], "b": ["t"], "c": ["t"]}
    problem = evenlag.Problem.from_lags({"t": lags}, members, owned={"a": [("t", 0), ("t", 1), ("t", 2), ("t", 3)]})
    for goal in (Goal(), Goal(stickiness=0), Goal("none", objective="makespan"), Goal(stickiness=FEWEST)):
        result = evenlag.solve(problem, **vars(goal), method=method, time_limit=1 if method == "auto" else 5)
        figures = assess(problem, result.assignment, goal)
        wanted = exhaustive(problem, goal).objective
        assert (result.objective, result.spread) == (figures.objective, figures.spread)
        assert all(type(number) is int for number in (result.objective, result.bound, *result.loads.values()))
        assert result.bound <= wanted <= result.objective
        if result.status == "OPTIMAL":
            assert result.objective == wanted
        if len(set(lags)) == 1 and goal.objective == "spread":
            assert result.status == "OPTIMAL"
        assert not any("Error" in warning for warning in result.warnings), result.warnings


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", *BACKENDS])
def test_methods_are_right_for_huge_lags_with_weights(method: str) -> None:
    members = {"a": ["t"], "b": ["t"], "c": ["t"]}
    problem = evenlag.Problem.from_lags({"t": SIZES["near 2**62"]}, members, weights={"a": 3, "b": 0.7, "c": 1})
    goal = Goal(stickiness=0)
    result = evenlag.solve(problem, **vars(goal), method=method, time_limit=1 if method == "auto" else 5)
    assert assess(problem, result.assignment, goal).objective == result.objective
    assert result.bound <= exhaustive(problem, goal).objective <= result.objective
