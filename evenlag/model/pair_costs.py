"""Costs of pairs by name: costs, apart from loads, of a member holding a partition.

Each word of `CostWord` is a function here. It has a price, a budget and a place in the order of criteria under that
name in every call that solves (`prices`, `budgets`, `first`).

Crossings: partitions, or their traffic, that a member reads from a rack other than its own.
Moved size: the state that moves with partitions that leave their owner.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenlag.model.arrays import Index
from evenlag.model.literals import CostWord, listed
from evenlag.model.pair_table import PairTable
from evenlag.model.problem import Problem


def crossings(problem: Problem) -> PairTable | None:
    """Return for each pair the partition's traffic (1 if not given) if the member reads across racks, else 0.

    A member reads across racks if its rack and the partition's racks are known and its rack is not among them. The
    partition's racks are the leader's if members fetch from it, otherwise all known ones of its replicas (KIP-392).
    Return None if no racks of members, or none of partitions, are known.
    """
    pairs = problem.pairs
    if not (pairs.racks and pairs.partition_racks):
        return None
    number = {rack: r for r, rack in enumerate(sorted({rack for rack in pairs.racks if rack is not None}))}
    away = np.zeros((len(problem.lags), len(number) + 1), dtype=np.int64)  # last column: members of unknown rack
    for p in range(len(problem.lags)):
        if readable := pairs.readable(p):
            away[p, :-1] = 1
            away[p, [number[rack] for rack in readable if rack in number]] = 0
    of_rack = np.array([len(number) if rack is None else number[rack] for rack in pairs.racks], dtype=np.int64)
    return PairTable.by_class(away if pairs.traffic is None else away * pairs.traffic[:, None], of_rack)


def crosses(problem: Problem, member_of: Index) -> list[bool | None]:
    """Return for each partition if its member reads it across racks; None if a rack or the member is unknown."""
    pairs = problem.pairs
    racks = (*(pairs.racks or (None,) * len(problem.members)), None)  # NOBODY is -1, the last place
    mine = [racks[m] for m in member_of.tolist()]
    return [
        None if rack is None or not (readable := pairs.readable(p)) else rack not in readable
        for p, rack in enumerate(mine)
    ]


def unknown_leaders(problem: Problem) -> int:
    """Return the number of partitions with an unknown rack of the leader."""
    return sum(not (racks and racks[0]) for racks in problem.pairs.partition_racks or (None,) * len(problem.lags))


def moved_size(problem: Problem) -> PairTable | None:
    """Return for each pair the partition's size if it has an owner other than the member; None without sizes."""
    sizes = problem.pairs.move_sizes
    return None if sizes is None else PairTable.of_moves(problem.owner, len(problem.members), sizes)


def moves(problem: Problem) -> PairTable:
    """Return 1 for each pair whose partition has an owner other than the member, else 0."""
    return PairTable.of_moves(problem.owner, len(problem.members))


# ---- all of them -----------------------------------------------------------------------------------------------------

PAIR_COSTS: dict[str, Callable[[Problem], PairTable | None]] = {name: globals()[name] for name in listed(CostWord)}
"""Functions of a problem; each returns a table, or None without its data."""


def pair_costs(problem: Problem, name: str) -> PairTable | None:
    """Return the cost of each partition on each member.

    Return None if the problem has no data for it, or there is no cost of this name.
    """
    pairs = problem.pairs
    if (given := pairs.matrices.get(name, pairs.costs.get(name))) is not None:
        return given
    if name not in PAIR_COSTS:
        return None
    if pairs.units is None:
        return PAIR_COSTS[name](problem)
    of_partitions = PAIR_COSTS[name](pairs.units.whole)
    return None if of_partitions is None else pairs.units.summed(of_partitions)


def known_costs(problem: Problem) -> dict[str, PairTable]:
    """Return all pair costs for which the problem has data, by name."""
    names = (*PAIR_COSTS, *problem.pairs.costs)
    found = {name: pair_costs(problem, name) for name in names}
    return {name: costs for name, costs in found.items() if costs is not None}


def costs_of(problem: Problem, member_of: Index) -> dict[str, int]:
    """Return an assignment's cost of each kind for which the problem has data."""
    return {name: costs.total(member_of) for name, costs in known_costs(problem).items()}
