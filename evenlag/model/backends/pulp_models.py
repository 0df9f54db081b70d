"""Backends that use PuLP with CBC and HiGHS, and export of the program as LP or MPS."""

from __future__ import annotations

import contextlib
import re
import tempfile
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pulp
from numpy.typing import NDArray

from evenlag.errors import printable
from evenlag.model.backends.cp_sat import round_up
from evenlag.model.backends.outcome import Limits, Outcome, Report, Stopped
from evenlag.model.formulation import Mip

NODES_PER_WORK = 2000  # branch-and-bound nodes per second of CP-SAT's deterministic time
LARGEST = 1e7  # limit on load coefficients and pair costs: CBC and HiGHS 1.13 return wrong results from about 1e8
DIGITS = 1e15  # limit on the highest objective: above it doubles do not distinguish messages, so results are discarded
TOLERANCE = 1e-6  # the solvers' integrality tolerance; a bound may be wrong by this share of the highest objective
_NUMBER = r":?\s+(-?[\d.]+(?:e[+-]?\d+)?)"
_PROVEN = re.compile(r"^Objective value" + _NUMBER, re.MULTILINE)
_BOUND = re.compile(r"^(?:Lower bound|Continuous objective value is)" + _NUMBER, re.MULTILINE)
_NODE_LIMIT = re.compile(r"^Result - Stopped on node limit", re.MULTILINE)
_HIGHS_STOPPED: dict[highspy.HighsModelStatus, Stopped] = {
    highspy.HighsModelStatus.kOptimal: "proof",
    highspy.HighsModelStatus.kTimeLimit: "time",
    highspy.HighsModelStatus.kSolutionLimit: "work",  # also reported for the node limit
}


def build(mip: Mip, messages: float = 1.0) -> pulp.LpProblem:
    """Build a PuLP model with load levels and objective in units of `messages` messages."""
    problem = pulp.LpProblem("evenlag", pulp.LpMinimize)
    unit, step = float(mip.unit) / messages, float(mip.step) / messages
    measured = dict.fromkeys(mip.levels, unit)  # unit of each continuous variable
    measured |= {i: min(LARGEST / largest, 1.0) for i, largest in _largest_costs(mip).items()}
    columns = []
    for i, (lower, upper, name) in enumerate(zip(mip.lower, mip.upper, mip.names, strict=True)):
        kind = pulp.LpContinuous if i in measured else pulp.LpInteger
        columns.append(pulp.LpVariable(name, lower, upper * measured.get(i, 1), kind))
    problem += pulp.LpAffineExpression({columns[i]: cost * step / measured.get(i, 1) for i, cost in mip.costs.items()})
    for number, (indices, coefficients, lo, hi) in enumerate(mip.rows):
        row = indices.tolist()
        scale = measured.get(row[-1], 1) if row else 1
        terms = {
            columns[i]: float(c * (1 if i in measured else scale))
            for i, c in zip(row, coefficients.tolist(), strict=True)
        }
        expression = pulp.LpAffineExpression(terms)
        if lo is not None and lo == hi:
            problem += expression == float(lo * scale), f"row_{number}"
            continue
        if lo is not None:
            problem += expression >= float(lo * scale), f"row_{number}_lo"
        if hi is not None:
            problem += expression <= float(hi * scale), f"row_{number}_hi"
    return problem


def _largest_costs(mip: Mip) -> dict[int, int]:
    """Return, by column, the largest number in the row of each pair cost, including its budget."""
    rows = {int(row[0][-1]): row[1] for row in mip.rows if len(row[0]) and int(row[0][-1]) in mip.pairs}
    return {i: max(mip.upper[i], *(abs(int(cost)) for cost in rows[i])) for i in mip.pairs}


def solve_cbc(mip: Mip, hint: NDArray[Any] | None, limits: Limits, _: Report) -> Outcome:
    """Solve the program with the CBC that PuLP ships.

    The bound and the proven objective are read from CBC's log, because PuLP's solution file has only 8 digits.
    """
    started = time.monotonic()
    scale = _scale(mip)
    problem = build(mip, scale)
    options = [f"maxNodes {int(limits.work * NODES_PER_WORK)}"] if limits.work is not None else []
    options.append(f"randomCbcSeed {limits.seed + 1}")
    if hint is not None:
        _set_values(problem, mip, hint)
    called, seconds = time.monotonic(), limits.solver_seconds(started)
    with tempfile.TemporaryDirectory(prefix="evenlag-cbc-") as folder:
        log = Path(folder) / "cbc.log"
        solver = pulp.PULP_CBC_CMD(
            msg=False,
            timeLimit=seconds,
            gapRel=0,
            threads=limits.threads if limits.work is None else None,
            warmStart=hint is not None,
            options=options,
            logPath=str(log),
            keepFiles=False,
        )
        solver.tmpDir = folder
        try:
            problem.solve(solver)
        except pulp.PulpSolverError:
            if time.monotonic() - called < seconds:
                raise
            # If the time runs out during presolve, about one CBC run in fifty ends by SIGSEGV.
            return Outcome(stopped="time", failure="CBC crashed when its time was up")
        text = log.read_text(errors="replace") if log.exists() else ""
    if problem.sol_status == pulp.LpSolutionInfeasible:
        return Outcome(stopped="failed", failure="CBC finds the model infeasible", infeasible=_unscaled(mip, scale))
    if problem.status == pulp.LpStatusUndefined:
        return Outcome(stopped="failed", failure="CBC ended without a result")
    proven = problem.sol_status == pulp.LpSolutionOptimal
    reported = (_PROVEN if proven else _BOUND).findall(text)
    values = None
    if problem.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        variables = problem.variablesDict()
        values = _whole([variables[name].value() if name in variables else 0 for name in mip.names[: mip.booleans]])
    # Only a reported node limit counts as work: in presolve, the clock ends CBC without a message.
    stopped: Stopped = "proof" if proven else "work" if _NODE_LIMIT.search(text) else "time"
    return _outcome(mip, values, _at_least(reported[-1]) * scale if reported else None, stopped)


def solve_highs(mip: Mip, hint: NDArray[Any] | None, limits: Limits, report: Report) -> Outcome:
    """Solve the program with HiGHS, with gaps of 0; pass every improving solution to `report`.

    Tolerances keep their defaults: with mip_feasibility_tolerance 1e-9, HiGHS 1.13 reports wrong optima as proven.
    """
    started = time.monotonic()
    scale = _scale(mip)
    problem = build(mip, scale)
    # If the caller used HiGHS before the fork, its scheduler refers to threads that this process does not have.
    highspy.Highs.resetGlobalScheduler(False)
    options: dict[str, Any] = {"random_seed": limits.seed}
    if limits.work is not None:
        options["mip_max_nodes"] = int(limits.work * NODES_PER_WORK)
    if hint is not None:
        _set_values(problem, mip, hint)
    places: list[int] = []  # columns of the booleans in HiGHS, known once PuLP has built its model

    def improved(_: Any, __: str, event: Any, ___: Any, ____: Any) -> None:
        if not places:
            variables = problem.variablesDict()
            places.extend(variables[name].index for name in mip.names[: mip.booleans])
        report(_whole(np.asarray(event.mip_solution)[places].tolist()))

    solver = pulp.HiGHS(
        msg=False,
        timeLimit=limits.solver_seconds(started),
        gapRel=0,
        gapAbs=0,
        threads=1 if limits.work is not None else limits.threads,
        warmStart=hint is not None,
        callbackTuple=(improved, None),
        callbacksToActivate=[highspy.cb.HighsCallbackType.kCallbackMipImprovingSolution],
        **options,
    )
    with contextlib.suppress(KeyError):  # PuLP 3.3 lacks the node limit's status; the status is read below instead
        problem.solve(solver)
    highs = problem.solverModel
    info, status = highs.getInfo(), highs.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return Outcome(stopped="failed", failure="HiGHS finds the model infeasible", infeasible=_unscaled(mip, scale))
    if status not in _HIGHS_STOPPED:
        return Outcome(stopped="failed", failure=f"HiGHS ended with status {highs.modelStatusToString(status)}")
    values = None
    if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        found, variables = highs.getSolution().col_value, problem.variablesDict()
        values = _whole([found[variables[name].index] for name in mip.names[: mip.booleans]])
    return _outcome(mip, values, info.mip_dual_bound * scale, _HIGHS_STOPPED[status])


def write(mip: Mip, path: Path, form: str | None = None) -> None:
    """Write the program to `path` as "lp" or "mps" (default: by the suffix), with a legend of its names in comments."""
    problem = build(mip)
    lp = (form or path.suffix.lstrip(".")) == "lp"
    partitions, members = mip.problem.partitions, mip.problem.members
    mark = "\\" if lp else "*"
    legend = [f"evenlag: the assignment of group {mip.problem.group!r} as a mixed-integer program"]
    legend += [
        f"x_{p}_{m}: {partitions[p][0]}-{partitions[p][1]} goes to {members[m]}"
        for p, m in zip(mip.x_partition.tolist(), mip.x_member.tolist(), strict=True)
    ]
    (problem.writeLP if lp else problem.writeMPS)(str(path))
    comments = "".join(f"{mark} {printable(text)}\n" for text in legend)
    path.write_text(comments + path.read_text(encoding="utf-8"), encoding="utf-8")


def _set_values(problem: pulp.LpProblem, mip: Mip, hint: NDArray[Any]) -> None:
    variables = problem.variablesDict()
    for name, value in zip(mip.names, hint.tolist(), strict=False):
        if name in variables:
            variables[name].setInitialValue(int(value))


def _scale(mip: Mip) -> float:
    """Return the unit, in messages, in which no coefficient of a load exceeds `LARGEST`."""
    largest = max(int(future.lags.max(initial=0)) for future in mip.problem.judged_by)
    return max(float(largest * _heaviest(mip)) / LARGEST, 1.0)


def _heaviest(mip: Mip) -> Fraction:
    """Return the load per weight, in messages, that one message adds to the member with the least weight."""
    factor = max((int(f) for f in mip.problem.load_factors), default=1)
    return factor * mip.problem.load_unit


def _unscaled(mip: Mip, scale: float) -> bool:
    """Return True if all numbers were written unscaled; only then is a report of infeasibility reliable."""
    small = scale == 1 and max(_largest_costs(mip).values(), default=0) <= LARGEST
    return small and _highest(mip) <= DIGITS


def _highest(mip: Mip) -> float:
    """Return an upper limit on any objective, in messages."""
    total = float(max(future.total_lag for future in mip.problem.judged_by) * max(_heaviest(mip), Fraction(1)))
    return total + sum(float(mip.costs.get(i, 0) * mip.upper[i] * mip.step) for i in mip.pairs)


def _at_least(printed: str) -> float:
    """Return a number no higher than any that rounds to the printed digits; CBC sometimes prints only six."""
    digits = Decimal(printed)
    return float(digits - Decimal((0, (1,), int(digits.as_tuple().exponent))))


def _whole(values: list[float | None]) -> NDArray[np.int64]:
    return np.array([0 if value is None else round(value) for value in values], dtype=np.int64)


def _outcome(mip: Mip, values: NDArray[np.int64] | None, bound: float | None, stopped: Stopped) -> Outcome:
    """Build the outcome; round the bound up to a multiple of the step after subtracting the floating-point error."""
    highest = _highest(mip)
    if bound is None or highest > DIGITS:
        return Outcome(values, None, stopped)
    margin = (1e-6 + TOLERANCE * highest) / float(mip.step)
    return Outcome(values, round_up(bound / float(mip.step), margin), stopped)
