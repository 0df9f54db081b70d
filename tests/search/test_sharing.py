"""Calls on one problem share a cache; relabelling of members; ends at an objective asked for."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenlag import Problem, compare, solve
from evenlag.errors import EvenlagError
from evenlag.heuristics import HEURISTICS
from evenlag.model.balance import count_rule
from evenlag.model.bounds import load_bounds
from evenlag.model.check import violation
from evenlag.model.plan import Plan
from evenlag.search.cache import SolveCache
from evenlag.search.construct.fresh import relabel
from evenlag.search.options import SolveOptions
from evenlag.search.solver import search
from tests.support.problems import cases


def problem_of(lags: list[int], owners: list[int], members: int) -> Problem:
    owned: dict[str, list[tuple[str, int]]] = {f"m{m}": [] for m in range(members)}
    for partition, owner in enumerate(owners[: len(lags)]):
        if owner < members:
            owned[f"m{owner}"].append(("t", partition))
    return Problem.from_lags({"t": lags}, {name: ["t"] for name in owned}, owned=owned)


PROBLEMS = st.builds(
    problem_of,
    st.lists(st.integers(0, 1000), min_size=1, max_size=10),
    st.lists(st.integers(0, 4), min_size=10, max_size=10),
    st.integers(1, 4),
)


@settings(max_examples=cases(50))
@given(PROBLEMS, st.randoms(use_true_random=True))
def test_relabelling_takes_the_fewest_moves(problem: Problem, random: object) -> None:
    members = len(problem.members)
    drawn = [random.randrange(members) for _ in problem.lags]  # type: ignore[attr-defined]
    plan = Plan(problem, np.array(drawn, dtype=np.int32))
    renamed = relabel(plan, count_rule(problem, "none"))
    fewest = min(
        Plan(problem, np.array(names, dtype=np.int32)[plan.member_of]).moves
        for names in itertools.permutations(range(members))
    )
    assert renamed.moves == fewest
    assert sorted(renamed.loads.tolist()) == sorted(plan.loads.tolist())
    assert sorted(renamed.counts.tolist()) == sorted(plan.counts.tolist())


@settings(max_examples=cases(50))
@given(PROBLEMS, st.lists(st.sampled_from([1, 2]), min_size=4, max_size=4), st.randoms(use_true_random=True))
def test_relabelling_keeps_the_load_of_each_weight(problem: Problem, weights: list[int], random: object) -> None:
    named = dict(zip(problem.members, weights, strict=False))
    weighted = Problem.from_dict(problem.to_dict() | {"members": {m: {"weight": w} for m, w in named.items()}})
    members = len(weighted.members)
    drawn = [random.randrange(members) for _ in weighted.lags]  # type: ignore[attr-defined]
    plan = Plan(weighted, np.array(drawn, dtype=np.int32))
    renamed = relabel(plan, count_rule(weighted, "none"))
    alike = [
        names
        for names in itertools.permutations(range(members))
        if all(weights[name] == weights[m] for m, name in enumerate(names))
    ]
    assert renamed.moves == min(
        Plan(weighted, np.array(names, dtype=np.int32)[plan.member_of]).moves for names in alike
    )
    for weight in (1, 2):
        of = [m for m in range(members) if weights[m] == weight]
        assert sorted(renamed.loads[of].tolist()) == sorted(plan.loads[of].tolist())


def test_relabelling_leaves_out_what_members_without_room_own() -> None:
    lags, members = {"t": [3, 4, 5, 6]}, ["a", "b", "c"]
    owned = {"a": [("t", 0)], "b": [("t", 1)], "c": [("t", 2)]}
    problem = Problem.from_lags(lags, members, owned=owned, max_partitions={"a": 0})
    plan = Plan(problem, np.array([1, 2, 1, 2], dtype=np.int32))
    assert relabel(plan, count_rule(problem, "group")).member_of.tolist() == [2, 1, 2, 1]


@pytest.mark.slow
@settings(max_examples=cases(40))
@given(PROBLEMS, st.sampled_from([0.001, 0.05, 0.5]), st.sampled_from(["both", "none"]))
def test_a_search_ends_at_the_objective_asked_for(problem: Problem, gap: float, balance: str) -> None:
    options = SolveOptions(balance=balance, stickiness=0, gap=gap, time_limit=1.0)
    near = search(problem, options, tie_break=False)
    exact = solve(problem, balance=balance, stickiness=0, time_limit=1.0)
    assert violation(near.plan, count_rule(problem, balance)) is None
    assert near.bound <= exact.objective <= near.objective
    if near.stopped_by == "gap":
        assert near.objective - near.bound <= gap * max(1, float(problem.mean_load)) * (1 + 1e-12)
    else:
        assert near.status == "OPTIMAL" or near.stopped_by in ("time", "work")


@settings(max_examples=30)
@given(PROBLEMS)
def test_cached_values_equal_computed_ones(problem: Problem) -> None:
    known = SolveCache(problem)
    for _ in range(2):
        for name, heuristic in HEURISTICS.items():
            assert (known.plan(name).member_of == heuristic(problem).member_of).all()
            assert known.seconds[name] >= 0
        for balance in ("both", "group"):
            found, own = known.load_bounds(known.rule(balance)), load_bounds(count_rule(problem, balance))
            assert found == own
    assert known.plan("range") is known.plan("range")


def test_a_cached_failure_of_a_heuristic_is_raised_again() -> None:
    known = SolveCache(Problem.from_lags({"t": [1], "u": [2]}, {"a": ["t"], "b": ["u"]}))
    for _ in range(2):
        with pytest.raises(EvenlagError, match="constrained-sticky is defined only"):
            known.plan("constrained-sticky")


@pytest.mark.slow
@settings(max_examples=15)
@given(PROBLEMS)
def test_an_audit_with_a_gap_differs_by_no_more_than_the_gap(problem: Problem) -> None:
    gap = 0.01
    near, exact = compare.audit(problem, time_limit=4.0, gap=gap), compare.audit(problem, time_limit=4.0)
    most = gap * max(1.0, float(problem.mean_load)) + 1e-9
    for one, other in zip(near.rows, exact.rows, strict=True):
        assert (one.strategy, one.balance, one.valid, one.violation) == (
            other.strategy, other.balance, other.valid, other.violation
        )  # fmt: skip
        if one.strategy != "optimal":
            assert (one.spread, one.makespan, one.moves) == (other.spread, other.makespan, other.moves)
            if one.excess is not None and other.excess is not None:
                assert other.excess - most <= one.excess <= other.excess + 1e-9
