"""Dynamic programming over members' exchanges, against an independent exact solver."""

from random import Random
from typing import Any

import pytest

import evenlag
from evenlag.model.asked_terms import resolve_objective
from evenlag.model.balance import CountRule, count_rule
from evenlag.model.bounds import load_bounds
from evenlag.model.check import violation
from evenlag.model.objective import Objective
from evenlag.search.exact.deepening import Proof
from evenlag.search.exact.member_options import JoinLimits
from evenlag.search.exact.move_plans import MovePlans, applies, best_plan_with_moves
from tests.support.exact import Goal, Infeasible, by_cp_sat, exhaustive
from tests.support.owned import SIZES, case, meant, mostly_owned
from tests.support.problems import alike, seeds


def ask(rule: CountRule, goal: Objective, bound: int, value: int, size: float = 1.0, steps: int = 10**9) -> Proof:

    def stop() -> bool:
        nonlocal steps
        steps -= 1
        return steps < 0

    return best_plan_with_moves(MovePlans(rule, goal, load_bounds(rule), stop, JoinLimits().times(size)), bound, value)


def assert_best(proof: Proof, rule: CountRule, goal: Objective, best: int) -> None:
    assert proof.plan is not None
    assert violation(proof.plan, rule, goal) is None
    assert goal.value(proof.plan) == proof.bound == best
    assert proof.stopped == "proof"


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(300))
def test_a_plan_called_best_is_the_optimum(seed: int) -> None:
    problem, parameters, rule, goal = case(seed)
    random = Random(seed)
    best = int(exhaustive(problem, Goal(**parameters)).objective)
    least = random.choice([0, best, random.randint(0, best)])
    for value in (best + 1, best + random.randint(2, 50), 2 * best + 100):
        assert_best(ask(rule, goal, least, value), rule, goal, best)
    if best > least:
        assert ask(rule, goal, least, best) == Proof(None, best, "proof")


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["spread", "makespan"])
@pytest.mark.parametrize("seed", seeds(80))
def test_what_is_not_worth_a_move_is_never_in_the_optimum(seed: int, objective: str) -> None:
    random = Random(f"{seed} {objective}")
    members = random.choice([2, 3, 4])
    problem = mostly_owned(random, random.randint(members, SIZES[members]), members, "small")
    price = random.choice([1, 2, 3, 5, 8, 13])  # lags from 0 to 9: many are about the same for it
    parameters: dict[str, Any] = {"balance": "group", "stickiness": price, "objective": objective}
    rule = count_rule(problem, "group")
    goal = resolve_objective(rule, objective, price)
    if not applies(rule, goal):
        return
    best = int(exhaustive(problem, Goal(**parameters)).objective)
    assert_best(ask(rule, goal, 0, best + random.randint(1, 3 * price)), rule, goal, best)
    assert ask(rule, goal, 0, best) == Proof(None, best, "proof")


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(60))
def test_the_bound_is_true_where_the_program_ends_early(seed: int) -> None:
    problem, parameters, rule, goal = case(seed)
    random = Random(seed)
    best = int(exhaustive(problem, Goal(**parameters)).objective)
    for size, steps in ((1e-5, 10**9), (random.choice([1e-6, 1e-4]), 50), (1.0, random.randint(0, 20))):
        proof = ask(rule, goal, 0, 2 * best + 100, size, steps)
        if proof.plan is not None:
            assert_best(proof, rule, goal, best)
        else:
            assert proof.stopped == "work"
            assert proof.bound <= best


@pytest.mark.parametrize("seed", seeds(6))
def test_sets_of_more_than_64_partitions_are_handled(seed: int) -> None:
    random = Random(seed)
    members = random.randint(2, 3)
    problem = evenlag.Problem.from_lags(
        {"t": [random.randint(0, 50) * 20 for _ in range(70)]},
        {f"c{m}": ["t"] for m in range(members)},
        owned={f"c{m}": [("t", p) for p in range(m, 68, members)] for m in range(members)},
    )
    parameters = {"stickiness": random.choice([0, 30]), "max_moves": random.randint(1, 2)}
    rule = count_rule(problem, "both")
    goal = resolve_objective(rule, **parameters)
    best = int(by_cp_sat(problem, Goal(**parameters)).objective)
    assert_best(ask(rule, goal, 0, best + 500), rule, goal, best)


def test_the_stage_applies_only_to_loads_counts_and_moves() -> None:
    members = {"c0": ["t", "u"], "c1": ["t", "u"], "c2": ["t", "u"]}
    drawn, owned = {"t": [5, 4, 3, 2], "u": [1, 1, 1]}, {"c0": [("t", 0), ("u", 1)]}

    def possible(balance: str = "group", stickiness: float = 1, **changed: Any) -> bool:
        arguments = {"lags": drawn, "members": members, "owned": owned} | changed
        rule = count_rule(evenlag.Problem.from_lags(**arguments), balance)
        return applies(rule, resolve_objective(rule, stickiness=stickiness))

    assert possible()
    assert not possible("both")
    assert not possible(stickiness=0.5)
    assert not possible(owned={})
    assert not possible(pins=[("t", 0, "c0")])
    assert not possible(weights={"c0": 2})
    assert not possible(members=members | {"c2": ["t"]})
    assert not possible(lags={"t": [2**62] * 4, "u": [1, 1, 1]})
    assert possible(lags={"t": [1] * 253, "u": [1, 1, 1]})
    assert not possible(lags={"t": [1] * 254, "u": [1, 1, 1]})


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(40))
def test_solve_by_this_stage_finds_the_optimum(seed: int) -> None:
    problem, parameters, *_ = case(1000 + seed)
    result = evenlag.solve(problem, **parameters, time_limit=20.0)
    try:
        best = exhaustive(problem, Goal(**parameters)).objective
    except Infeasible:
        pytest.fail("solve found a plan where there is none")
    assert result.status == "OPTIMAL"
    assert result.objective == result.bound == best


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(60))
def test_a_member_capped_at_0_gives_all_it_owns(seed: int) -> None:
    """Partitions of a member with `max_partitions` 0 move in every plan, at the price of a move each."""
    random = Random(seed)
    problem = mostly_owned(random, random.randint(4, 8), 3, random.choice(["small", "zeros"]), max_partitions={"c2": 0})
    parameters = {"balance": "none", "stickiness": random.choice([0, 1, 10]), "max_moves": random.choice([None, 8])}
    rule, goal = meant(problem, parameters | {"objective": "spread"})
    if not applies(rule, goal):
        return
    best = exhaustive(problem, Goal(**parameters)).objective
    assert_best(ask(rule, goal, 0, int(best) + 1_000), rule, goal, int(best))


def test_idle_partitions_are_interchangeable() -> None:
    """Thirty idle partitions on four members: listing every choice of them would exceed the limits."""
    random = Random(5)
    lags = [random.randint(1, 10**6) for _ in range(12)] + [0] * 30
    owned = {f"c{m:03}": [("t", p) for p in range(m, 42, 5)] for m in range(4)}
    problem = alike(lags, 4, owned=owned)
    rule = count_rule(problem, "group")
    goal = Objective(stickiness=20_000)
    best = int(by_cp_sat(problem, Goal("group", 20_000)).objective)
    assert_best(ask(rule, goal, 0, 10**8, size=0.01), rule, goal, best)
