"""Crossings: partitions, or their traffic, that a member reads from a rack other than its own."""

from __future__ import annotations

import numpy as np

from evenlag.model.arrays import Index, Ints
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
        readable = _readable(racks, fetch_from)
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
        for rack, readable in zip(mine, (_readable(held, fetch_from) for held in replicas), strict=True)
    ]


def unknown_leaders(problem: Problem) -> int:
    """Return the number of partitions with an unknown rack of the leader."""
    return sum(not (racks and racks[0]) for racks in problem.pairs.partition_racks or (None,) * len(problem.lags))


def _readable(racks: Racks | None, fetch_from: str) -> Racks:
    """Return the known racks from which a partition can be read."""
    return tuple(filter(None, racks[:1] if fetch_from == LEADER else racks)) if racks else ()
