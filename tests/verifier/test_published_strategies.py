"""Results of published strategies, which keep neither the limits asked for nor the order of scenarios."""

from __future__ import annotations

import pytest

import evenlag
from tests.support.problems import alike

OWNED = {"a": [("t", p) for p in range(3)]}
UNSORTED = [(2, {"t": [9, 7, 1]}), (1, {"t": [0, 0, 5]}), (1, {"t": [9, 7, 1]})]


@pytest.mark.parametrize("first", [[], ["moves"]])
def test_limits_that_no_plan_keeps_prove_every_bound(first: list[str]) -> None:
    problem = alike([5, 4, 2], "ab", owned=OWNED)
    result = evenlag.solve(problem, method="range", max_load=3, first=first)
    assert result.violation is not None
    assert evenlag.verify(result, problem).outcome == "verified"


@pytest.mark.parametrize("across", ["mean", "worst"])
@pytest.mark.parametrize("stickiness", [0, 1])
def test_a_proof_has_one_part_for_equal_scenarios(stickiness: int, across: str) -> None:
    problem = alike([5, 4, 2], "ab", owned=OWNED, scenarios=UNSORTED)
    result = evenlag.solve(problem, method="lag-aware", stickiness=stickiness, across=across)
    assert evenlag.verify(result, problem).outcome == "verified"
