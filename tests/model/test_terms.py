"""Terms of the objective beyond loads and moves, against all plans of small groups."""

from __future__ import annotations

import itertools
import random
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from evenlag import Problem, solve
from evenlag.errors import InfeasibleError, InvalidProblemError
from evenlag.model.check import plan_violation
from evenlag.model.pair_costs import PAIR_COSTS
from evenlag.model.pair_table import PairTable
from evenlag.model.plan import Plan
from tests.support.portfolios import without
from tests.support.problems import seeds
from tests.support.terms import drawn, pair_tables

BACKENDS = ("cp-sat", "cbc", "highs")


@pytest.mark.parametrize("seed", seeds(150))
def test_the_optimum_with_terms_is_the_best_of_all_plans(seed: int) -> None:
    question = drawn(seed)
    assert question is None or question.check(question.ask(time_limit=5))


@pytest.mark.parametrize("seed", range(30))
def test_the_optimum_is_found_without_enumeration(seed: int) -> None:
    question = drawn(5_000 + seed)
    with without("enumeration"):
        assert question is None or question.check(question.ask(time_limit=30))


@pytest.mark.parametrize("seed", range(30))
def test_bounds_hold_when_every_search_is_cut_short(seed: int) -> None:
    question = drawn(7_000 + seed)
    with without("enumeration", "cp-sat"):
        assert question is None or question.check(question.ask(time_limit=1)) in (False, True)


@pytest.mark.parametrize("seed", seeds(40))
def test_figures_are_right_for_large_numbers(seed: int) -> None:
    question = drawn(seed, large=True)
    with without("enumeration"):
        assert question is None or question.check(question.ask(time_limit=2)) in (False, True)


@pytest.mark.slow
@pytest.mark.parametrize("method", BACKENDS)
@pytest.mark.parametrize("seed", seeds(100))
def test_backends_are_right_for_large_numbers(seed: int, method: str) -> None:
    question = drawn(seed, large=True)
    assert question is None or question.check(question.ask(time_limit=30, method=method)) in (False, True)


@pytest.mark.slow
@pytest.mark.parametrize("method", BACKENDS)
@pytest.mark.parametrize("seed", seeds(60))
def test_every_backend_finds_the_optimum_with_terms(seed: int, method: str) -> None:
    question = drawn(10_000 + seed)
    assert question is None or question.check(question.ask(time_limit=30, method=method))


@pytest.mark.parametrize("method", BACKENDS)
def test_sizes_may_all_be_multiples_of_a_number(method: str) -> None:
    owned = {"a": [("t", 0), ("t", 1), ("t", 2)], "b": [("t", 3)]}
    problem = Problem.from_lags({"t": [6, 5, 5, 4]}, ["a", "b"], owned=owned, move_sizes={"t": [39, 13, 26, 13]})
    result = solve(problem, method=method, balance="none", first=("moves",), stickiness=0, max_load=11)
    assert (result.status, result.moved_size, result.cost_bounds) == ("OPTIMAL", 13, {"moved_size": 13})


@pytest.mark.parametrize("seed", range(3))
def test_binding_rules_are_found_though_relaxed_groups_exceed_the_ceiling(seed: int) -> None:
    rng = random.Random(seed)
    lags = [rng.randint(10, 60) for _ in range(18)]
    owned: dict[str, list[tuple[str, int]]] = {f"c{m}": [] for m in range(6)}
    for p in range(18):
        owned[f"c{rng.randrange(6)}"].append(("t", p))
    problem = Problem.from_lags({"t": lags}, {m: ["t"] for m in owned}, owned=owned, move_sizes={"t": lags})
    most = -(-sum(lags) // 6) + 1
    result = solve(problem, balance="none", first=("moves",), max_load=most, deterministic=True, work=0.3)
    assert result.makespan <= most


# ---- units ---------------------------------------------------------------------------------------------------------


def draw_units(rng: random.Random) -> Problem:
    """A group with two topics that go together and one by itself."""
    members = [f"c{m}" for m in range(rng.randint(2, 3))]
    lags = {topic: [rng.randint(0, 99) for _ in range(n)] for topic, n in {"a": 4, "b": 4, "z": 2}.items()}
    owned: dict[str, list[tuple[str, int]]] = {m: [] for m in members}
    for topic, here in lags.items():
        for p in range(len(here)):
            if rng.random() < 0.8:
                owned[rng.choice(members)].append((topic, p))
    more: dict[str, Any] = {"racks": {m: rng.choice("xy") for m in members}}
    more["partition_racks"] = {topic: [[rng.choice("xy")] for _ in here] for topic, here in lags.items()}
    if rng.random() < 0.5:
        more["move_sizes"] = {topic: [rng.randint(0, 9) for _ in here] for topic, here in lags.items()}
    return Problem.from_lags(lags, members, owned=owned, together=[("a", "b")], **more)


@pytest.mark.parametrize("seed", seeds(40))
def test_units_are_assigned_as_one(seed: int) -> None:
    rng = random.Random(seed)
    problem = draw_units(rng)
    price, rack_price = rng.choice((0, 3)), rng.choice((0, 5))
    first = rng.sample(["moves", "crossings"], rng.randint(0, 2))
    result = solve(problem, balance="none", stickiness=price, rack_price=rack_price, first=first, time_limit=5)
    index = {name: p for p, name in enumerate(problem.partitions)}
    units = [[index["a", i], index["b", i]] for i in range(4)] + [[index["z", 0]], [index["z", 1]]]
    tables = pair_tables(problem)
    ranked = []
    for chosen in itertools.product(range(len(problem.members)), repeat=len(units)):
        member_of = {p: m for unit, m in zip(units, chosen, strict=True) for p in unit}
        loads = [0] * len(problem.members)
        for p, m in member_of.items():
            loads[m] += int(problem.lags[p])
        spent = {name: sum(tables[name][p][m] for p, m in member_of.items()) for name in ("moved_size", "crossings")}
        spent["moves"] = spent["moved_size"]
        prices = {"moves": price, "crossings": rack_price}
        priced = sum(each * spent[name] for name, each in prices.items() if name not in first)
        ranked.append((*(spent[name] for name in first), max(loads) - min(loads) + priced))
    assert result.status == "OPTIMAL"
    figures = {"moves": result.moved_size, "crossings": result.crossings}
    assert (*(figures[name] for name in first), result.objective) == min(ranked)


def test_a_plan_that_parts_a_unit_is_refused() -> None:
    problem = Problem.from_lags({"a": [1], "b": [1]}, ["m", "n"], together=[("a", "b")])
    plan = Plan.from_assignment(problem, {"m": [("a", 0)], "n": [("b", 0)]})
    assert plan_violation(plan) == "a-0 and b-0 must go together, but go to different members"
    assert solve(problem).assignment in ({"m": [("a", 0), ("b", 0)], "n": []}, {"n": [("a", 0), ("b", 0)], "m": []})


# ---- what is asked for ---------------------------------------------------------------------------------------------


def test_crossings_without_racks_are_warned_about() -> None:
    result = solve(Problem.from_lags({"t": [3, 4]}, ["a", "b"]), rack_price=5, first=["crossings"])
    assert result.warnings == ("crossings are not counted: racks of members and of partitions are needed",)
    assert result.crossings is None


def test_an_unknown_cost_is_refused() -> None:
    problem = Problem.from_lags({"t": [3, 4]}, ["a", "b"])
    with pytest.raises(InvalidProblemError, match="did you mean 'crossings'"):
        solve(problem, first=["crosings"])


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"max_load": -1}, "max_load must be a number of messages >= 0"),
        ({"first": "moves"}, "first must be a list of criteria"),
        ({"first": ["moves", "spread"]}, "first must not have 'spread': loads always come last"),
        ({"max_crossings": 1.5}, "max_crossings must be a whole number"),
        ({"rack_price": "much"}, "the price of crossings must be messages"),
        ({"budgets": {"night": -2}}, "the budget of night must be a whole number"),
    ],
)
def test_wrong_values_are_refused(keywords: dict[str, Any], said: str) -> None:
    problem = Problem.from_lags({"t": [3, 4]}, ["a", "b"])
    with pytest.raises(InvalidProblemError, match=said):
        solve(problem, **keywords)


def test_infeasible_budgets_are_refused_with_the_least_feasible_one() -> None:
    problem = Problem.from_lags(
        {"t": [8, 4, 3]}, ["a", "b"], racks={"a": "x", "b": "y"}, partition_racks={"t": [["x"], ["x"], ["x"]]}
    )
    with pytest.raises(InfeasibleError, match="max_load is 6, but the fullest member needs 8 messages"):
        solve(problem, max_load=6)
    with pytest.raises(InfeasibleError, match="the budget of crossings is 0, but both balance needs 1"):
        solve(problem, max_crossings=0)
    assert solve(problem, max_load=8).makespan == 8


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"max_load": float("inf")}, "max_load must be a number of messages >= 0, not inf"),
        ({"first": None}, "first must be a list of criteria"),
        ({"first": 5}, "first must be a list of criteria"),
        ({"budgets": {"moves": 0}}, "the budget of moves is max_moves"),
        ({"budgets": {"crossings": None}, "max_crossings": 0}, "max_crossings is 0, but budgets has crossings: None"),
        ({"budgets": {"moved_size": 3}, "max_moved": 4}, "max_moved is 4, but budgets has moved_size: 3"),
        ({"prices": {"crossings": 0}, "rack_price": 5}, "rack_price is 5, but prices has crossings: 0"),
        ({"prices": {"crossings": "2%"}, "rack_price": 2}, "rack_price is 2, but prices has crossings: '2%'"),
        ({"prices": {"crossings": 2}, "rack_price": "much"}, "the price of crossings must be messages"),
        ({"prices": {"moved_size": 5}, "stickiness": 2}, "stickiness is 2, but prices has moved_size: 5"),
        ({"prices": {"moved_size": "1%"}, "stickiness": "1%"}, "stickiness is '1%', but prices has moved_size: '1%'"),
        ({"prices": {"moved_size": 5}, "stickiness": "fewest-moves"}, "stickiness is 'fewest-moves', but prices has"),
        ({"prices": {"moves": 5}}, "the price of moves is stickiness"),
    ],
)
def test_no_budget_is_silently_ignored(keywords: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidProblemError, match=said):
        solve(Problem.from_lags({"t": [3, 4]}, ["a", "b"]), **keywords)


def test_a_limit_of_sizes_is_no_limit_of_the_number_of_moves() -> None:
    owned = {"a": [("t", p) for p in range(4)]}
    problem = Problem.from_lags({"t": [4, 3, 2, 1]}, ["a", "b"], owned=owned, move_sizes={"t": [0, 0, 0, 9]})
    result = solve(problem, max_moves=2, max_moved=0)
    assert (result.status, result.moves, result.moved_size) == ("OPTIMAL", 2, 0)


@pytest.mark.parametrize("sizes", [None, {"t": [1, 1, 1, 1]}, {"t": [1, 2, 1, 3]}])
@pytest.mark.parametrize("price", [0, 2, 30])
def test_a_price_of_moved_sizes_of_one_equals_stickiness(sizes: dict[str, list[int]] | None, price: int) -> None:
    owned = {"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)]}
    problem = Problem.from_lags({"t": [9, 8, 2, 1]}, ["a", "b"], owned=owned, move_sizes=sizes)
    plain = solve(problem, stickiness=price)
    for keywords in ({}, {"stickiness": price}):
        named = solve(problem, prices={"moved_size": price}, **keywords)
        assert (named.objective, named.bound, named.stickiness) == (plain.objective, plain.bound, price)
        assert (named.moves > 0) == (price < 5)


@pytest.mark.parametrize("sizes", [None, {"t": [1, 1]}, {"t": [1, 2]}])
def test_moved_sizes_of_one_come_first_as_moves_do(sizes: dict[str, list[int]] | None) -> None:
    problem = Problem.from_lags({"t": [9, 8]}, ["a", "b"], owned={"a": [("t", 0), ("t", 1)]}, move_sizes=sizes)
    plain, named = (solve(problem, balance="none", stickiness=1, first=[name]) for name in ("moves", "moved_size"))
    assert (named.objective, named.moves, named.first) == (plain.objective, 0, plain.first)


def test_a_term_given_twice_with_one_value_counts_once() -> None:
    racks: dict[str, Any] = {"racks": {"a": "x", "b": "y"}, "partition_racks": {"t": [["x"], ["x"], ["y"]]}}
    problem = Problem.from_lags({"t": [8, 4, 3]}, ["a", "b"], **racks)
    once = solve(problem, rack_price="10%", max_crossings=1, max_moved=2)
    twice = solve(
        problem, rack_price="10.0%", max_crossings=1, max_moved=2, prices={"crossings": "10%"},
        budgets={"crossings": 1, "moved_size": 2},
    )  # fmt: skip
    assert (twice.objective, twice.bound, twice.prices) == (once.objective, once.bound, once.prices)
    assert once.prices == {"crossings": 1}


@pytest.mark.parametrize("left_out", [(), ("enumeration",)])
def test_the_price_of_a_cost_that_is_zero_everywhere_has_no_effect(left_out: tuple[str, ...]) -> None:
    problem = Problem.from_lags({"t": [3, 4]}, ["a", "b"], costs={"free": {"a": 0}, "n": {"a": 1}})
    with without(*left_out):
        result = solve(problem, prices={"free": 1e12, "n": 1e-9})
    assert (result.status, result.objective) == ("OPTIMAL", 1 + Fraction(1, 10**9))


@pytest.mark.parametrize("left_out", [(), ("enumeration",)])
def test_a_price_above_64_bits_has_no_effect_where_no_plan_pays_it(left_out: tuple[str, ...]) -> None:
    costs = {"n": {("t", 0, "a"): 1}}
    problem = Problem.from_lags({"t": [3, 4]}, ["a", "b"], costs=costs, pins=[("t", 0, "b")])
    with without(*left_out):
        assert solve(problem, prices={"n": 1e30}).objective == 1


def test_the_least_ceiling_is_rounded_up() -> None:
    problem = Problem.from_lags({"t": [3001, 3000]}, ["a", "b"], weights={"a": 0.37, "b": 1.913})
    with pytest.raises(InfeasibleError, match=r"fullest member needs .*: [\d,.]+ can be kept") as error:
        solve(problem, max_load=1e-9)
    found = re.search(r"max_load is 1e-09.*: ([\d,.]+) can be kept", str(error.value))
    assert found is not None
    assert solve(problem, max_load=float(found[1].replace(",", ""))).status == "OPTIMAL"


# ---- a cost that follows from code ---------------------------------------------------------------------------------


def test_a_cost_without_data_of_pairs_counts_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def spot(problem: Problem) -> PairTable:
        on_spot = np.array([name.endswith("-spot") for name in problem.members], dtype=np.int64)
        return PairTable.by_class(np.tile([0, 3], (len(problem.lags), 1)), on_spot)

    monkeypatch.setitem(PAIR_COSTS, "night", spot)
    monkeypatch.setattr("tests.support.verified.EFFORT", 0)  # no problem file says what it costs
    problem = Problem.from_lags(
        {"t": [10, 10, 20]}, ["a-spot", "b"], owned={"a-spot": [("t", 0), ("t", 1)], "b": [("t", 2)]}
    )
    as_data = Problem.from_lags(
        {"t": [10, 10, 20]}, ["a-spot", "b"], owned={"a-spot": [("t", 0), ("t", 1)], "b": [("t", 2)]},
        costs={"evening": {"a-spot": 3}},
    )  # fmt: skip
    found = solve(problem, prices={"night": 100}, only_if_better="1%")
    same = solve(as_data, prices={"evening": 100}, only_if_better="1%")
    assert found.costs == {"night": same.costs["evening"]}
    assert (found.objective, found.pays) == (same.objective, same.pays)
    assert found.payoff is not None
    assert same.payoff is not None
    assert found.payoff.today == same.payoff.today == 600


def test_a_share_as_stickiness_prices_a_move_of_the_exact_mean_size() -> None:
    """The mean load is 75, and 8 % of it are 6; sizes 1 and 2 have the mean 1.5, so a unit costs 4."""
    owned = {"a": [("t", 0), ("t", 1)]}
    problem = Problem.from_lags({"t": [100, 50]}, ["a", "b"], owned=owned, move_sizes={"t": [1, 2]})
    assert solve(problem, stickiness="8%").stickiness == 4


def test_stickiness_is_reported_as_given_where_nothing_can_move() -> None:
    problem = Problem.from_lags({"a": [3], "b": [4]}, ["x"], together=[("a", "b")], owned={"x": [("a", 0), ("b", 0)]})
    assert solve(problem, stickiness=5).stickiness == 5
