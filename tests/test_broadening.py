"""Plans in which members give and take little beyond what counts make them: held against all plans."""

from random import Random

import numpy as np
import pytest

import evenlag
from evenlag.model.balance import CountRule, count_rule
from evenlag.model.bounds import load_bounds
from evenlag.model.check import violation
from evenlag.model.objective import Objective, resolve_objective
from evenlag.model.plan import Plan
from evenlag.search.cache import SolveCache
from evenlag.search.clock import Clock
from evenlag.search.exact.broadening import Broadening
from evenlag.search.exact.deepening import plan_of
from evenlag.search.exact.move_dp import MovePlans
from evenlag.search.incumbent import Incumbent, begin
from evenlag.search.portfolio import START
from evenlag.search.stage import Step, run_steps
from evenlag.search.task import Task
from tests.exact import Goal, exhaustive
from tests.owned import case
from tests.problems import alike, seeds


def most_beyond(plan: Plan, rule: CountRule) -> int:
    """How many more with lag than counts make it a member gives or takes at most; a drained member's are nobody's."""
    owner, active, lag = plan.problem.owner, plan.problem.active, plan.problem.lags > 0
    held = np.where((owner >= 0) & active[owner], owner, -1)
    most = 0
    for m in np.flatnonzero(active).tolist():
        gives = int((lag & (held == m) & (plan.member_of != m)).sum())
        takes = int((lag & (held != m) & (plan.member_of == m)).sum())
        count, low, high = int((held == m).sum()), rule.total_bounds.lo[m], rule.total_bounds.hi[m]
        most = max(most, gives - max(count - high, 0), takes - max(low - count, 0))
    return most


def broadened(rule: CountRule, goal: Objective, seconds: float = 60.0) -> Incumbent:
    """What the stage finds of itself, after the baselines and the bounds."""
    task = Task(rule, goal, Clock(seconds), SolveCache(rule.problem))
    return run_steps(task, begin(Incumbent(task)), (*START, Step(Broadening())))


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(150))
def test_each_member_keeps_to_the_breadth_and_all_of_it_has_the_optimum(seed: int) -> None:
    problem, parameters, rule, goal = case(seed)
    best = int(exhaustive(problem, Goal(**parameters)).objective)
    plans = MovePlans(rule, goal, load_bounds(rule), lambda: False)
    before = 2 * best + 100
    for beyond in range(len(problem.lags) + 1):
        found = plans.best_within(2 * best + 100, beyond)
        if found is None:
            continue
        plan = plan_of(problem, found)
        assert violation(plan, rule, goal) is None
        assert best <= goal.value(plan) == found[0] <= before
        assert most_beyond(plan, rule) <= beyond
        before = found[0]
    assert before == best


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(60))
def test_the_stage_finds_the_optimum_of_small_groups_within_a_budget(seed: int) -> None:
    """There the broadest search lists all; nothing is proven by it."""
    seed += 1_000_000
    while True:
        problem, parameters, rule, goal = case(seed)
        if goal.max_moves is not None and not goal.stickiness:
            break
        seed += 100_000
    best = broadened(rule, goal)
    assert best.value == exhaustive(problem, Goal(**parameters)).objective


def test_many_moves_spread_over_the_members_meet_the_bound() -> None:
    """Groups like these have too many plans to list, and the bounds alone prove the one found."""
    random = Random(1)
    drawn = [int(random.lognormvariate(8, 1.5)) for _ in range(50)]
    members = [f"c{m}" for m in range(5)]
    problem = alike(drawn, members, owned={name: [("t", p) for p in range(m, 50, 5)] for m, name in enumerate(members)})
    rule = count_rule(problem, "group")
    goal = resolve_objective(rule, stickiness=0, max_moves=20)
    best = broadened(rule, goal)
    assert best.method == "broadening"
    assert best.plan.moves <= 20
    assert best.proven


def test_it_is_for_budgets_without_a_price() -> None:
    problem = alike([5, 4, 3, 2], ["c0", "c1"], owned={"c0": [("t", 0), ("t", 1)], "c1": [("t", 2), ("t", 3)]})

    def asked(**parameters: object) -> bool:
        rule = count_rule(problem, "group")
        task = Task(rule, resolve_objective(rule, **parameters), Clock(1.0), SolveCache(problem))  # type: ignore[arg-type]
        return Broadening().applies(task, begin(Incumbent(task)))

    assert asked(stickiness=0, max_moves=1)
    assert not asked(stickiness=0)
    assert not asked(stickiness=1, max_moves=1)
    assert isinstance(evenlag.solve(problem, balance="group", stickiness=0, max_moves=1).plan, Plan)
