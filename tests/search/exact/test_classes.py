"""The linear program over classes of members: bounds against all plans of small groups, plans against the rules."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from benchmarks.certificates import SIZES, drawn_with_terms
from evenlag import Problem, solve
from evenlag.errors import InfeasibleError
from evenlag.model.balance import count_rule
from evenlag.model.check import violation
from evenlag.model.objective import Objective
from evenlag.model.plan import Plan
from evenlag.search.exact.choice_program import Solution
from evenlag.search.exact.class_program import ClassProgram
from evenlag.search.exact.cost_stages import Classes
from evenlag.search.improve.exchanges import ALL, Exchanges
from evenlag.search.improve.pairs import PairSearch
from evenlag.search.improve.state import SearchState
from evenlag.search.incumbent import Bound, Candidate, Incumbent
from evenlag.search.options import SolveOptions
from evenlag.search.portfolio import START
from evenlag.search.solver import task_of
from evenlag.search.stage import run_steps
from evenlag.search.task import Task
from tests.support.portfolios import without
from tests.support.problems import seeds
from tests.support.terms import Question, drawn


def run_stage_alone(task: Task, *, started: bool) -> tuple[list[Fraction], list[Candidate]]:
    """Return bounds and plans of the stage, after the published plans or without any."""
    best = run_steps(task, Incumbent(task), START if started else ())
    stage, bounds, plans = Classes(), [Fraction(0)], []
    if stage.applies(task, best):
        for finding in stage.run(task, best):
            if isinstance(finding, Bound) and finding.objective is not None:
                bounds.append(Fraction(finding.objective))
            elif isinstance(finding, Candidate):
                plans.append(finding)
            best.take(finding, stage.name)
    return bounds, plans


def check_bounds(seed: int) -> None:
    """Check the bounds of the stage against the best of all plans of a small group."""
    rng = random.Random(seed)
    question = drawn(seed)
    if question is None:
        return
    problem = question.problem.now
    options = {"rack_price": rng.choice((0, 3, 30))} | question.options
    first = options.pop("first", ())
    started = rng.random() < 0.5
    question = Question(problem, options)
    try:
        task = task_of(problem.units, SolveOptions(time_limit=2, deterministic=True, **options))
    except InfeasibleError:
        return
    if question.best is not None:
        bounds, _ = run_stage_alone(task, started=started)
        assert max(bounds) <= question.best.objective, (seed, options)
    for name in first[:1]:  # each criterion is made least without loads
        least = Question(problem, {**options, "first": [name]}).best
        goal = task_of(problem.units, SolveOptions(first=(name,), **options)).goal
        if least is None or not goal.first or not least.criteria:
            continue
        bounds, _ = run_stage_alone(replace(task, goal=goal.criterion(goal.first[0])), started=started)
        assert max(bounds) <= least.criteria[0], (seed, options, name)


@pytest.mark.parametrize("seed", seeds(200))
def test_bounds_hold_for_every_plan_of_small_groups(seed: int) -> None:
    check_bounds(seed)


def least_objective(problem: Problem, price: int, members: int) -> int:
    """Return the least spread and price of crossings of all plans with even counts."""
    lags, racks = problem.lags.tolist(), [racks[0] for racks in problem.pairs.partition_racks if racks]
    even = {len(lags) // members, -(-len(lags) // members)}
    least = 10**9
    for plan in itertools.product(range(members), repeat=len(lags)):
        loads = [sum(lag for lag, m in zip(lags, plan, strict=True) if m == each) for each in range(members)]
        crossings = sum("ab"[m % 2] != rack for m, rack in zip(plan, racks, strict=True))
        if {plan.count(m) for m in range(members)} <= even:
            least = min(least, max(loads) - min(loads) + price * crossings)
    return least


@pytest.mark.slow
def test_bounds_hold_where_lags_are_reduced_for_the_lowest_load_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups with oversized partitions, whose lowest load depends on which class has them."""
    added, cut = [0], ClassProgram._cut

    def counted(program: ClassProgram, found: Solution) -> list[int]:
        rows = cut(program, found)
        added[0] += len(rows)
        return rows

    monkeypatch.setattr(ClassProgram, "_cut", counted)
    tight = 0
    members = 3
    for seed in range(30):
        rng = random.Random(seed)
        lags = [int(rng.lognormvariate(5, 1.5)) for _ in range(rng.randint(2 * members, 8))]
        racks = [[rng.choice("ab")] for _ in lags]
        problem = Problem.from_lags(
            {"t": lags}, [f"c{m}" for m in range(members)], racks={f"c{m}": "ab"[m % 2] for m in range(members)},
            partition_racks={"t": racks},
        )  # fmt: skip
        price, least = rng.choice((1, 10, 40)), None
        for balance in ("group", "both"):
            options = SolveOptions(time_limit=2, deterministic=True, balance=balance, stickiness=0, rack_price=price)
            bounds, _ = run_stage_alone(task_of(problem, options), started=True)
            least = least_objective(problem, price, members) if least is None else least
            assert max(bounds) <= least, seed
            tight += max(bounds) == least
    assert added[0] > 5
    assert tight > 10


@pytest.mark.parametrize("balance", ["group", "both", "none"])
@pytest.mark.parametrize("wanted", [{"rack_price": "1%"}, {"rack_price": "10%"}, {"max_crossings": 20}])
def test_plans_of_the_stage_keep_the_rules_and_come_near_the_bound(balance: str, wanted: dict[str, Any]) -> None:
    rng = random.Random(balance)
    racks = ("a", "b", "c")
    lags = {topic: [int(rng.lognormvariate(7, 1)) for _ in range(60)] for topic in ("s", "t")}
    problem = Problem.from_lags(
        lags,
        [f"c{m}" for m in range(12)],
        racks={f"c{m}": racks[m % 3] for m in range(12)},
        partition_racks={topic: [[rng.choice(racks)] for _ in range(60)] for topic in lags},
    )
    options = SolveOptions(balance=balance, stickiness=0, time_limit=60, deterministic=True, work=5, **wanted)
    task = task_of(problem, options)
    bounds, plans = run_stage_alone(task, started=True)
    kept = [plan.plan for plan in plans if violation(plan.plan, task.rule, task.goal) is None]
    assert kept
    least = min(task.goal.value(plan) for plan in kept)
    assert max(bounds) <= least <= max(bounds) + problem.mean_load / 100


def test_no_member_exchanges_with_itself() -> None:
    """A group of two classes in which a member's only possible partner would be itself."""
    rng = random.Random(7_000_249)
    problem, options = drawn_with_terms(rng, *rng.choice(SIZES))
    result = solve(problem, time_limit=20, deterministic=True, work=0.5, **options)
    assert violation(result.plan, count_rule(problem, "both"), Objective()) is None


def test_a_ceiling_alone_has_bounds_and_plans() -> None:
    """Neither costs nor a lowest load: the makespan within a ceiling, of a group without owners."""
    problem = Problem.from_lags({"t": [9, 8, 7, 6, 5, 4, 3]}, ["a", "b", "c"])
    task = task_of(problem, SolveOptions(objective="makespan", max_load=16, time_limit=5))
    bounds, plans = run_stage_alone(task, started=True)
    assert max(bounds) >= 14
    assert any(violation(each.plan, task.rule, task.goal) is None for each in plans)


def racked(rng: random.Random, partitions: int, members: int, owned: bool) -> Problem:
    """A random group in three racks; partitions have one replica each, and perhaps owners anywhere."""
    racks, names = ("a", "b", "c"), [f"c{m}" for m in range(members)]
    owners: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
    for p in range(partitions):
        owners[rng.choice(names)].append(("t", p))
    return Problem.from_lags(
        {"t": [int(rng.lognormvariate(7, 1)) for _ in range(partitions)]},
        names,
        racks={name: racks[m % 3] for m, name in enumerate(names)},
        partition_racks={"t": [[rng.choice(racks)] for _ in range(partitions)]},
        owned=owners if owned else None,
    )


@pytest.mark.parametrize("seed", range(20))
def test_an_exchange_costs_the_difference_of_its_plans(seed: int) -> None:
    rng = random.Random(seed)
    problem = racked(rng, 24, 5, owned=True)
    task = task_of(problem, SolveOptions(stickiness=7, rack_price=30, max_crossings=rng.randint(0, 24)))
    member_of = np.array([rng.randrange(5) for _ in range(24)], dtype=np.int32)
    before = Plan(problem, member_of)
    state = SearchState(before, count_rule(problem, "none"), (0, 0), 0, goal=task.goal)
    me = rng.randrange(5)
    table = Exchanges(state, me, np.flatnonzero(np.arange(5) != me), ALL, 0)
    cost, costs, budget = table.cost(7.0), task.goal.pairs[0].costs, task.goal.pairs[0].budget
    assert budget is not None
    for (i, p), (j, q) in itertools.product(enumerate(table.ours.tolist()), enumerate(table.theirs.tolist())):
        after = member_of.copy()
        after[[p] if p >= 0 else []] = table.holder[j]
        after[[q] if q >= 0 else []] = me
        plan = Plan(problem, after)
        moved = 7 * (plan.moves - before.moves)
        assert cost[i, j] == moved + 30 * (costs.total(after) - costs.total(member_of))
        kept = costs.total(after) <= max(budget, costs.total(member_of))
        assert table.fits[i, j] == (kept and not p == q == -1)


@pytest.mark.parametrize("wanted", [{"rack_price": "1%"}, {"max_crossings": 12}, {"first": ("crossings",)}])
def test_relocation_keeps_the_limits_and_betters_plans_where_moves_cost(wanted: dict[str, Any]) -> None:
    problem = racked(random.Random(1), 80, 9, owned=True)
    how: dict[str, Any] = {"stickiness": "1%", "time_limit": 60, "deterministic": True, "work": 1}
    with without("relocation", "classes", "cp-sat"):
        others = solve(problem, **how, **wanted)
    with without("classes", "cp-sat"):
        result = solve(problem, **how, **wanted)
    assert violation(result.plan, count_rule(problem, "both"), Objective()) is None
    assert result.crossings is not None
    assert result.crossings <= wanted.get("max_crossings", 80)
    assert result.crossings == others.crossings or "first" not in wanted
    assert result.objective < others.objective


@pytest.mark.parametrize("seed", range(10))
def test_repartitioned_pairs_cost_no_more_where_crossings_or_moves_count(seed: int) -> None:
    rng = random.Random(seed)
    problem = racked(rng, 60, 6, owned=seed % 2 > 0)
    task = task_of(problem, SolveOptions(rack_price=5, stickiness=seed % 2, balance="group"))
    costs = task.goal.pairs[0].costs
    start = Plan(problem, np.array(rng.sample([m for m in range(6) for _ in range(10)], 60), dtype=np.int32))
    mean = int(problem.mean_load)
    state = SearchState(start, task.rule, (mean, mean + 1), seed, goal=task.goal)
    PairSearch(state).worst_first(iter([False] * 200 + [True] * 10_000).__next__)
    plan = state.plan()
    assert task.rule.violation(plan.topic_counts) is None
    assert costs.total(plan.member_of) == costs.total(start.member_of) == state.used[0]
    assert plan.moves == start.moves or not seed % 2
    assert plan.spread < start.spread
