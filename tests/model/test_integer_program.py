"""Our writer of CP-SAT's programs, against OR-Tools' `cp_model`."""

import os
import signal
import threading
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from ortools.sat.python import cp_model

from evenlag.model.backends.integer_program import IntegerProgram
from evenlag.model.interrupt import ending_searches, interrupted
from tests.support.problems import seeds


def random_pair(random: Random) -> tuple[IntegerProgram, cp_model.CpModel, list[Any]]:
    """The same random program, written by both."""
    ours, theirs = IntegerProgram(), cp_model.CpModel()
    ranges = [(0, 1)] * random.randint(3, 6)
    ranges += [(low, low + random.randint(0, 40)) for low in random.choices(range(-9, 9), k=random.randint(1, 3))]
    columns: list[Any] = []
    for number, (low, high) in enumerate(ranges):
        assert ours.variable(low, high) == number
        columns.append(theirs.new_int_var(low, high, ""))

    def some() -> list[int]:
        return random.sample(range(len(ranges)), random.randint(1, len(ranges)))

    def total(variables: list[int], coefficients: list[int]) -> Any:
        return cp_model.LinearExpr.weighted_sum([columns[i] for i in variables], coefficients)

    for _ in range(random.randint(1, 4)):
        variables = some()
        coefficients = [random.randint(-5, 5) for _ in variables]
        low = random.choice([None, random.randint(-40, 5)])
        high = random.choice([None, random.randint(5, 60)])
        ours.require(variables, coefficients, low, high)
        theirs.add_linear_constraint(
            total(variables, coefficients),
            cp_model.INT_MIN if low is None else low,
            cp_model.INT_MAX if high is None else high,
        )
    booleans = random.sample(range(3), random.randint(1, 3))
    ours.require_one(booleans)
    theirs.add_exactly_one([columns[i] for i in booleans])
    variables = some()
    costs = [random.choice([-3, -1, 2, 7]) for _ in variables]
    ours.minimize(variables, costs)
    theirs.minimize(total(variables, costs))
    hint = [low for low, _ in ranges[:2]]
    ours.hint(hint)
    for column, value in zip(columns, hint, strict=False):
        theirs.add_hint(column, value)
    return ours, theirs, columns


@pytest.mark.parametrize("seed", seeds(60))
def test_programs_equal_those_of_or_tools(seed: int) -> None:
    ours, theirs, columns = random_pair(Random(seed))
    assert str(ours._model) == str(theirs.proto)  # so that the runs of both are the same to the last step
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(theirs)
    better: list[list[int]] = []
    answer = ours.solve(improved=lambda value: better.append([value(i) for i in range(len(columns))]))
    assert (answer.status, answer.found) == (status.name.lower(), status in (cp_model.OPTIMAL, cp_model.FEASIBLE))
    assert answer.work == solver.response_proto.deterministic_time
    if answer.found:
        assert answer.values == [solver.value(column) for column in columns] == better[-1]
        assert answer.bound == solver.best_objective_bound
    else:
        assert not answer.values
        assert not better


def test_random_programs_cover_feasible_and_infeasible_ones() -> None:
    statuses = {random_pair(Random(seed))[0].solve().status for seed in range(60)}
    assert statuses == {"optimal", "infeasible"}


def test_invalid_programs_are_reported_as_invalid() -> None:
    program = IntegerProgram()
    program.variable(3, 2)
    assert program.solve().status == "invalid"


def test_limits_and_seed_reach_the_solver() -> None:
    random = Random(1)
    program = IntegerProgram()
    columns = [program.variable() for _ in range(60)]
    for _ in range(5):  # market split: small and hard
        weights = [random.randint(0, 99) for _ in columns]
        program.require(columns, weights, sum(weights) // 2, sum(weights) // 2)
    answer = program.solve(seed=3, work=1e-3, seconds=60.0)
    assert answer.status == "unknown"
    assert 1e-3 <= answer.work < 1
    assert program.solve(seed=3, work=1e-3, seconds=60.0).work == answer.work


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let interrupts raise, also where the tests run in the background, which ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_a_running_program() -> None:
    random = Random(1)
    program = IntegerProgram()
    columns = [program.variable() for _ in range(60)]
    for _ in range(5):
        weights = [random.randint(0, 99) for _ in columns]
        program.require(columns, weights, sum(weights) // 2, sum(weights) // 2)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    before = signal.getsignal(signal.SIGINT)
    with ending_searches() as watch:
        timer.start()
        answer = program.solve(seconds=600.0)
        assert (watch.interrupted, interrupted(), answer.status) == (True, True, "unknown")
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert not interrupted()
    assert signal.getsignal(signal.SIGINT) is before
