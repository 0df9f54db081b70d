"""What a MIP backend is given and what it hands back."""

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
    """How long and how hard a backend may try.

    Attributes
    ----------
    seconds : float
        Wall clock for building, solving and reading the result.
    work : float or None
        Work limit of the deterministic profile, in seconds of CP-SAT's deterministic time; other backends take so many
        nodes for each. None: no limit.
    threads : int
    seed : int
    """

    seconds: float
    work: float | None = None
    threads: int = 1
    seed: int = 0

    def solver_seconds(self, started: float) -> float:
        """Return what a solver may take of the time left since `started` (monotonic), so that it can hand over.

        Solvers look at the clock now and then only; a tenth is kept back for that and for reading the result.
        """
        left = self.seconds - (time.monotonic() - started)
        return max(0.9 * left - 0.02, 0.005)


@dataclass(frozen=True)
class Outcome:
    """What a backend found.

    Attributes
    ----------
    values : array (X,) or None
        The booleans of its best solution.
    bound : int or None
        Proven lower bound, in steps of the program's objective.
    stopped : {"proof", "time", "work", "failed"}
        What ended it. "work" only where the solver itself says that its work limit did: such an outcome is the same
        in every run. "time": the wall clock, be it the solver's or that of the process around it. "failed": anything
        else, with the reason in `failure`.
    failure : str or None
        What went wrong: the backend died, hung, refused the model, or ended in a way that it should not.
    infeasible : bool
        The backend says that no plan keeps the rules.
    """

    values: NDArray[Any] | None = None
    bound: int | None = None
    stopped: Stopped = "time"
    failure: str | None = None
    infeasible: bool = False


Report = Callable[[NDArray[Any]], None]
Backend = Callable[[Mip, NDArray[Any] | None, Limits, Report], Outcome]
