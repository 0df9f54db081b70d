"""An integer program, written directly into CP-SAT's own format.

OR-Tools' `cp_model` imports pandas, which takes longer than most plans. With variables addressed by number, a model
needs little of `cp_model`, and the compiled module below it has all of that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ortools.sat.python import cp_model_helper as helper

from evenlag.model.interrupt import LOOK, interrupted, watching

Status = Literal["optimal", "feasible", "infeasible", "invalid", "unknown"]
LEAST, GREATEST = -(2**63), 2**63 - 1  # no limit

_STATUSES: dict[int, Status] = {
    int(helper.CpSolverStatus.OPTIMAL): "optimal",
    int(helper.CpSolverStatus.FEASIBLE): "feasible",
    int(helper.CpSolverStatus.INFEASIBLE): "infeasible",
    int(helper.CpSolverStatus.MODEL_INVALID): "invalid",
    int(helper.CpSolverStatus.UNKNOWN): "unknown",
}


@dataclass(frozen=True)
class Answer:
    """CP-SAT's answer to a program.

    Attributes
    ----------
    status : {"optimal", "feasible", "infeasible", "invalid", "unknown"}
    values : list of int
        Value of each variable by number; empty if no solution was found.
    bound : float
        Proven lower bound on the objective.
    work : float
        Deterministic time used.
    """

    status: Status
    values: list[int]
    bound: float
    work: float

    @property
    def found(self) -> bool:
        """Return True if there is a solution."""
        return self.status in ("optimal", "feasible")


class IntegerProgram:
    """A program under construction; variables are addressed by the numbers that `variable` returns, from 0."""

    def __init__(self) -> None:
        self._model: Any = helper.CpModelProto()

    def variable(self, low: int = 0, high: int = 1) -> int:
        """Add a variable with values from `low` to `high` and return its number."""
        self._model.variables.add().domain.extend([low, high])
        return len(self._model.variables) - 1

    def require(
        self, variables: Sequence[int], coefficients: Sequence[int], low: int | None = None, high: int | None = None
    ) -> None:
        """Require `low` <= Σ coefficient · variable <= `high`; None means no limit."""
        linear = self._model.constraints.add().linear
        _write(linear, variables, coefficients)
        linear.domain.extend([LEAST if low is None else low, GREATEST if high is None else high])

    def require_one(self, booleans: Sequence[int]) -> None:
        """Require exactly one of these booleans to be 1."""
        self._model.constraints.add().exactly_one.literals.extend(booleans)

    def minimize(self, variables: Sequence[int], coefficients: Sequence[int]) -> None:
        """Set the objective: minimize Σ coefficient · variable."""
        self._model.objective.scaling_factor = 1.0
        _write(self._model.objective, variables, coefficients)

    def hint(self, values: Sequence[int]) -> None:
        """Suggest values for the first variables."""
        self._model.solution_hint.vars.extend(range(len(values)))
        self._model.solution_hint.values.extend(values)

    def solve(
        self,
        *,
        threads: int = 1,
        seed: int = 0,
        seconds: float | None = None,
        work: float | None = None,
        improved: Callable[[Callable[[int], int]], None] | None = None,
        presolve: bool = True,
    ) -> Answer:
        """Run CP-SAT on the program.

        Parameters
        ----------
        threads : int
            With one thread, runs are reproducible.
        seed : int
        seconds : float, optional
            Limit of wall-clock time.
        work : float, optional
            Limit of CP-SAT's deterministic time.
        improved : function, optional
            Called at every better solution with a function that returns the value of a variable by number.
        presolve : bool
            True to simplify the program first, but never by inclusions among constraints: in CP-SAT 9.15 that step has
            led to a wrong optimum (google/or-tools#5293).
        """
        parameters: Any = helper.SatParameters()
        parameters.cp_model_presolve, parameters.presolve_inclusion_work_limit = presolve, 0
        parameters.num_workers, parameters.random_seed = threads, seed
        parameters.catch_sigint_signal = False  # signals are left to Python
        if seconds is not None:
            parameters.max_time_in_seconds = seconds
        if work is not None:
            parameters.max_deterministic_time = work
        solver: Any = helper.SolveWrapper()
        solver.set_parameters(parameters)
        callback = None if improved is None else _Improved(improved)
        if callback is not None:
            solver.add_solution_callback(callback)
        response = _interruptibly(solver, self._model) if watching() else solver.solve(self._model)
        if callback is not None:
            solver.clear_solution_callback(callback)
        status = _STATUSES[int(response.status)]
        return Answer(status, list(response.solution), response.best_objective_bound, response.deterministic_time)


def _write(linear: Any, variables: Sequence[int], coefficients: Sequence[int]) -> None:
    """Write the terms of a sum in `cp_model`'s order and without zeros, so that runs match it exactly."""
    terms = sorted(pair for pair in zip(variables, coefficients, strict=True) if pair[1])
    linear.vars.extend([variable for variable, _ in terms])
    linear.coeffs.extend([coefficient for _, coefficient in terms])


def _interruptibly(solver: Any, model: Any) -> Any:
    """Solve in a thread, because Python handles interrupts only while its main thread is outside CP-SAT."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(solver.solve(model)), daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(LOOK)
        if interrupted():
            solver.stop_search()
    return found[0]


class _Improved(helper.SolutionCallback):
    """Callback that passes on every better solution."""

    def __init__(self, improved: Callable[[Callable[[int], int]], None]) -> None:
        super().__init__()
        self._improved = improved

    def OnSolutionCallback(self) -> None:  # noqa: N802 - the name required by CP-SAT
        self._improved(self.SolutionIntegerValue)
