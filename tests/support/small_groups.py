"""Random groups small enough to list every plan, the parameters to solve them with, and their optimum."""

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

import pytest

import evenlag
from tests.support.exact import Goal, Group, Infeasible, Optimum, exhaustive
from tests.support.problems import random_parameters, random_problem, seeds

LIMIT = 60.0  # seconds; the small groups take some milliseconds, but a disk that is busy can hold CBC up
SMALL = {"partitions": 8, "members": 4, "topics": 3}
Case = tuple[evenlag.Problem, dict[str, Any], Goal, Optimum | Infeasible]


def small_seeds(count: int) -> list[Any]:
    """Return seeds of small groups; tests of one seed share its optimum and its result."""
    return [pytest.param(seed, marks=pytest.mark.slow) for seed in seeds(count)]


def random_cases(random: Random) -> Iterator[Case]:
    """Yield random groups with a subscriber, parameters to solve them with, and their optimum."""
    while True:
        problem, parameters = random_problem(random, **SMALL), random_parameters(random)
        if Group(problem).assignable:
            goal = Goal(**parameters)
            try:
                yield problem, parameters, goal, exhaustive(problem, goal)
            except Infeasible as error:
                yield problem, parameters, goal, error


@cache
def feasible_case(seed: int) -> Case:
    return next(case for case in random_cases(Random(seed)) if isinstance(case[-1], Optimum))


def small_case(seed: int) -> tuple[evenlag.Problem, dict[str, Any], Goal]:
    """Return a feasible group, and the parameters to solve it with."""
    problem, parameters, goal, _ = feasible_case(seed)
    return problem, parameters, goal


def optimum_of(seed: int) -> Optimum:
    found = feasible_case(seed)[-1]
    assert isinstance(found, Optimum)
    return found
