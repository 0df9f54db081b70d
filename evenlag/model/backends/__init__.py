"""The MIP backends by name; to add one, write its `solve` in a file beside these and name it here."""

from collections.abc import Callable
from types import ModuleType

from evenlag.model.backends import cp_sat
from evenlag.model.backends.outcome import Backend, Limits, Outcome
from evenlag.model.formulation import boolean_count
from evenlag.model.problem import Problem


def _pulp_models() -> ModuleType:
    # PuLP and HiGHS take 0.2 s and 10 MB, and most calls need neither.
    from evenlag.model.backends import pulp_models

    return pulp_models


# Each loads its backend: in the process that asks for it, not in every one that is forked to run it.
BACKENDS: dict[str, Callable[[], Backend]] = {
    "cp-sat": lambda: cp_sat.solve,
    "cbc": lambda: _pulp_models().solve_cbc,
    "highs": lambda: _pulp_models().solve_highs,
}

AUTO_BACKEND = "cp-sat"  # where none is asked for by name

# Booleans beyond which a backend is not tried: CP-SAT's presolve would ignore the time limit, and for the others
# building the model alone would outlast it.
LARGEST: dict[str, int] = {"cp-sat": 20_000, "cbc": 100_000, "highs": 100_000}

# What a backend imports beside what all of evenlag does, by the names of the packages, which are those of their modules
# too: executors are asked for it where groups are solved by that backend.
PACKAGES_OF: dict[str, tuple[str, ...]] = {"cp-sat": (), "cbc": ("pulp", "highspy"), "highs": ("pulp", "highspy")}

__all__ = ["AUTO_BACKEND", "BACKENDS", "LARGEST", "PACKAGES_OF", "Backend", "Limits", "Outcome", "fits"]


def fits(problem: Problem, backend: str = AUTO_BACKEND) -> bool:
    """Whether a backend is tried: it would not build and presolve larger programs in time."""
    return boolean_count(problem) <= LARGEST[backend]
