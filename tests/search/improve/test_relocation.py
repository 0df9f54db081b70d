"""Relocations keep their budget of moves, the rule and their goal."""

from fractions import Fraction
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from evenlag.model.balance import count_rule
from evenlag.model.bounds import load_bounds
from evenlag.model.check import violation
from evenlag.model.objective import Objective, ObjectiveKind
from evenlag.model.plan import Plan, current_plan
from evenlag.model.problem import NOBODY
from evenlag.search.construct.fresh import fewest_moves_plan
from evenlag.search.improve.relocation import Way, relocate
from evenlag.search.improve.state import SearchState
from tests.support.exact import Goal, by_moves, within
from tests.support.problems import alike, provoking_lags, random_owners, seeds
from tests.support.searching import feasible_plans, loads_of, random_case, stop_after, target_window


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(80))
def test_relocations_improve_within_their_budget(seed: int) -> None:
    problem, rule, random = random_case(seed)
    start = fewest_moves_plan(rule)
    for most in (None, start.moves, start.moves + 1, start.moves + random.randint(2, 6)):
        greed, noise = random.choice([(1.0, 0.0), (0.0, 0.0), (0.6, 0.5)])
        way = Way(greed, noise, careful=random.random() < 0.5)
        plans = relocate(start, rule, target_window(rule), stop_after(60), seed, way, most_moves=most)
        assert plans[0] is start
        spreads = [max(loads_of(plan)) - min(loads_of(plan)) for plan in plans]
        assert all(later < earlier for earlier, later in pairwise(spreads))
        for plan in plans:
            assert violation(plan, rule) is None
            moves = ((problem.owner != NOBODY) & (plan.member_of != problem.owner)).sum()
            assert most is None or moves <= most


@pytest.mark.slow
def test_rotations_find_the_best_plan_for_a_new_member() -> None:
    """The new member is at its count: it can give and take only by exchange."""
    met = 0
    for seed in range(len(seeds(30))):
        random = Random(seed)
        members = 3
        names = [f"c{m:03}" for m in range(members)]
        owned = {name: [("t", p) for p in range(m, 3 * members, members)] for m, name in enumerate(names)}
        lags = {"t": [random.randint(1, 1_000) for _ in range(3 * members)]}
        rule = count_rule(alike(lags, [*names, "new"], owned=owned), "group")
        best = fewest_moves_plan(rule)
        for number in range(40):
            low, narrower = int(min(loads_of(best))), 1 + int(best.spread) * random.choice([0, 5, 20, 40]) // 100
            at = low + random.randint(0, narrower)
            window = (at, at + int(best.spread) - narrower)
            way = Way(noise=0.5, careful=number % 2 == 0)
            plans = relocate(best, rule, window, stop_after(60), number, way, most_moves=best.moves)
            best = min(plans, key=lambda plan: plan.spread)
        least = by_moves(rule.problem, Goal("group", 0))
        assert best.moves == min(least)
        met += best.spread == within(least, best.moves)
    assert met >= 0.8 * len(seeds(30))


@pytest.mark.parametrize("careful", [False, True])
def test_careful_relocations_push_nobody_outside(careful: bool) -> None:
    """Taking 30 would even loads more than taking 10, but leaves its giver below the window."""
    owned = {"c000": [("t", 0), ("t", 1)], "c001": [("t", 2), ("t", 3)], "c002": [("t", 4)]}
    problem = alike({"t": [50, 10, 30, 30, 0]}, 3, owned=owned)
    rule = count_rule(problem, "none")
    way = Way(careful=careful)
    plans = relocate(fewest_moves_plan(rule), rule, (45, 60), stop_after(60), way=way, most_moves=1)
    assert plans[-1].assignment["c002"] == ([("t", 1), ("t", 4)] if careful else [("t", 2), ("t", 4)])


MAKESPAN = Objective(ObjectiveKind.MAKESPAN)


@pytest.mark.parametrize("seed", seeds(20))
def test_relocations_for_the_makespan_yield_every_improvement(seed: int) -> None:
    random = Random(seed)
    lags = provoking_lags(random, 60, "tailed")
    problem = alike(lags, 8, owned=random_owners(random, {"t": lags}, 8))
    rule, high = count_rule(problem, "none"), load_bounds(count_rule(problem, "none")).max_load_lb
    found = relocate(current_plan(problem), rule, (0, high), stop_after(2_000), goal=MAKESPAN)
    makespans = [plan.makespan for plan in found]
    assert all(after < before for before, after in pairwise(makespans))
    by_spread = relocate(current_plan(problem), rule, (0, high), stop_after(2_000))
    assert makespans[-1] <= min(plan.makespan for plan in by_spread)


def test_the_holder_of_a_hot_partition_finds_the_smallest_companions_wherever_they_are() -> None:
    """The smallest are with members neither least loaded nor likely to be among the 24 drawn of 400."""
    members, each = 400, 5
    random = Random(1)
    lags = [random.randint(1_000, 2_000) for _ in range(members * each)]
    lags[0], small = 50_000, random.sample(range(members, members * each), each - 1)
    for rank, p in enumerate(small):
        lags[p] = 1 + rank
    owned = {f"c{m:03}": [("t", p) for p in range(m, members * each, members)] for m in range(members)}
    problem = alike(lags, members, owned=owned)
    rule = count_rule(problem, "both")
    plans = relocate(current_plan(problem), rule, (0, 50_010), stop_after(10**6), goal=MAKESPAN)
    assert (plans[-1].makespan, plans[-1].moves) == (50_010, 2 * (each - 1))


def test_without_a_lower_limit_only_the_highest_loads_are_oversized() -> None:
    problem = alike([9, 3, 3, 1], "abc")
    state = SearchState(Plan(problem, np.array([0, 1, 1, 2], dtype=np.int32)), count_rule(problem, "none"), (0, 9), 0)
    assert state.oversized.tolist() == [True, False, False]
    assert state.may_be_partner().tolist() == [False, True, True]


def test_relocation_moves_home_without_a_budget_of_moves() -> None:
    problem = alike({"t": [9, 9, 1, 1]}, 2, owned={"c000": [("t", 0), ("t", 2)], "c001": [("t", 1), ("t", 3)]})
    rule = count_rule(problem)
    away = Plan(problem, np.array([0, 0, 1, 1], dtype=np.int32))
    plans = relocate(away, rule, target_window(rule), stop_after(50), most_moves=away.moves)
    assert plans[-1].spread == min(plan.spread for plan in feasible_plans(rule))
    assert plans[-1].moves <= away.moves


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(40))
def test_undone_moves_go_home_and_keep_the_rule(seed: int) -> None:
    problem, rule, _ = random_case(seed)
    away = relocate(fewest_moves_plan(rule), rule, target_window(rule), stop_after(60), seed, Way(greed=0.0))[-1]
    moved = int(((problem.owner != NOBODY) & (away.member_of != problem.owner)).sum())
    for share in (0.2, 0.6, 1.0):
        undone = relocate(away, rule, target_window(rule), stop_after(60), seed, Way(undone=share))[0]
        assert violation(undone, rule) is None
        at_home = away.member_of == problem.owner
        assert (undone.member_of[at_home] == problem.owner[at_home]).all()
        left = int(((problem.owner != NOBODY) & (undone.member_of != problem.owner)).sum())
        assert left <= moved
        assert (left < moved) == bool((undone.member_of != away.member_of).any())


def test_where_partitions_were_swapped_all_can_be_undone() -> None:
    problem = alike({"t": [9, 9, 1, 1]}, 2, owned={"c000": [("t", 0), ("t", 2)], "c001": [("t", 1), ("t", 3)]})
    rule = count_rule(problem)
    away = Plan(problem, np.array([0, 0, 1, 1], dtype=np.int32))
    for share in (0.1, 1.0):  # the two that have moved go home together
        assert relocate(away, rule, target_window(rule), stop_after(60), way=Way(undone=share))[0].moves == 0
    kept = relocate(away, rule, target_window(rule), stop_after(0), way=Way(undone=1.0))[0]
    assert (kept.member_of == away.member_of).all()


@pytest.mark.parametrize(
    ("held", "oversized"),
    [
        # Least reduced lag 8, greatest 24: with companions of 8 or less, 30 is oversized.
        ([[100, 1, 3], [30, 5, 8], [17, 16, 15]], [True, True, False]),
        # Other members hold smaller ones, for which it might give its own.
        ([[100, 16, 8], [30, 8, 5], [17, 3, 15]], [True, False, False]),
        # Its load is too small, or it holds more than companions.
        ([[100, 5, 8], [30, 1, 3], [17, 16, 15]], [True, False, False]),
        ([[100, 5, 3], [30, 8, 15], [17, 16, 8]], [True, False, False]),
    ],
)
def test_members_with_the_least_companions_are_oversized(held: list[list[int]], oversized: list[bool]) -> None:
    lags = [lag for share in held for lag in share]
    problem = alike(lags, 3)
    rule, plan = count_rule(problem, "group"), Plan(problem, np.repeat(np.arange(3, dtype=np.int32), 3))
    assert SearchState(plan, rule, (Fraction(40), Fraction(104)), 0).oversized.tolist() == oversized
