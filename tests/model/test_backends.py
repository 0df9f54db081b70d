"""One conformance suite for all MIP backends."""

from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import highspy
import pulp
import pytest

import evenlag
from evenlag.model.backends import BACKENDS, Limits, cbc, pulp_models
from tests.support.exact import Goal, exhaustive
from tests.support.problems import alike, seeds
from tests.support.programs import ROOM, objective_of, program, replace_cbc, run_backend, solved_case, unsettled


@pytest.mark.slow
@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("seed", seeds(60))
def test_every_backend_proves_the_optimum(seed: int, name: str) -> None:
    problem, goal, wanted = solved_case(seed)
    mip = program(problem, goal)
    outcome = run_backend(name, mip, Limits(ROOM))
    assert (outcome.stopped, outcome.failure) == ("proof", None)
    member_of = mip.decode(outcome.values)
    assert member_of is not None
    assert objective_of(problem, goal, member_of) == wanted
    lower_by = 0 if name == "cp-sat" else Fraction(2 * pulp_models.TOLERANCE * (1 + pulp_models.highest(mip)))
    assert wanted - lower_by <= mip.in_messages(outcome.bound) <= wanted


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("seed", seeds(12))
def test_every_backend_takes_a_hint_and_a_work_limit(seed: int, name: str) -> None:
    problem, goal, wanted = solved_case(seed)
    mip = program(problem, goal)
    best = run_backend("highs", mip, Limits(ROOM))
    hint = mip.encode(mip.decode(best.values))
    outcome = run_backend(name, mip, Limits(ROOM, work=ROOM, seed=3), hint)
    assert objective_of(problem, goal, mip.decode(outcome.values)) == wanted
    assert mip.in_messages(outcome.bound) <= wanted


@pytest.mark.slow
@pytest.mark.parametrize("name", BACKENDS)
def test_no_bound_passes_the_optimum_when_stopped(name: str) -> None:
    """A backend stopped by its work limit has only the bound of the search so far."""
    for seed in range(8):
        problem, goal, wanted = hard_case(seed)
        mip = program(problem, goal)
        outcome = run_backend(name, mip, Limits(2.0, work=0.002))
        assert outcome.failure is None
        if outcome.bound is not None:
            assert mip.in_messages(outcome.bound) <= wanted


def test_cp_sat_takes_scenarios_with_weights_of_many_digits() -> None:
    rng = Random(5)
    weights = ("0.5", "15.999", "48500.001", "7.919", "104.729")
    lags = [[rng.randrange(6_000_000) for _ in range(8)] for _ in weights]
    scenarios = [(float(weight), {"t": of}) for weight, of in zip(weights, lags, strict=True)]
    owned = {name: [("t", p) for p in range(8) if p % 2 == place] for place, name in enumerate("ab")}
    problem = evenlag.Problem.from_lags({"t": lags[0]}, ["a", "b"], owned=owned, scenarios=scenarios)
    result = evenlag.solve(problem, method="cp-sat", time_limit=20)
    assert (result.status, result.objective) == ("OPTIMAL", exhaustive(problem, Goal()).objective)
    assert not any("64-bit" in warning for warning in result.warnings)


@cache
def hard_case(seed: int) -> tuple[evenlag.Problem, Goal, Any]:
    random = Random(seed)
    lags = [random.randint(10**3, 10**6) for _ in range(10)]
    members = {"a": ["t"], "b": ["t"], "c": ["t"]}
    problem = evenlag.Problem.from_lags({"t": lags}, members, weights={"a": 1, "b": 3, "c": 0.7})
    goal = Goal(stickiness=0)
    return problem, goal, exhaustive(problem, goal).objective


# Limits, and the reason that must end a search which proves nothing within them.
ENDED = {
    "the wall clock alone": (Limits(0.6), "time"),
    "the wall clock before the work limit": (Limits(0.6, work=1_000.0), "time"),
    "the work limit": (Limits(ROOM, work=0.002), "work"),
}


@pytest.mark.parametrize("case", ENDED)
@pytest.mark.parametrize("name", BACKENDS)
def test_every_backend_reports_why_it_stopped(name: str, case: str) -> None:
    limits, ended = ENDED[case]
    outcome = run_backend(name, program(unsettled(), Goal(stickiness=0)), limits)
    assert (outcome.stopped, outcome.failure) == (ended, None)


def test_cbc_stopped_in_presolve_by_the_clock_reports_time() -> None:
    """CBC does not report the end of its time in presolve."""
    problem = evenlag.Problem.from_lags({"t": list(range(1, 201))}, {f"c{i}": ["t"] for i in range(20)})
    assert run_backend("cbc", program(problem, Goal(stickiness=0)), Limits(0.01, work=1_000.0)).stopped == "time"


def test_figures_that_cbc_writes_with_a_negative_exponent_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = alike([5, 4, 3, 2, 9], "ab")
    mip = program(problem, Goal())
    figures = r"s/^(Objective value: +|Continuous objective value is )[0-9.e+-]+/\15.68434e-14/"
    replace_cbc(f'"{pulp.PULP_CBC_CMD.pulp_cbc_path}" "$@" | sed -E "{figures}"', tmp_path / "cbc", monkeypatch)
    outcome = run_backend("cbc", mip, Limits(ROOM))
    assert (outcome.stopped, outcome.bound) == ("proof", 0)
    assert mip.decode(outcome.values) is not None
    assert cbc._BOUND.findall("Continuous objective value is 5.68434e-14 - 0.00 seconds\n") == ["5.68434e-14"]
    assert cbc._at_least("1.08943e+09") == 1_089_420_000  # of 1,089,425,223
    assert cbc._at_least("1089425223.25") == 1_089_425_223.24


@pytest.mark.parametrize("threads", [1, 2])
def test_highs_works_in_a_process_that_has_used_it_before(threads: int) -> None:
    """HiGHS's threads do not survive the fork that a backend runs in."""
    used = highspy.Highs()
    used.setOptionValue("output_flag", False)
    used.setOptionValue("threads", 3 - threads)
    used.addVar(0.0, 1.0)
    used.run()
    problem = alike([5, 4, 3, 2, 9], "ab")
    result = evenlag.solve(problem, method="highs", time_limit=ROOM, threads=threads)
    assert (result.status, result.warnings) == ("OPTIMAL", ())
