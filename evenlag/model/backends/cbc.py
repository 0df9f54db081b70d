"""Backend that uses CBC with PuLP."""

from __future__ import annotations

import re
import tempfile
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pulp
from numpy.typing import NDArray

from evenlag.model.backends import cp_sat
from evenlag.model.backends.outcome import Limits, Outcome, Report, Stopped
from evenlag.model.backends.pulp_models import NODES_PER_WORK, build, outcome_of, scale_of, set_values, unscaled, whole
from evenlag.model.formulation import Mip

LARGEST = 100_000  # beyond it, building the model takes all the time
confirm = cp_sat.solve
PACKAGES = ("pulp", "highspy")
_NUMBER = r":?\s+(-?[\d.]+(?:e[+-]?\d+)?)"
_PROVEN = re.compile(r"^Objective value" + _NUMBER, re.MULTILINE)
_BOUND = re.compile(r"^(?:Lower bound|Continuous objective value is)" + _NUMBER, re.MULTILINE)
_NODE_LIMIT = re.compile(r"^Result - Stopped on node limit", re.MULTILINE)


def solve(mip: Mip, hint: NDArray[Any] | None, limits: Limits, _: Report) -> Outcome:
    """Solve the program with the CBC that PuLP ships.

    The bound and the proven objective are read from CBC's log, because PuLP's solution file has only 8 digits.
    """
    started = time.monotonic()
    scale = scale_of(mip)
    problem = build(mip, scale)
    options = [f"maxNodes {int(limits.work * NODES_PER_WORK)}"] if limits.work is not None else []
    options.append(f"randomCbcSeed {limits.seed + 1}")
    if hint is not None:
        set_values(problem, mip, hint)
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
        return Outcome(stopped="failed", failure="CBC finds the model infeasible", infeasible=unscaled(mip, scale))
    if problem.status == pulp.LpStatusUndefined:
        return Outcome(stopped="failed", failure="CBC ended without a result")
    proven = problem.sol_status == pulp.LpSolutionOptimal
    reported = (_PROVEN if proven else _BOUND).findall(text)
    values = None
    if problem.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        variables = problem.variablesDict()
        values = whole([variables[name].value() if name in variables else 0 for name in mip.names[: mip.booleans]])
    # Only a reported node limit counts as work: in presolve, the clock ends CBC without a message.
    stopped: Stopped = "proof" if proven else "work" if _NODE_LIMIT.search(text) else "time"
    return outcome_of(mip, values, _at_least(reported[-1]) * scale if reported else None, stopped)


def _at_least(printed: str) -> float:
    """Return a number no higher than any that rounds to the printed digits; CBC sometimes prints only six."""
    digits = Decimal(printed)
    return float(digits - Decimal((0, (1,), int(digits.as_tuple().exponent))))
