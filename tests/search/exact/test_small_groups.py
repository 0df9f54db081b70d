"""All plans of a small group: the one that is chosen, compared with an independent list of plans."""

from random import Random

import pytest

import evenlag
from evenlag.search.exact.small_groups import allowed_plans, best_plan
from tests.support.exact import Optimum, assess
from tests.support.problems import alike
from tests.support.scripted import task_for
from tests.support.small_groups import random_cases


@pytest.mark.parametrize("seed", range(6))
def test_the_best_of_all_plans_is_chosen(seed: int) -> None:
    cases = random_cases(Random(seed))
    for problem, parameters, goal, optimum in (next(cases) for _ in range(5)):
        if parameters.get("stickiness") == "fewest-moves" or not isinstance(optimum, Optimum):
            continue
        task = task_for(problem, **parameters)
        found = best_plan(allowed_plans(task.rule), task)
        assert found is not None
        plan, bound = found
        assert assess(problem, plan.assignment, goal).objective == optimum.objective == task.goal.value(plan)
        assert bound.objective <= optimum.objective


@pytest.mark.parametrize("lag", [0, 1])
def test_weights_may_have_many_digits(lag: int) -> None:
    weights = {"a": 0.1234567890123457, "b": 0.7654321098765433, "c": 0.3456789012345677}
    result = evenlag.solve(alike([lag] * 4, "abc", weights=weights))
    assert (result.status, result.plan.counts.tolist()) == ("OPTIMAL", [0, 3, 1])
