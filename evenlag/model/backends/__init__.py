"""The MIP backends by name. To add one, write its `solve` in a module of this package and register it here."""

from collections.abc import Callable
from types import ModuleType

from evenlag.model.backends import cp_sat
from evenlag.model.backends.outcome import Backend, Limits, Outcome
from evenlag.model.formulation import boolean_count
from evenlag.model.problem import Problem


def _pulp_models() -> ModuleType:
    # PuLP and HiGHS take 0.2 s and 10 MB to import, and most calls use neither.
    from evenlag.model.backends import pulp_models

    return pulp_models


# Backends are imported on request, by the calling process rather than by each process forked to run one.
BACKENDS: dict[str, Callable[[], Backend]] = {
    "cp-sat": lambda: cp_sat.solve,
    "cbc": lambda: _pulp_models().solve_cbc,
    "highs": lambda: _pulp_models().solve_highs,
}

# A backend's bound or proof of infeasibility counts only as far as a second run confirms it. CBC and HiGHS
# compute in doubles and cannot confirm the last messages of a large lag, so CP-SAT without presolve confirms CP-SAT.
WITNESSES: dict[str, Callable[[], Backend]] = {
    "cp-sat": lambda: cp_sat.solve_without_presolve,
    "cbc": lambda: cp_sat.solve,
    "highs": lambda: cp_sat.solve,
}

AUTO_BACKEND = "cp-sat"  # used unless another is requested by name

# Largest number of booleans for which a backend is tried. Beyond it, CP-SAT's presolve ignores the time limit, and the
# other backends would spend it on building the model.
LARGEST: dict[str, int] = {"cp-sat": 20_000, "cbc": 100_000, "highs": 100_000}

# Packages that a backend imports in addition to evenlag's own; module and package names are the same. Spark executors
# are checked for them if groups are solved by that backend.
PACKAGES_OF: dict[str, tuple[str, ...]] = {"cp-sat": (), "cbc": ("pulp", "highspy"), "highs": ("pulp", "highspy")}

__all__ = ["AUTO_BACKEND", "BACKENDS", "LARGEST", "PACKAGES_OF", "WITNESSES", "Backend", "Limits", "Outcome", "fits"]


def fits(problem: Problem, backend: str = AUTO_BACKEND) -> bool:
    """Return True if the problem is small enough for a backend to build and presolve its program in time."""
    return boolean_count(problem) <= LARGEST[backend]
