"""Backend that uses HiGHS with PuLP."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import highspy
import numpy as np
import pulp
from numpy.typing import NDArray

from evenlag.model.backends import cp_sat
from evenlag.model.backends.outcome import Limits, Outcome, Report, Stopped
from evenlag.model.backends.pulp_models import NODES_PER_WORK, build, outcome_of, scale_of, set_values, unscaled, whole
from evenlag.model.formulation import Mip

LARGEST = 100_000  # beyond it, building the model takes all the time
confirm = cp_sat.solve
PACKAGES = ("highspy", "pulp")
_HIGHS_STOPPED: dict[highspy.HighsModelStatus, Stopped] = {
    highspy.HighsModelStatus.kOptimal: "proof",
    highspy.HighsModelStatus.kTimeLimit: "time",
    highspy.HighsModelStatus.kSolutionLimit: "work",  # also reported for the node limit
}


def solve(mip: Mip, hint: NDArray[Any] | None, limits: Limits, report: Report) -> Outcome:
    """Solve the program with HiGHS, with gaps of 0; pass every improving solution to `report`.

    Tolerances keep their defaults: with mip_feasibility_tolerance 1e-9, HiGHS 1.13 reports wrong optima as proven.
    """
    started = time.monotonic()
    scale = scale_of(mip)
    problem = build(mip, scale)
    # If the caller used HiGHS before the fork, its scheduler refers to threads that this process does not have.
    highspy.Highs.resetGlobalScheduler(False)
    options: dict[str, Any] = {"random_seed": limits.seed}
    if limits.work is not None:
        options["mip_max_nodes"] = int(limits.work * NODES_PER_WORK)
    if hint is not None:
        set_values(problem, mip, hint)
    places: list[int] = []  # columns of the booleans in HiGHS, known once PuLP has built its model

    def improved(_: Any, __: str, event: Any, ___: Any, ____: Any) -> None:
        if not places:
            variables = problem.variablesDict()
            places.extend(variables[name].index for name in mip.names[: mip.booleans])
        report(whole(np.asarray(event.mip_solution)[places].tolist()))

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
        return Outcome(stopped="failed", failure="HiGHS finds the model infeasible", infeasible=unscaled(mip, scale))
    if status not in _HIGHS_STOPPED:
        return Outcome(stopped="failed", failure=f"HiGHS ended with status {highs.modelStatusToString(status)}")
    values = None
    if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        found, variables = highs.getSolution().col_value, problem.variablesDict()
        values = whole([found[variables[name].index] for name in mip.names[: mip.booleans]])
    return outcome_of(mip, values, info.mip_dual_bound * scale, _HIGHS_STOPPED[status])
