"""Limits of time, work and gap end a solve with a valid plan and a true bound."""

from random import Random

import pytest

import evenlag
from evenlag.heuristics import HEURISTICS
from tests.support.exact import Goal, assess, exhaustive
from tests.support.problems import alike, random_owners
from tests.support.small_groups import LIMIT, optimum_of, small_case, small_seeds


@pytest.mark.parametrize("seed", range(6))
def test_hardly_any_time_gives_a_plan_no_worse_than_longest_first(seed: int) -> None:
    random = Random(seed)
    problem = alike({name: [random.randint(0, 10**6) for _ in range(400)] for name in ("t", "u")}, 30)
    result = evenlag.solve(problem, time_limit=0.001)
    assert (result.status, result.stopped_by) == ("FEASIBLE", "time")
    assert result.bound <= result.objective == result.spread
    assert result.spread <= HEURISTICS["lag-aware"](problem).spread


def largest_load_longest_first(lags: list[int], members: int) -> int:
    """Return the largest load when partitions, largest first, go to the least loaded member with room."""
    loads, room = [0] * members, [len(lags) // members] * members
    for lag in sorted(lags, reverse=True):
        member = min((m for m in range(members) if room[m]), key=lambda m: loads[m])
        loads[member] += lag
        room[member] -= 1
    return max(loads)


@pytest.mark.parametrize("seed", range(12))
def test_hardly_any_time_gives_a_low_makespan_where_lags_are_skewed(seed: int) -> None:
    random = Random(seed)
    lags = [round(random.lognormvariate(8, random.choice([0.3, 1, 2]))) for _ in range(96)]
    result = evenlag.solve(alike(lags, 12), balance="group", objective="makespan", time_limit=0.001)
    assert result.objective <= largest_load_longest_first(lags, 12)


@pytest.mark.parametrize("seed", range(6))
def test_hardly_any_time_keeps_partitions_where_moves_cost(seed: int) -> None:
    random = Random(seed)
    lags = {"t": [random.randint(0, 10**6) for _ in range(400)]}
    problem = alike(lags, 30, owned=random_owners(random, lags, 30))
    result = evenlag.solve(problem, stickiness=1, time_limit=0.001)
    assert (result.status, result.stopped_by, result.fallback) == ("FEASIBLE", "time", True)
    assert result.method in HEURISTICS
    assert result.assignment == HEURISTICS[result.method](problem).assignment


@pytest.mark.parametrize("method", ["auto", "cp-sat", "cbc", "highs"])
def test_solves_without_a_time_limit_end(method: str) -> None:
    problem = alike([7, 7, 5, 5, 3], "ab")
    result = evenlag.solve(problem, stickiness=0, method=method, time_limit=float("inf"))
    assert (result.status, result.objective) == ("OPTIMAL", exhaustive(problem, Goal(stickiness=0)).objective)


@pytest.mark.parametrize("method", ["cp-sat", "cbc", "highs"])
@pytest.mark.parametrize("seed", small_seeds(15))
def test_work_limits_do_not_fail_a_backend(seed: int, method: str) -> None:
    problem, parameters, goal = small_case(seed)
    for time_limit in (0.05, LIMIT):
        result = evenlag.solve(problem, **parameters, method=method, time_limit=time_limit, deterministic=True)
        assert assess(problem, result.assignment, goal).objective == result.objective
        assert result.bound <= optimum_of(seed).objective
        assert not any("Error" in warning for warning in result.warnings), result.warnings


@pytest.mark.parametrize("seed", small_seeds(15))
@pytest.mark.usefixtures("by")
def test_a_gap_that_is_wide_enough_stops_the_search(seed: int) -> None:
    problem, parameters, _ = small_case(seed)
    result = evenlag.solve(problem, **parameters, gap=1e9, time_limit=LIMIT)
    assert result.stopped_by in ("gap", "proof")
    assert result.bound <= result.objective


@pytest.mark.parametrize("seed", small_seeds(15))
@pytest.mark.usefixtures("by")
def test_deterministic_runs_are_identical(seed: int) -> None:
    problem, parameters, _ = small_case(seed)
    documents = []
    for _ in range(2):
        documents.append(evenlag.solve(problem, **parameters, deterministic=True, time_limit=LIMIT).to_dict())
        del documents[-1]["seconds"]
    assert documents[0] == documents[1]
