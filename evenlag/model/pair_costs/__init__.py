"""Costs of pairs by name: what it costs that a member holds a partition, beside loads.

To add one, write its function in a file beside these and name it in `PAIR_COSTS`: it then has a price, a budget and
a place in an order of criteria by that name wherever groups are solved (`prices`, `budgets`, `first`).
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
"""The function of each: of a problem and of where its members fetch from, shape (P, M); None without its data."""

__all__ = ["PAIR_COSTS", "costs_of", "known_costs", "pair_costs", "total"]


def pair_costs(problem: Problem, name: str, fetch_from: str) -> Ints | None:
    """Return what each partition costs on each member, whole numbers >= 0 of shape (P, M).

    None where the problem says nothing of it, or there is no cost of this name.
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
    """Return all pair costs that the problem has the data of, by name."""
    names = (*PAIR_COSTS, *problem.pairs.costs)
    found = {name: pair_costs(problem, name, fetch_from) for name in names}
    return {name: costs for name, costs in found.items() if costs is not None}


def total(costs: Ints, member_of: Index) -> int:
    """Return what an assignment costs: the sum over the partitions that somebody holds; exact."""
    held = np.flatnonzero(member_of != NOBODY)
    return int(costs[held, member_of[held]].sum())


def costs_of(problem: Problem, member_of: Index, fetch_from: str) -> dict[str, int]:
    """Return what an assignment comes to in each pair cost that the problem has the data of."""
    return {name: total(costs, member_of) for name, costs in known_costs(problem, fetch_from).items()}
