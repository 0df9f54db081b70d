"""Costs of pairs by name: costs, apart from loads, of a member holding a partition.

To add one, write its function here and register it in `PAIR_COSTS`. It then has a price, a budget and a place in the
order of criteria under that name in every call that solves (`prices`, `budgets`, `first`).

Crossings: partitions, or their traffic, that a member reads from a rack other than its own.
Moved size: the state that moves with partitions that leave their owner.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenlag.model.arrays import NOBODY, Index, Ints, leaving
from evenlag.model.pair_data import Racks
from evenlag.model.problem import Problem

LEADER = "leader"


def crossings(problem: Problem, fetch_from: str) -> Ints | None:
    """Return for each pair the partition's traffic (1 if not given) if the member reads across racks, else 0.

    A member reads across racks if its rack and the partition's racks are known and its rack is not among them. The
    partition's racks are the leader's with `fetch_from` "leader", otherwise all known ones of its replicas (KIP-392).
    Return None if no racks of members, or none of partitions, are known.
    """
    pairs = problem.pairs
    if not (pairs.racks and pairs.partition_racks):
        return None
    number = {rack: r for r, rack in enumerate(sorted({rack for rack in pairs.racks if rack is not None}))}
    local = np.ones((len(problem.lags), len(number) + 1), dtype=bool)  # last column: members of unknown rack
    for p, racks in enumerate(pairs.partition_racks):
        readable = readable_racks(racks, fetch_from)
        if readable:
            local[p, :-1] = False
            local[p, [number[rack] for rack in readable if rack in number]] = True
    away = ~local[:, [len(number) if rack is None else number[rack] for rack in pairs.racks]]
    return away.astype(np.int64) if pairs.traffic is None else away * pairs.traffic[:, None]


def crosses(problem: Problem, member_of: Index, fetch_from: str) -> list[bool | None]:
    """Return for each partition if its member reads it across racks; None if a rack or the member is unknown."""
    pairs = problem.pairs
    racks = (*(pairs.racks or (None,) * len(problem.members)), None)  # NOBODY is -1, the last place
    replicas = pairs.partition_racks or (None,) * len(member_of)
    mine = [racks[m] for m in member_of.tolist()]
    return [
        None if rack is None or not readable else rack not in readable
        for rack, readable in zip(mine, (readable_racks(held, fetch_from) for held in replicas), strict=True)
    ]


def unknown_leaders(problem: Problem) -> int:
    """Return the number of partitions with an unknown rack of the leader."""
    return sum(not (racks and racks[0]) for racks in problem.pairs.partition_racks or (None,) * len(problem.lags))


def readable_racks(racks: Racks | None, fetch_from: str) -> Racks:
    """Return the known racks from which a partition can be read."""
    return tuple(filter(None, racks[:1] if fetch_from == LEADER else racks)) if racks else ()


def moved_size(problem: Problem, _fetch_from: str) -> Ints | None:
    """Return for each pair the partition's size if it has an owner other than the member; None without sizes."""
    sizes = problem.pairs.move_sizes
    if sizes is None:
        return None
    costs: Ints = leaving(problem.owner, len(problem.members)) * sizes[:, None]
    return costs


# ---- all of them -----------------------------------------------------------------------------------------------------

PAIR_COSTS: dict[str, Callable[[Problem, str], Ints | None]] = {
    "crossings": crossings,
    "moved_size": moved_size,
}
"""Functions of a problem and the replicas that members read; each returns shape (P, M), or None without its data."""


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
