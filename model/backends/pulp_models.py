"""PuLP with CBC and HiGHS, and the program as LP or MPS text."""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pulp
from numpy.typing import NDArray

from evenlag.model.backends.cp_sat import round_up
from evenlag.model.backends.outcome import Limits, Outcome, Report
from evenlag.model.formulation import Mip

NODES_PER_WORK = 2000


def build(mip: Mip) -> pulp.LpProblem:
    """Write the program in messages: `high`, `low` and the objective are scaled from units to messages."""
    problem = pulp.LpProblem("evenlag", pulp.LpMinimize)
    unit, step = float(mip.unit), float(mip.step)
    loads = {mip.high, mip.low}
    columns = []
    for i, (lower, upper, name) in enumerate(zip(mip.lower, mip.upper, mip.names, strict=True)):
        scale, kind = (unit, pulp.LpContinuous) if i in loads else (1, pulp.LpInteger)
        columns.append(pulp.LpVariable(name, lower, upper * scale, kind))
    problem += pulp.LpAffineExpression(
        {columns[i]: cost * step / (unit if i in loads else 1) for i, cost in mip.costs.items()}
    )
    for number, (indices, coefficients, lo, hi) in enumerate(mip.rows):
        row = indices.tolist()
        scale = unit if row and row[-1] in loads else 1
        terms = {
            columns[i]: float(c * (1 if i in loads else scale)) for i, c in zip(row, coefficients.tolist(), strict=True)
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


def solve_cbc(mip: Mip, hint: NDArray[Any] | None, limits: Limits, _: Report) -> Outcome:
    """Solve the program by the CBC that comes with PuLP; the bound is read from its log."""
    started = time.monotonic()
    problem = build(mip)
    options = [f"maxNodes {int(limits.work * NODES_PER_WORK)}"] if limits.work is not None else []
    options.append(f"randomCbcSeed {limits.seed + 1}")
    if hint is not None:
        _set_values(problem, mip, hint)
    with tempfile.TemporaryDirectory(prefix="evenlag-cbc-") as folder:
        log = Path(folder) / "cbc.log"
        solver = pulp.PULP_CBC_CMD(
            msg=False,
            timeLimit=max(limits.seconds - (time.monotonic() - started), 0.01),
            gapRel=0,
            threads=limits.threads if limits.work is None else None,
            warmStart=hint is not None,
            options=options,
            logPath=str(log),
            keepFiles=False,
        )
        solver.tmpDir = folder
        problem.solve(solver)
        text = log.read_text(errors="replace") if log.exists() else ""
    proven = problem.sol_status == pulp.LpSolutionOptimal
    if proven:
        bound = pulp.value(problem.objective)
    else:
        said = re.findall(r"^(?:Lower bound|Continuous objective value is):?\s+(-?[\d.e+]+)", text, re.MULTILINE)
        bound = float(said[-1]) if said else None
    return _outcome(problem, mip, bound, proven, limits)


def solve_highs(mip: Mip, hint: NDArray[Any] | None, limits: Limits, _: Report) -> Outcome:
    """Solve the program by HiGHS, its gaps tightened to 0.

    Its tolerances stay as they are: with mip_feasibility_tolerance 1e-9 HiGHS 1.13 calls wrong optima proven.
    """
    started = time.monotonic()
    problem = build(mip)
    options: dict[str, Any] = {"random_seed": limits.seed}
    if limits.work is not None:
        options["mip_max_nodes"] = int(limits.work * NODES_PER_WORK)
    if hint is not None:
        _set_values(problem, mip, hint)
    solver = pulp.HiGHS(
        msg=False,
        timeLimit=max(limits.seconds - (time.monotonic() - started), 0.01),
        gapRel=0,
        gapAbs=0,
        threads=1 if limits.work is not None else limits.threads,
        warmStart=hint is not None,
        **options,
    )
    problem.solve(solver)
    bound = problem.solverModel.getInfo().mip_dual_bound
    return _outcome(problem, mip, bound, problem.sol_status == pulp.LpSolutionOptimal, limits)


def write(mip: Mip, path: Path, form: str | None = None) -> None:
    """Write the program to `path` as "lp" or "mps" (default: by its suffix), its names explained in comments."""
    problem = build(mip)
    lp = (form or path.suffix.lstrip(".")) == "lp"
    partitions, members = mip.problem.partitions, mip.problem.members
    mark = "\\" if lp else "*"
    legend = [f"{mark} evenlag: the assignment of group {mip.problem.group!r} as a mixed-integer program"]
    legend += [
        f"{mark} x_{p}_{m}: {partitions[p][0]}-{partitions[p][1]} goes to {members[m]}"
        for p, m in zip(mip.x_partition.tolist(), mip.x_member.tolist(), strict=True)
    ]
    (problem.writeLP if lp else problem.writeMPS)(str(path))
    path.write_text("\n".join(legend) + "\n" + path.read_text())


def _set_values(problem: pulp.LpProblem, mip: Mip, hint: NDArray[Any]) -> None:
    variables = problem.variablesDict()
    for name, value in zip(mip.names, hint.tolist(), strict=False):
        if name in variables:
            variables[name].setInitialValue(int(value))


def _outcome(problem: pulp.LpProblem, mip: Mip, bound: float | None, proven: bool, limits: Limits) -> Outcome:
    if problem.sol_status == pulp.LpSolutionInfeasible:
        return Outcome(stopped="failed", failure="the backend finds the model infeasible")
    values = None
    if problem.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        variables = problem.variablesDict()
        found = [variables[name].value() if name in variables else 0 for name in mip.names[: mip.booleans]]
        values = np.array([0 if value is None else round(value) for value in found], dtype=np.int64)
    stopped = "proof" if proven else "time" if limits.work is None else "work"
    return Outcome(values, None if bound is None else _whole_bound(mip, bound), stopped)


def _whole_bound(mip: Mip, bound: float) -> int | None:
    """Round a bound up to a multiple of the step, less what floating point may have added."""
    total = float(mip.problem.total_lag) * max(1.0, float(mip.problem.load_unit))
    margin = (1e-6 + 1e-9 * total) / float(mip.step)
    return round_up(bound / float(mip.step), margin)
