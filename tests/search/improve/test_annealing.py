"""Annealing keeps every rule and limit, repeats itself for a seed, and finds what no single exchange finds."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenlag import Problem, solve
from evenlag.errors import InfeasibleError, InvalidProblemError
from evenlag.model.check import violation
from evenlag.model.plan import Plan
from evenlag.search.improve import kernel
from evenlag.search.improve.annealing import Annealing
from evenlag.search.improve.local_search import local_search
from evenlag.search.improve.state import SearchState
from evenlag.search.incumbent import Candidate, Incumbent
from evenlag.search.options import SolveOptions
from evenlag.search.solver import task_of
from evenlag.search.task import Task
from tests.support.building import built
from tests.support.terms import draw, draw_options

STEPS = 20_000


@pytest.fixture(scope="module", autouse=True)
def _compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Build the kernel from this checkout's source and use it."""
    module = built(Path(kernel.__file__).parent / "kernel.c", "_kernel", tmp_path_factory.mktemp("kernel"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "_compiled", module)
        yield


def group(partitions: int, members: int, seed: int) -> Problem:
    """A group whose members own as many partitions each, with lognormal lags."""
    lags = np.random.default_rng(seed).lognormal(8, 1.5, partitions).astype(np.int64)
    owned = {f"m{m:02}": [("t", p) for p in range(m, partitions, members)] for m in range(members)}
    return Problem.from_lags({"t": lags}, {m: ["t"] for m in owned}, owned=owned)


def task_for(problem: Problem, **options: Any) -> Task:
    return task_of(problem, SolveOptions(deterministic=True, work=1.0, time_limit=100.0, **options))


def annealed(task: Task, start: Plan) -> Incumbent:
    """The incumbent after the stage, which starts from a plan."""
    best = Incumbent(task)
    best.take(Candidate(start), "start")
    assert Annealing().applies(task, best)
    for finding in Annealing().run(task, best):
        assert isinstance(finding, Candidate)
        assert violation(finding.plan, task.rule, task.goal) is None
        assert task.goal.value(finding.plan) < best.value
        best.take(finding, "annealing")
    return best


@pytest.mark.slow
@given(seed=st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_each_plan_is_better_and_keeps_all_limits(seed: int) -> None:
    rng = Random(seed)
    try:
        problem = draw(rng).units
        task = task_for(problem, **draw_options(rng, problem) | {"first": ()})
        plan = task.fewest_moves_plan
    except (InfeasibleError, InvalidProblemError):
        return
    if violation(plan, task.rule, task.goal) is not None or problem.active.sum() < 2 or task.goal.kind is None:
        return
    state = SearchState(plan, task.rule, (0, 0), 0, goal=task.goal)
    if state.kernel is None:
        return
    best_of, most = state.member_of.copy(), 2**62
    loads = state.loads[state.active].astype(np.float64)
    windows = np.stack([loads.min(axis=0), 0.7 * (loads.max(axis=0) - loads.min(axis=0))])
    limits, rates = Annealing()._limits(state)
    value = state.base() + state.move_price * state.moves + int((state.pair_prices * state.used).sum())
    limits[-1] = most
    found = kernel.anneal(state.kernel, best_of, windows, limits, rates, value, STEPS, seed, 1.0, 1 - 1e-4)
    afresh = SearchState(Plan(problem, state.member_of.copy()), task.rule, (0, 0), 0, goal=task.goal)
    for name in ("loads", "counts", "topic_counts", "starts", "sums", "used"):
        assert (getattr(state, name) == getattr(afresh, name)).all(), name
    assert task.rule.violation(afresh.plan().topic_counts) is None
    better = Plan(problem, best_of)
    if found is None:
        assert (best_of == plan.member_of).all()
        return
    assert violation(better, task.rule, task.goal) is None
    assert task.goal.value(better) < task.goal.value(plan)
    if state.unit:
        gained = (task.goal.value(plan) - task.goal.value(better)) / problem.load_unit * state.unit
        assert gained == value - found


@pytest.mark.parametrize("options", [{"max_moves": 6, "stickiness": 0}, {"stickiness": "1%"}])
def test_it_goes_on_where_single_exchanges_end(options: dict[str, Any]) -> None:
    won = 0
    for seed in range(4):
        task = task_for(group(60, 10, seed), **options)
        ended = local_search(task.fewest_moves_plan, task.rule, task.goal, lambda: False)
        won += annealed(task, ended).value < task.goal.value(ended)
    assert won >= 3


@pytest.mark.slow
def test_it_finds_the_best_plan_of_most_small_groups() -> None:
    best = 0
    for seed in range(8):
        problem = group(16, 4, seed)
        task = task_for(problem, max_moves=4, stickiness=0)
        proven = solve(problem, max_moves=4, stickiness=0)
        assert proven.status == "OPTIMAL"
        found = annealed(task, task.fewest_moves_plan).value
        assert found >= proven.objective
        best += found == proven.objective
    assert best >= 6


def test_a_seed_gives_the_same_plan_again() -> None:
    problem = group(60, 10, 1)
    plans = [
        annealed(task := task_for(problem, max_moves=6, stickiness=0, seed=seed), task.fewest_moves_plan).plan
        for seed in (3, 3, 4)
    ]
    assert (plans[0].member_of == plans[1].member_of).all()


def test_a_makespan_falls_too() -> None:
    task = task_for(group(60, 10, 2), max_moves=6, stickiness=0, objective="makespan")
    start = task.fewest_moves_plan
    assert annealed(task, start).value < task.goal.value(start)


def test_scenarios_are_evened_together() -> None:
    rng = np.random.default_rng(0)
    problem = group(60, 10, 0)
    problem = problem.with_scenarios([(1, rng.lognormal(8, 1.5, 60).astype(np.int64)) for _ in range(3)])
    task = task_for(problem, stickiness=0)
    start = task.fewest_moves_plan
    assert annealed(task, start).value < task.goal.value(start)


def test_without_the_kernel_it_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_for(group(60, 10, 0), max_moves=6)
    best = Incumbent(task)
    best.take(Candidate(task.fewest_moves_plan), "start")
    assert Annealing().applies(task, best)
    monkeypatch.setattr(kernel, "_compiled", None)
    assert not Annealing().applies(task, best)


def test_arrays_of_another_size_are_refused() -> None:
    task = task_for(group(20, 4, 0), max_moves=4)
    state = SearchState(task.fewest_moves_plan, task.rule, (0, 0), 0, goal=task.goal)
    limits, rates = Annealing()._limits(state)
    with pytest.raises(ValueError, match="do not fit"):
        kernel.anneal(state.kernel, state.member_of[:-1].copy(), np.zeros((2, 1)), limits, rates, 1, 1, 0, 1.0, 0.5)
    with pytest.raises(ValueError, match="do not fit"):
        kernel.anneal(state.kernel, state.member_of.copy(), np.zeros((2, 2)), limits, rates, 1, 1, 0, 1.0, 0.5)
