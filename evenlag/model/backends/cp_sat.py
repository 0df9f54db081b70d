"""OR-Tools CP-SAT."""

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

LAST_BITS = 8  # units in the last place by which a double may be wrong
LARGEST_SUM = 2**60  # CP-SAT works in int64 and wants room to spare


def solve(mip: Mip, hint: NDArray[Any] | None, limits: Limits, report: Report) -> Outcome:
    """Solve the program; every improving solution goes to `report` as it is found."""
    started = time.monotonic()
    if max(mip.upper, default=0) * sum(abs(cost) for cost in mip.costs.values()) >= LARGEST_SUM:
        return Outcome(stopped="failed", failure="lags are too large for CP-SAT's 64-bit integers")
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

    answer = solved_within(program, limits, started, improved)
    if answer.status == "infeasible":
        return Outcome(stopped="failed", failure="CP-SAT finds the model infeasible", infeasible=True)
    if answer.status == "invalid":
        return Outcome(stopped="failed", failure="CP-SAT refuses the model as invalid")
    values = np.array(answer.values[: mip.booleans], dtype=np.int64) if answer.found else None
    return Outcome(values, round_up(answer.bound), stopped_by(answer, limits))


def solved_within(
    program: IntegerProgram,
    limits: Limits,
    started: float,
    improved: Callable[[Callable[[int], int]], None] | None = None,
) -> Answer:
    """Let CP-SAT solve a program within these limits; `started` (monotonic) is when the call began that they are of."""
    return program.solve(
        threads=limits.threads if limits.work is None else 1, seed=limits.seed, seconds=limits.solver_seconds(started),
        work=limits.work, improved=improved,
    )  # fmt: skip


def stopped_by(answer: Answer, limits: Limits) -> Ended:
    """Say what ended CP-SAT: a proof, its deterministic time, or else the wall clock.

    The wall time says little: CP-SAT ends before its limit where it expects that its next step would pass it.
    """
    if answer.status in ("optimal", "infeasible"):
        return "proof"
    return "work" if limits.work is not None and answer.work >= limits.work else "time"


def round_up(bound: float, margin: float = 1e-6) -> int | None:
    """Turn a double into a whole bound that is certainly no higher than the true one allows.

    Whole doubles below 2^53 are taken as they are. Others may be wrong by the margin and in their last bits.
    """
    if not math.isfinite(bound):
        return None
    exact = bound.is_integer() and abs(bound) < 2**53
    error = Fraction(margin) + (0 if exact else Fraction(LAST_BITS * math.ulp(bound)))
    return math.ceil(Fraction(bound) - error)
