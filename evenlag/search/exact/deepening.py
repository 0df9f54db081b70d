"""Asking for plans up to a rising objective, as in iterative deepening (Korf 1985)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Problem
from evenlag.search.exact.join_dp import Found
from evenlag.search.exact.proof import Proof
from evenlag.search.too_many import TooManyError

# The objective asked for: where it begins, as a share of the way from the bound to the best one known, and its growth;
# where a step is too much to list, it is made again with the root of that, down to the least.
FIRST = 1e-4
GROWTH = 4.0
LEAST_GROWTH = 1.2


def deepened(
    problem: Problem,
    bound: int,
    value: int,
    look: Callable[[int], Found | None],
    stop: Callable[[], bool],
    start: float = FIRST,
) -> Proof:
    """Ask for plans with an objective of at most a rising number, until there is one or none is below `value`.

    Parameters
    ----------
    problem : Problem
    bound, value : int
        What is proven of the objective, and the best one known.
    look : callable
        Returns the best plan up to an objective, or None; raises TooManyError.
    stop : callable
        Asked where there was too much to list.
    start : float
        Where to begin, as a share of the way from the bound to the best one known.
    """
    first, excess, growth = bound, (value - 1 - bound) * start, GROWTH
    while bound < value:
        asked = max(bound, min(first + int(excess), value - 1))
        try:
            found = look(asked)
        except TooManyError:
            excess, growth = excess / growth, growth**0.5
            if stop() or growth < LEAST_GROWTH or asked == bound:
                return Proof(None, bound, "work")
            excess *= growth
            continue
        if found is not None:
            return Proof(plan_of(problem, found), found[0], "proof")
        bound = asked + 1
        excess *= growth
    return Proof(None, bound, "proof")


def plan_of(problem: Problem, found: Found) -> Plan:
    """Return what has been found as a plan."""
    chosen = np.full(len(problem.lags), NOBODY, dtype=np.int32)
    chosen[problem.assignable] = found[1]
    return Plan(problem, chosen)
