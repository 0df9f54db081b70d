"""OR-Tools CP-SAT."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from evenlag.model.backends.outcome import Ended, Limits, Outcome, Report
from evenlag.model.formulation import Mip

LARGEST_SUM = 2**60  # CP-SAT works in int64 and wants room to spare


def solve(mip: Mip, hint: NDArray[Any] | None, limits: Limits, report: Report) -> Outcome:
    """Solve the program; every improving solution goes to `report` as it is found."""
    started = time.monotonic()
    if max(mip.upper, default=0) * sum(abs(cost) for cost in mip.costs.values()) >= LARGEST_SUM:
        return Outcome(stopped="failed", failure="lags are too large for CP-SAT's 64-bit integers")
    model = cp_model.CpModel()
    columns: list[Any] = [
        model.new_int_var(lower, upper, name)
        for lower, upper, name in zip(mip.lower, mip.upper, mip.names, strict=True)
    ]
    for indices, coefficients, lo, hi in mip.rows:
        terms = [columns[i] for i in indices.tolist()]
        lowest = cp_model.INT_MIN if lo is None else lo
        highest = cp_model.INT_MAX if hi is None else hi
        model.add_linear_constraint(cp_model.LinearExpr.weighted_sum(terms, coefficients.tolist()), lowest, highest)
    objective = cp_model.LinearExpr.weighted_sum([columns[i] for i in mip.costs], list(mip.costs.values()))
    model.minimize(objective)
    if hint is not None:
        for column, value in zip(columns, hint.tolist(), strict=False):
            model.add_hint(column, value)
    solver = solver_within(limits, started)
    booleans = columns[: mip.booleans]
    status = solver.solve(model, _Reporter(booleans, report))
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    values = np.array([solver.value(column) for column in booleans], dtype=np.int64) if found else None
    if status == cp_model.INFEASIBLE:
        return Outcome(stopped="failed", failure="CP-SAT finds the model infeasible")
    if status == cp_model.MODEL_INVALID:
        return Outcome(stopped="failed", failure="CP-SAT refuses the model as invalid")
    return Outcome(values, round_up(solver.best_objective_bound), stopped_by(solver, status, limits))


def solver_within(limits: Limits, started: float) -> cp_model.CpSolver:
    """Return a solver that keeps these limits; `started` (monotonic) is when the call began that they are of."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = limits.threads if limits.work is None else 1
    solver.parameters.random_seed = limits.seed
    if limits.work is not None:
        solver.parameters.max_deterministic_time = limits.work
    solver.parameters.max_time_in_seconds = limits.solver_seconds(started)
    return solver


def stopped_by(solver: cp_model.CpSolver, status: Any, limits: Limits) -> Ended:
    """Say what ended CP-SAT: a proof, its deterministic time, or else the wall clock.

    The wall time says little: CP-SAT ends before its limit where it expects that its next step would pass it.
    """
    if status in (cp_model.OPTIMAL, cp_model.INFEASIBLE):
        return "proof"
    used_up = limits.work is not None and solver.response_proto.deterministic_time >= limits.work
    return "work" if used_up else "time"


def round_up(bound: float, margin: float = 1e-6) -> int | None:
    """Turn a double into a whole bound that is certainly no higher than the true one allows."""
    if not math.isfinite(bound):
        return None
    bound -= margin
    return math.ceil(bound) if abs(bound) < 2**53 else math.floor(bound * (1 - 2**-50)) - 1


class _Reporter(cp_model.CpSolverSolutionCallback):
    """Hands every improving solution out at once, so that nothing is lost if the process is ended."""

    def __init__(self, booleans: list[Any], report: Report) -> None:
        super().__init__()
        self._booleans, self._report = booleans, report

    def on_solution_callback(self) -> None:
        self._report(np.array([self.value(column) for column in self._booleans], dtype=np.int64))
