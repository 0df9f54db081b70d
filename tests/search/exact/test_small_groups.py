"""All plans of a small group: the one that is chosen, compared with an independent list of plans."""

from random import Random

import pytest

from evenlag.search.exact.small_groups import allowed_plans, best_plan
from tests.support.exact import Optimum, assess
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
