"""Input and output of MIP backends."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

from evenlag.model.formulation import Mip

Ended = Literal["proof", "time", "work"]
Stopped = Literal[Ended, "failed"]


@dataclass(frozen=True)
class Limits:
    """Limits on a backend's time and effort.

    Attributes
    ----------
    seconds : float
        Wall-clock time for building, solving and reading the result.
    work : float or None
        Work limit of the deterministic mode, in seconds of CP-SAT's deterministic time; other backends convert it to
        nodes. None: no limit.
    """

    seconds: float
    work: float | None = None
    threads: int = 1
    seed: int = 0

    def solver_seconds(self, started: float) -> float:
        """Return the time that a solver may take, given the time used since `started` (monotonic).

        Solvers check the clock only now and then, so a tenth is reserved for that and for reading the result.
        """
        left = self.seconds - (time.monotonic() - started)
        return max(0.9 * left - 0.02, 0.005)


@dataclass(frozen=True)
class Outcome:
    """A backend's result.

    Attributes
    ----------
    values : array (X,) or None
        Booleans of its best solution.
    bound : int or None
        Proven lower bound, in steps of the program's objective.
    stopped : {"proof", "time", "work", "failed"}
        Reason for the end. "work" only if the solver itself reports its work limit: such an outcome is the same in
        every run. "time": the wall clock, of the solver or of the process around it. "failed": anything else, with the
        reason in `failure`.
    failure : str or None
        Error message: the backend died, hung, refused the model, or ended in an unexpected way.
    infeasible : bool
        True if the backend reports that no plan keeps the rules.
    """

    values: NDArray[Any] | None = None
    bound: int | None = None
    stopped: Stopped = "time"
    failure: str | None = None
    infeasible: bool = False


Report = Callable[[NDArray[Any]], None]
Backend = Callable[[Mip, NDArray[Any] | None, Limits, Report], Outcome]
