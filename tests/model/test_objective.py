"""Every objective is a multiple of its step, so a bound within a step of it is met."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenlag import Problem, solve
from evenlag.model.objective import Across, Objective, ObjectiveKind
from evenlag.model.plan import Plan
from tests.support.problems import alike, problems


@pytest.mark.parametrize("hot", [10**9, 10**12, 10**15])
def test_half_messages_count_next_to_a_giant_partition(hot: int) -> None:
    """A bound a few messages below the objective is not a proof, however large the loads are."""
    lags = [hot, 728, 309, 197, 780, 21, 10, 7, 225, 8, 870]
    owners = dict(zip("abc", ([1, 3, 4, 5, 7, 8], [2, 6, 9], [0, 10]), strict=True))
    owned = {name: [("t", p) for p in held] for name, held in owners.items()}
    group = alike(lags, "abc", owned=owned)
    twice = alike([2 * lag for lag in lags], "abc", owned=owned)
    rules: dict[str, Any] = {"balance": "group", "slack": 1, "objective": "makespan"}
    found = solve(group, stickiness=0.5, **rules)
    expected = solve(twice, stickiness=1, **rules)
    assert (expected.status, found.status) == ("OPTIMAL", "OPTIMAL")
    assert (2 * found.objective, found.moves) == (expected.objective, expected.moves)


@given(problems(partitions=8, members=4, plain=False), st.sampled_from([0, 0.1, 0.5, 3, 1.25]), st.data())
def test_every_objective_is_a_multiple_of_the_step(problem: Problem, stickiness: float, data: st.DataObject) -> None:
    kind, across = data.draw(st.sampled_from(list(ObjectiveKind))), data.draw(st.sampled_from(list(Across)))
    goal = Objective(kind, Fraction(stickiness), across=across)
    random = data.draw(st.randoms(use_true_random=False))
    takers = [range(-1, len(problem.members) if taken else 0) for taken in problem.assignable]
    member_of = np.array([random.choice(each) for each in takers], np.int32)
    assert (goal.value(Plan(problem, member_of)) / goal.step(problem)).denominator == 1
