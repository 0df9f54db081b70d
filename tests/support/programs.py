"""Programs for MIP backends, and runs of a backend on them."""

from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pulp
import pytest
from numpy.typing import NDArray

import evenlag
from evenlag.model.asked_terms import resolve_objective
from evenlag.model.backends import BACKENDS, Limits, Outcome
from evenlag.model.balance import count_rule
from evenlag.model.formulation import Mip, formulate
from evenlag.model.plan import Plan
from tests.support.exact import Goal, Group, Infeasible, assess, exhaustive
from tests.support.problems import alike, random_parameters, random_problem

ROOM = 30.0  # seconds; a backend that hangs would sleep far longer


@cache
def solved_case(seed: int) -> tuple[evenlag.Problem, Goal, Any]:
    """Return a random feasible group, its goal, and its optimum."""
    random = Random(seed)
    while True:
        problem, goal = random_problem(random, partitions=8), Goal(**random_parameters(random))
        if not Group(problem).assignable:
            continue
        try:
            return problem, goal, exhaustive(problem, goal).objective
        except Infeasible:
            continue


def run_backend(name: str, mip: Mip, limits: Limits, hint: NDArray[Any] | None = None) -> Outcome:
    return BACKENDS[name]()(mip, hint, limits, [].append)


def program(problem: evenlag.Problem, goal: Goal) -> Mip:
    rule = count_rule(problem, goal.balance, goal.slack)
    return formulate(problem, rule, resolve_objective(rule, goal.objective, goal.stickiness, goal.max_moves))


def objective_of(problem: evenlag.Problem, goal: Goal, member_of: NDArray[Any]) -> Any:
    return assess(problem, Plan(problem, member_of).assignment, goal).objective


def replace_cbc(script: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a shell script in place of CBC."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setattr(pulp.PULP_CBC_CMD, "pulp_cbc_path", str(path))


def unsettled(seed: int = 1) -> evenlag.Problem:
    """Return a group without owners that no heuristic solves to the proven bound."""
    random = Random(seed)
    lags = [random.randint(1, 10**6) for _ in range(24)]
    return alike(lags, 5)
