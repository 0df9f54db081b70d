"""The MIP backends by name.

Each word of `BackendWord` is a module here, with hyphens as underscores, imported on request. It has

* `solve`, a `Backend`,
* `confirm`, a `Backend` whose second run decides how far a bound or a report of infeasibility counts. CBC and HiGHS
  compute in doubles and cannot confirm the last messages of a large lag, so CP-SAT without presolve confirms CP-SAT,
* `LARGEST`, the most booleans for which it is tried, and
* `PACKAGES`, the packages that it imports in addition to evenlag's own, the solver's first. Module and package names
  are the same. Spark executors are checked for them if groups are solved by that backend.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from evenlag.model.backends.outcome import Backend, Limits, Outcome
from evenlag.model.formulation import boolean_count
from evenlag.model.literals import BackendWord, listed
from evenlag.model.problem import Problem

AUTO_BACKEND = "cp-sat"  # used unless another is requested by name


def _of(backend: str, name: str) -> Any:
    return getattr(import_module(f"{__name__}.{backend.replace('-', '_')}"), name)


# The calling process imports a backend, not each process forked to run one.
BACKENDS: dict[str, Callable[[], Backend]] = {name: partial(_of, name, "solve") for name in listed(BackendWord)}
WITNESSES: dict[str, Callable[[], Backend]] = {name: partial(_of, name, "confirm") for name in BACKENDS}

__all__ = ["AUTO_BACKEND", "BACKENDS", "WITNESSES", "Backend", "Limits", "Outcome", "fits", "packages_of"]


def fits(problem: Problem, backend: str = AUTO_BACKEND) -> bool:
    """Return True if the problem is small enough for a backend to build and presolve its program in time."""
    return boolean_count(problem) <= int(_of(backend, "LARGEST"))


def packages_of(backend: str) -> tuple[str, ...]:
    """Return the packages that a backend imports in addition to evenlag's own, the solver's first."""
    packages: tuple[str, ...] = _of(backend, "PACKAGES")
    return packages
