"""Backends that lie: their plans are checked, and their words count only as far as a second run confirms them."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

import evenlag
from evenlag.errors import InfeasibleError, NoPlanFoundError
from evenlag.model.backends import BACKENDS, WITNESSES, Limits, Outcome, cp_sat
from evenlag.model.backends.cp_sat import confirm
from tests.support.exact import Optimum, assess
from tests.support.problems import cases
from tests.support.programs import unsettled
from tests.support.small_groups import LIMIT, random_cases

Lie = Callable[..., Outcome]


def infeasible(*_: Any) -> Outcome:
    return Outcome(stopped="failed", failure="finds the model infeasible", infeasible=True)


def worst_is_best(mip: Any, hint: Any, *_: Any) -> Outcome:
    """Call the plan that was known before optimal."""
    if hint is None:
        return infeasible()
    value = sum(cost * int(hint[column]) for column, cost in mip.costs.items())
    return Outcome(np.asarray(hint[: mip.booleans]), value, "proof")


def bound_without_plan(*asked: Any) -> Outcome:
    return replace(worst_is_best(*asked), values=None)


def high_bound(mip: Any, hint: Any, limits: Limits, report: Any) -> Outcome:
    """Add one to the bound of an honest run."""
    found = cp_sat.solve(mip, hint, limits, report)
    return found if found.bound is None else replace(found, bound=found.bound + 1)


def broken_plan(mip: Any, *_: Any) -> Outcome:
    """Give every partition to one member, and call that optimal."""
    return Outcome(np.asarray(mip.x_member == mip.x_member[0]).astype(np.int64), 0, "proof")


LIES = (infeasible, worst_is_best, bound_without_plan, high_bound, broken_plan)


@pytest.mark.slow
@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("method", [*BACKENDS, "auto"])
def test_a_lie_is_never_repeated_as_proof(method: str, lie: Lie, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in BACKENDS:
        monkeypatch.setitem(BACKENDS, name, lambda: lie)
    drawn = random_cases(Random(f"{method}-{lie.__name__}"))
    for problem, parameters, goal, optimum in (next(drawn) for _ in range(cases(125) // 5)):
        try:
            result = evenlag.solve(problem, method=method, time_limit=LIMIT, **parameters)  # type: ignore[arg-type]
        except NoPlanFoundError:
            continue
        except InfeasibleError:
            assert not isinstance(optimum, Optimum)
            continue
        assert isinstance(optimum, Optimum)
        assert result.bound <= optimum.objective
        assert assess(problem, result.assignment, goal).objective == result.objective
        if result.status == "OPTIMAL":
            assert result.objective == optimum.objective


def confirmed(problem: evenlag.Problem, **parameters: Any) -> evenlag.Result:
    return evenlag.solve(problem, method="cp-sat", time_limit=LIMIT, **parameters)


def two_members() -> evenlag.Problem:
    return evenlag.Problem.from_lags({"t": [9, 8, 7, 5, 3, 1]}, members=["a", "b"])


def test_a_bound_of_two_runs_is_said_to_be_theirs() -> None:
    result = confirmed(two_members())
    assert (result.status, result.objective) == ("OPTIMAL", 1)
    if result.attested_by is not None:
        assert result.bound_by == result.attested_by == "cp-sat"


@pytest.mark.parametrize("lie", [worst_is_best, bound_without_plan, high_bound])
def test_the_lower_bound_of_two_runs_counts(lie: Lie, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "cp-sat", lambda: lie)
    result = confirmed(two_members())
    assert (result.status, result.objective, result.bound) == ("OPTIMAL", 1, 1)


def test_a_bound_that_no_second_run_confirms_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = evenlag.solve(two_members(), method="highs", time_limit=LIMIT)
    monkeypatch.setitem(WITNESSES, "cp-sat", lambda: infeasible)
    result = confirmed(two_members())
    assert result.objective == honest.objective
    assert result.bound_by != "cp-sat"
    if result.status != "OPTIMAL":
        assert any("no second run confirmed it" in note for note in result.warnings)


def test_a_claim_that_a_plan_refutes_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "highs", lambda: infeasible)
    result = evenlag.solve(unsettled(), method="highs", time_limit=LIMIT)
    assert result.status == "FEASIBLE"
    assert any("highs: finds the model infeasible; the plan is valid" in note for note in result.warnings)


def test_the_witness_is_another_run() -> None:
    assert {WITNESSES[name]() is not backend() for name, backend in BACKENDS.items()} == {True}
    assert WITNESSES["cp-sat"]() is confirm
