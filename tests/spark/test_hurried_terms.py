"""Groups of a fleet under budgets, a ceiling or an order of criteria, turn by turn, against all plans."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evenlag.errors import InfeasibleError, NoPlanFoundError
from evenlag.heuristics import HEURISTICS
from evenlag.model.from_rows import Member
from evenlag.model.plan import Plan, current_plan
from evenlag.model.problem import Problem
from evenlag.model.result import Result, Status
from evenlag.search.cache import SolveCache
from evenlag.search.construct.start_plans import Baselines
from evenlag.search.options import SolveOptions
from evenlag.search.portfolio import TERMS
from evenlag.search.solver import search
from evenlag.search.stage import Step
from evenlag.spark.worker import turns
from evenlag.spark.worker.group_work import Effort, GroupResult, Turn, Want, solve_group
from evenlag.spark.worker.turns import Budget, take_turns
from evenlag.tables.group import GroupRows
from tests.support.fleet_tasks import FewGroups
from tests.support.problems import seeds
from tests.support.terms import Best, Question, drawn

TURNS = (Effort.LEAST, Effort.FIRST, Effort.QUICK, Effort.FULL)


def group(lags: list[int], owners: list[str | None]) -> GroupRows:
    """The rows of a group of one topic."""
    size = len(lags)
    return GroupRows(
        "now", "g", ("orders",), np.zeros(size, np.int64), np.arange(size), np.array(lags, np.int64), owners,
        members=tuple(map(Member, "abc")),
    )  # fmt: skip


def turns_of(problem: Problem, options: SolveOptions, efforts: tuple[Effort, ...]) -> list[GroupResult]:
    """Return the results of a group's turns, each of which continues the one before."""
    rows = group([0], [None])  # not looked at: the problem is there
    done = GroupResult(rows, Want.PLAN, options.balance, cache=SolveCache(problem))
    several = []
    for effort in efforts:
        done = solve_group(Turn(rows, 10.0, effort=effort, earlier=done), options, Want.PLAN)
        several.append(done)
    return several


@pytest.mark.parametrize("seed", seeds(150))
def test_no_turn_breaks_a_limit_or_is_worse_than_the_turn_before(seed: int) -> None:
    question = drawn(seed)
    if question is None:
        return
    before = None
    for turn in turns_of(question.problem, SolveOptions(**question.options), TURNS):
        if turn.result is None:
            assert before is None
            assert turn.seeking == turn.may_gain == ("NoPlanFoundError" in str(turn.error))
            assert turn.seeking or question.check(InfeasibleError(turn.error))
            proven = not turn.seeking
            continue
        assert turn.error is None
        proven = question.check(turn.result)
        here = worth(question, turn.result)
        assert before is None or here <= before
        before = here
    assert proven


def worth(question: Question, result: Result) -> Best:
    """Its criteria in their order, then its objective."""
    held = {u: int(result.plan.member_of[these[0]]) for u, these in enumerate(question.units)}
    found = question.worth({u: m for u, m in held.items() if m >= 0})
    assert found is not None
    return found


def racked(partitions: int, members: int, seed: int = 0) -> Problem:
    """A group of members in three racks, one replica a partition, owners anyhow."""
    rng = random.Random(seed)
    names = [f"m{m:02}" for m in range(members)]
    owned: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
    for p in range(partitions):
        owned[rng.choice(names)].append(("t", p))
    return Problem.from_lags(
        {"t": [int(rng.lognormvariate(8, 1.5)) for _ in range(partitions)]},
        names,
        racks={name: f"z{m % 3}" for m, name in enumerate(names)},
        partition_racks={"t": [[rng.choice(["z0", "z1", "z2"])] for _ in range(partitions)]},
        owned=owned,
    )


@pytest.mark.parametrize(
    "limits", [{"max_crossings": 20}, {"max_crossings": 30, "max_moves": 55}, {"first": ["crossings"]}]
)
@pytest.mark.parametrize("effort", [Effort.LEAST, Effort.FIRST])
def test_the_first_plan_keeps_limits_that_every_strategy_breaks(limits: dict[str, Any], effort: Effort) -> None:
    problem = racked(60, 6)
    (done,) = turns_of(problem, SolveOptions(**limits), (effort,))
    assert done.result is not None, done.error
    assert crossings_of(done.result.plan) <= limits.get("max_crossings", 10)
    assert all(crossings_of(plan) > 30 for plan in (current_plan(problem), HEURISTICS["lag-aware"](problem)))


def crossings_of(plan: Plan) -> int:
    """Partitions that are read from another rack."""
    racks, there = plan.problem.pairs.racks, plan.problem.pairs.partition_racks
    return sum(racks[m] not in (there[p] or ()) for p, m in enumerate(plan.member_of.tolist()))


@pytest.mark.slow
def test_a_turn_without_time_keeps_the_earlier_plan() -> None:
    problem = racked(60, 6)
    options = SolveOptions(first=["crossings", "moves"], time_limit=1)
    before = search(problem, options, explain=False)
    little = (Step(Baselines(only=("lag-aware",))),)
    after = search(problem, options, known=before, steps=little, explain=False)
    assert search(problem, options, steps=little, explain=False).crossings != before.crossings
    assert (after.crossings, after.moves, after.objective) == (before.crossings, before.moves, before.objective)
    assert (after.bound, after.cost_bounds) == (before.bound, before.cost_bounds)


@pytest.mark.slow
def test_bounds_of_an_order_are_dropped_with_their_criteria() -> None:
    problem = racked(60, 6)
    best = search(problem, SolveOptions(first=["crossings"], time_limit=1), explain=False)
    loose = search(problem, SolveOptions(time_limit=1, max_crossings=int(best.crossings or 0) + 20), explain=False)
    high = replace(best, plan=loose.plan, cost_bounds={}, bound=10**9, costs=loose.costs)
    options = SolveOptions(first=["moves", "crossings"], time_limit=1)
    here = search(problem, options, known=high, explain=False)
    assert (here.crossings or 0) > (high.crossings or 0)
    assert here.bound <= here.objective
    assert not [note for note in here.warnings if "withdrew" in note]


@pytest.mark.parametrize("seconds", [0.0, 1e9])  # for a first plan: more than the least is done, or just that
def test_a_group_without_a_plan_gets_its_next_turn_first(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(turns, "first_effort", lambda _rows: seconds)
    group_of = group([5, 3], ["a", "b"])
    looked: list[tuple[GroupRows, Effort]] = []

    def solve(turn: Turn) -> GroupResult:
        rows, effort = turn.rows, turn.effort
        looked.append((rows, effort))
        done = solve_group(replace(turn, start=None), SolveOptions(gap=0.5), Want.PLAN)
        if rows is lacking and effort in (Effort.LEAST, Effort.FIRST):
            return replace(done, result=None).failed(NoPlanFoundError("not yet"))
        return done

    lacking, other = group_of, group([9, 1, 4], ["a", "b", "c"])
    budget = Budget(2.0, deadline=time.time() + 5)
    found = [
        each for each in take_turns(FewGroups([other, lacking]), budget, 0, solve) if isinstance(each, GroupResult)
    ]
    assert len(found) == 2
    assert looked[2][0] is lacking
    assert looked[2][1] == Effort.QUICK
    assert [done.error for done in found] == [None, None]
    assert None not in [done.result for done in found]


def test_an_unfinished_order_is_reported_and_nothing_is_called_optimal() -> None:
    problem = racked(12, 3)
    options = SolveOptions(first=["moves"], max_crossings=3, stickiness=0)
    found = search(problem, options, steps=lambda goal: () if goal.kind is None else TERMS, explain=False)
    assert found.status == Status.FEASIBLE
    assert [note for note in found.warnings if note.startswith("moves: not minimized")]


@pytest.mark.parametrize("want", [Want.BOTH, Want.AUDIT])
def test_a_group_that_cannot_keep_a_limit_is_audited_under_the_other_balances(want: Want) -> None:
    problem = Problem.from_lags(
        {"t": [8, 4, 2, 1]}, ["a", "b"], racks={"a": "x", "b": "y"}, partition_racks={"t": [["x"]] * 4}
    )
    rows = group([0], [None])
    options = SolveOptions(max_crossings=0)
    start = GroupResult(rows, want, "both", cache=SolveCache(problem))
    done = solve_group(Turn(rows, 2.0, earlier=start), options, want)
    assert done.status == Status.ERROR
    assert "the budget of crossings is 0, but both balance needs 2" in str(done.error)
    assert done.audited is not None
    assert set(done.audited.optima) == {"none"}
    assert not done.seeking
