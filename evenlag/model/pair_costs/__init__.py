"""Costs of pairs by name: costs, apart from loads, of a member holding a partition.

To add one, write its function in a module of this package and register it in `PAIR_COSTS`. It then has a price, a
budget and a place in the order of criteria under that name in every call that solves (`prices`, `budgets`, `first`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenlag.model.arrays import NOBODY, Index, Ints
from evenlag.model.pair_costs.racks import crossings
from evenlag.model.pair_costs.sizes import moved_size
from evenlag.model.problem import Problem

PAIR_COSTS: dict[str, Callable[[Problem, str], Ints | None]] = {
    "crossings": crossings,
    "moved_size": moved_size,
}
"""Functions of a problem and the replicas that members read; each returns shape (P, M), or None without its data."""

__all__ = ["PAIR_COSTS", "costs_of", "known_costs", "pair_costs", "total"]


def pair_costs(problem: Problem, name: str, fetch_from: str) -> Ints | None:
    """Return the cost of each partition on each member, integers >= 0 of shape (P, M).

    Return None if the problem has no data for it, or there is no cost of this name.
    """
    pairs = problem.pairs
    if (given := pairs.matrices.get(name, pairs.costs.get(name))) is not None:
        return given
    if name not in PAIR_COSTS:
        return None
    if pairs.units is None:
        return PAIR_COSTS[name](problem, fetch_from)
    of_partitions = PAIR_COSTS[name](pairs.units.whole, fetch_from)
    return None if of_partitions is None else pairs.units.summed(of_partitions)


def known_costs(problem: Problem, fetch_from: str) -> dict[str, Ints]:
    """Return all pair costs for which the problem has data, by name."""
    names = (*PAIR_COSTS, *problem.pairs.costs)
    found = {name: pair_costs(problem, name, fetch_from) for name in names}
    return {name: costs for name, costs in found.items() if costs is not None}


def total(costs: Ints, member_of: Index) -> int:
    """Return an assignment's cost: the exact sum over all partitions that have a member."""
    held = np.flatnonzero(member_of != NOBODY)
    return int(costs[held, member_of[held]].sum())


def costs_of(problem: Problem, member_of: Index, fetch_from: str) -> dict[str, int]:
    """Return an assignment's cost of each kind for which the problem has data."""
    return {name: total(costs, member_of) for name, costs in known_costs(problem, fetch_from).items()}
