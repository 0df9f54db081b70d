"""The linear program over classes of members: its bounds against all plans of small groups, its plans against rules."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from evenlag import Problem
from evenlag.errors import InfeasibleError
from evenlag.model.check import violation
from evenlag.search.exact.classes import Classes
from evenlag.search.incumbent import Bound, Candidate, Incumbent
from evenlag.search.options import SolveOptions
from evenlag.search.portfolio import START
from evenlag.search.solver import task_of
from evenlag.search.stage import run_steps
from evenlag.search.task import Task
from tests.terms import Question, drawn


def alone(task: Task, *, started: bool) -> tuple[list[Fraction], list[Candidate]]:
    """What the stage proves and offers, after published plans or with none."""
    best = run_steps(task, Incumbent(task), START if started else ())
    stage, bounds, plans = Classes(), [Fraction(0)], []
    if stage.applies(task, best):
        for finding in stage.run(task, best, 1.0):
            if isinstance(finding, Bound) and finding.objective is not None:
                bounds.append(Fraction(finding.objective))
            elif isinstance(finding, Candidate):
                plans.append(finding)
            best.take(finding, stage.name)
    return bounds, plans


def check_bounds(seed: int) -> None:
    """Ask the stage alone about a small group: what it proves must hold for the best of all plans."""
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
        bounds, _ = alone(task, started=started)
        assert max(bounds) <= question.best.objective, (seed, options)
    for name in first[:1]:  # each criterion is made least without loads
        least = Question(problem, {**options, "first": [name]}).best
        goal = task_of(problem.units, SolveOptions(first=(name,), **options)).goal
        if least is None or not goal.first or not least.criteria:
            continue
        bounds, _ = alone(replace(task, goal=goal.criterion(goal.first[0])), started=started)
        assert max(bounds) <= least.criteria[0], (seed, options, name)


@pytest.mark.parametrize("seed", range(200))
def test_bounds_hold_for_every_plan_of_small_groups(seed: int) -> None:
    check_bounds(seed)


@pytest.mark.parametrize("balance", ["group", "both", "none"])
@pytest.mark.parametrize("wanted", [{"rack_price": "1%"}, {"rack_price": "10%"}, {"max_crossings": 20}])
def test_its_plans_keep_the_rules_and_come_near_what_is_proven(balance: str, wanted: dict[str, Any]) -> None:
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
    bounds, plans = alone(task, started=True)
    kept = [plan.plan for plan in plans if violation(plan.plan, task.rule, task.goal) is None]
    assert kept
    least = min(task.goal.value(plan) for plan in kept)
    assert max(bounds) <= least <= max(bounds) + problem.mean_load / 100
