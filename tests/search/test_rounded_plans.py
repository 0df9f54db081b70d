"""Plans rounded from the linear program over patterns keep every rule and every whole pattern."""

from random import Random

import numpy as np
import pytest

import evenlag
from benchmarks.instances import after
from evenlag.model.balance import Balance, count_rule
from evenlag.model.objective import Objective
from evenlag.model.problem import NOBODY
from evenlag.search.cache import SolveCache
from evenlag.search.clock import Clock
from evenlag.search.construct.fresh import fewest_moves_plan
from evenlag.search.exact.column_pool import Used
from evenlag.search.exact.move_patterns import GridParams, MovePatterns, cheapest_window
from evenlag.search.exact.move_plans import rounded_plan, rounded_plans
from evenlag.search.exact.windows import Window
from evenlag.search.incumbent import Incumbent, begin
from evenlag.search.portfolio import START
from evenlag.search.stage import run_steps
from evenlag.search.task import Task
from tests.support.owned import few_steps, owned_problems
from tests.support.problems import alike, seeds
from tests.support.searching import GO_ON


@pytest.mark.parametrize("balance", list(Balance))
def test_a_rounded_plan_keeps_the_rule(balance: str) -> None:
    params = few_steps(10_000)
    for seed, problem in owned_problems(len(seeds(40))):
        rule, random = count_rule(problem, balance), Random(seed)
        bounds, value = SolveCache(problem).load_bounds(rule), problem.total_lag + 1
        patterns = MovePatterns(rule, bounds, value, True, GO_ON, params=params)
        window = Window(patterns.windows.first, patterns.windows.largest)
        patterns.solve(window, 0)
        for _ in range(4):
            plan = rounded_plan(rule, patterns.columns.used(window), random)
            assert rule.violation(plan.topic_counts) is None, seed
            assert (plan.member_of[problem.assignable] != NOBODY).all(), seed
            assert (plan.member_of == problem.pins)[problem.pins != NOBODY].all(), seed


@pytest.mark.parametrize("balance", list(Balance))
def test_patterns_that_form_a_plan_are_taken_unchanged(balance: str) -> None:
    for seed, problem in owned_problems(len(seeds(40))):
        rule = count_rule(problem, balance)
        wanted, active = fewest_moves_plan(rule), np.flatnonzero(problem.active).tolist()
        whole = [Used(m, np.flatnonzero(wanted.member_of == m).tolist(), 1.0) for m in active]
        plan = rounded_plan(rule, whole, Random(seed))
        assert plan.member_of.tolist() == wanted.member_of.tolist()


def test_partitions_in_no_pattern_stay_with_their_owner() -> None:
    """c000 and c001 exchange a partition; c002 and c003 have no pattern, and no reason to move anything."""
    problem = alike([5, 1, 4, 2, 3, 3, 2, 4], 4, owned={f"c{m:03}": [("t", 2 * m), ("t", 2 * m + 1)] for m in range(4)})
    used = [Used(0, [0, 3], 0.9), Used(1, [1, 2], 0.9), Used(1, [2, 3], 0.1)]
    for seed in range(20):
        plan = rounded_plan(count_rule(problem, "group"), used, Random(seed))
        assert plan.member_of.tolist() == [0, 1, 1, 0, 2, 2, 3, 3]


def test_a_new_member_chooses_first() -> None:
    """The others use most of what they own; the new member still gets the two that it uses."""
    owned = {f"c{m:03}": [("t", p) for p in range(4 * m, 4 * m + 4)] for m in range(2)}
    problem = alike([8, 7, 6, 5, 4, 3, 2, 1], 3, owned=owned)
    used = [Used(0, [0, 1, 2], 0.9), Used(1, [4, 5, 6], 0.9), Used(2, [2, 6], 0.2)]
    plan = rounded_plan(count_rule(problem, "group"), used, Random(0))
    assert np.flatnonzero(plan.member_of == 2).tolist() == [2, 6]
    assert plan.counts.tolist() == [3, 3, 2]


def test_counts_take_precedence_over_patterns() -> None:
    """A pattern of two for a member capped at one: the larger partition goes to a member with room."""
    problem = evenlag.Problem.from_lags(
        {"t": [1, 2, 3]}, {"a": ["t"], "b": ["t"]}, owned={"a": [("t", 0)]}, max_partitions={"a": 1, "b": 2}
    )
    rule = count_rule(problem, "none")
    assert rounded_plan(rule, [Used(0, [0, 1], 1.0)], Random(0)).member_of.tolist() == [0, 1, 1]
    assert rounded_plan(rule, [Used(1, [0], 1.0)], Random(0)).member_of.tolist() in ([1, 0, 1], [1, 1, 0])
    assert sorted(rounded_plan(rule, [], Random(0)).counts.tolist()) == [1, 2]


def test_without_count_balance_the_least_loaded_takes_the_rest() -> None:
    problem = alike([9, 4, 3, 1], 2, owned={"c000": [("t", 0)]})
    assert rounded_plan(count_rule(problem, "none"), [], Random(0)).member_of.tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("event", ["leave", "drift"])
def test_rounded_plans_improve_the_best_plan(event: str) -> None:
    """After the published heuristics alone; none makes more moves than the budget."""
    problem = after(event, "uniform", 60, 6, 0)
    rule, goal = count_rule(problem, "group"), Objective(max_moves=12)
    task = Task(rule, goal, Clock(60), SolveCache(problem))
    best = run_steps(task, begin(Incumbent(task)), START)
    before = best.value
    patterns = MovePatterns(rule, task.bounds, before, True, GO_ON, params=GridParams(cells=100_000))
    cheapest_window(patterns, before, 12)
    for finding in rounded_plans(task, best, patterns, 0, lambda: False, Random(0)):
        best.take(finding, "rounded")
    assert best.value < 0.8 * before
    assert best.method == "rounded"
    assert best.plan.moves <= 12
    assert (best.plan.member_of != NOBODY).all()
