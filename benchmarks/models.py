"""The MIP as anyone would write it down first, for CP-SAT and for PuLP: what evenlag is compared with."""

import time
from collections.abc import Callable
from typing import Any

import pulp
from ortools.sat.python import cp_model

from evenlag import Problem

Solver = Callable[[Problem, float], int | None]


def cp_sat(problem: Problem, seconds: float) -> int | None:
    """Return the spread that CP-SAT finds for one topic, equal counts, in this time; None: nothing found."""
    started = time.monotonic()
    lags, members = problem.lags.tolist(), range(len(problem.members))
    model = cp_model.CpModel()
    x = [[model.new_bool_var("") for _ in members] for _ in lags]
    high, low = (model.new_int_var(0, sum(lags), name) for name in ("high", "low"))
    for row in x:
        model.add_exactly_one(row)
    for m in members:
        column = [row[m] for row in x]
        model.add_linear_constraint(sum(column), len(lags) // len(members), -(-len(lags) // len(members)))
        load = cp_model.LinearExpr.weighted_sum(column, lags)
        model.add(load <= high)
        model.add(load >= low)
    model.minimize(high - low)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 2
    solver.parameters.max_time_in_seconds = max(seconds - (time.monotonic() - started), 0.01)
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return _spread(problem, [[solver.value(cell) for cell in row] for row in x])


def with_pulp(backend: Callable[[float], Any]) -> Solver:
    """Return the same for a PuLP backend, given how to make it for a time limit."""

    def solve(problem: Problem, seconds: float) -> int | None:
        started = time.monotonic()
        lags, members = problem.lags.tolist(), range(len(problem.members))
        program = pulp.LpProblem("spread", pulp.LpMinimize)
        x = [[pulp.LpVariable(f"x_{p}_{m}", cat="Binary") for m in members] for p in range(len(lags))]
        high, low = pulp.LpVariable("high", 0), pulp.LpVariable("low", 0)
        program += high - low
        for row in x:
            program += pulp.lpSum(row) == 1
        for m in members:
            count = pulp.lpSum(row[m] for row in x)
            program += count >= len(lags) // len(members)
            program += count <= -(-len(lags) // len(members))
            load = pulp.lpSum(lag * row[m] for lag, row in zip(lags, x, strict=True))
            program += load <= high
            program += load >= low
        program.solve(backend(max(seconds - (time.monotonic() - started), 0.1)))
        if program.sol_status not in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
            return None
        return _spread(problem, [[cell.value() or 0 for cell in row] for row in x])

    return solve


def _spread(problem: Problem, x: list[list[float]]) -> int | None:
    """Recompute the spread; None where a partition has no one member."""
    loads = [0] * len(problem.members)
    for lag, row in zip(problem.lags.tolist(), x, strict=True):
        chosen = [m for m, value in enumerate(row) if value > 0.5]
        if len(chosen) != 1:
            return None
        loads[chosen[0]] += lag
    return max(loads) - min(loads)


MODELS: dict[str, Solver] = {
    "CP-SAT model": cp_sat,
    "PuLP + CBC": with_pulp(lambda seconds: pulp.PULP_CBC_CMD(msg=False, timeLimit=seconds, threads=2)),
    "PuLP + HiGHS": with_pulp(lambda seconds: pulp.HiGHS(msg=False, timeLimit=seconds, threads=2)),
}
