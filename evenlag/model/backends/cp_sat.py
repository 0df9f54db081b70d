"""Backend that uses OR-Tools CP-SAT."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.backends.integer_program import Answer, IntegerProgram
from evenlag.model.backends.outcome import Ended, Limits, Outcome, Report
from evenlag.model.formulation import Mip

LAST_BITS = 8  # assumed error of a double, in units in the last place
LARGEST = 20_000  # beyond it, presolve ignores the time limit
PACKAGES = ("ortools",)
LARGEST_SUM = 2**60  # CP-SAT computes in int64 and needs some headroom


def solve(mip: Mip, hint: NDArray[Any] | None, limits: Limits, report: Report) -> Outcome:
    """Solve the program with CP-SAT; pass every improving solution to `report`."""
    return _solved(mip, hint, limits, report, presolve=True)


def confirm(mip: Mip, hint: NDArray[Any] | None, limits: Limits, report: Report) -> Outcome:
    """Solve the program with CP-SAT as it is written; pass every improving solution to `report`."""
    return _solved(mip, hint, limits, report, presolve=False)


def _solved(mip: Mip, hint: NDArray[Any] | None, limits: Limits, report: Report, *, presolve: bool) -> Outcome:
    started = time.monotonic()
    largest = sum(mip.upper[column] * abs(cost) for column, cost in mip.costs.items())
    if max(largest, *mip.upper) >= LARGEST_SUM:
        factors = "lags times the scenarios' weights" if mip.problem.scenario_weights else "lags"
        return Outcome(stopped="failed", failure=f"{factors} are too large for CP-SAT's 64-bit integers")
    program = IntegerProgram()
    for lower, upper in zip(mip.lower, mip.upper, strict=True):
        program.variable(lower, upper)
    for indices, coefficients, lo, hi in mip.rows:
        program.require(indices.tolist(), coefficients.tolist(), lo, hi)
    program.minimize(list(mip.costs), list(mip.costs.values()))
    if hint is not None:
        program.hint(hint.tolist()[: len(mip.lower)])

    def improved(value: Callable[[int], int]) -> None:
        report(np.array([value(i) for i in range(mip.booleans)], dtype=np.int64))

    answer = program.solve(
        threads=limits.threads if limits.work is None else 1, seed=limits.seed, seconds=limits.solver_seconds(started),
        work=limits.work, improved=improved, presolve=presolve,
    )  # fmt: skip
    if answer.status == "infeasible":
        return Outcome(stopped="failed", failure="CP-SAT finds the model infeasible", infeasible=True)
    if answer.status == "invalid":
        return Outcome(stopped="failed", failure="CP-SAT refuses the model as invalid")
    values = np.array(answer.values[: mip.booleans], dtype=np.int64) if answer.found else None
    return Outcome(values, round_up(answer.bound), stopped_by(answer, limits))


def stopped_by(answer: Answer, limits: Limits) -> Ended:
    """Return what ended CP-SAT: a proof, its deterministic time limit, or otherwise the wall clock.

    The elapsed time is not a criterion: CP-SAT may stop early if it expects its next step to exceed the limit.
    """
    if answer.status in ("optimal", "infeasible"):
        return "proof"
    return "work" if limits.work is not None and answer.work >= limits.work else "time"


def round_up(bound: float, margin: float = 1e-6) -> int | None:
    """Return the largest whole lower bound that is safe to conclude from a double.

    Whole doubles below 2^53 are exact up to the margin. Others may also be wrong in their last bits.
    """
    if not math.isfinite(bound):
        return None
    exact = bound.is_integer() and abs(bound) < 2**53
    error = Fraction(margin) + (0 if exact else Fraction(LAST_BITS * math.ulp(bound)))
    return math.ceil(Fraction(bound) - error)
