"""Longest processing time first for many groups at once: each partition goes to the lightest member with room for it.

Without limits on the room, this is Graham's 1969 rule for the makespan.
"""

from __future__ import annotations

import heapq
from itertools import pairwise

import numpy as np

from evenlag.model.arrays import NOBODY, Whole
from evenlag.model.group_columns import alike
from evenlag.search.columns.rules import CountRules

MOST_CELLS = 1 << 18  # of the tables in use at a time
FEW_GROUPS = 16  # so few are faster one by one
FULL = np.iinfo(np.int64).max  # load of a member without room
NO_LIMIT = 1 << 40  # room


def longest_first(rules: CountRules, chosen: Whole, member_of: Whole) -> Whole:
    """Return the plan with every partition of the chosen groups that has no member on the lightest one, shape (N,).

    Parameters
    ----------
    rules : CountRules
        Any; counts are not looked at.
    chosen : int64 array (K,)
        Groups.
    member_of : int64 array (N,)
        Members of the partitions that are placed already, or `NOBODY`.
    """
    groups, filled = rules.groups, member_of.copy()
    for part in alike(groups.members[chosen], groups.sizes[chosen], MOST_CELLS):
        here = chosen[part]
        rows = groups.by_lag[groups.rows(here)]
        of = np.repeat(np.arange(len(here)), groups.sizes[here])
        loads = np.zeros((len(here), int(groups.members[here].max())), dtype=np.int64)
        placed = member_of[rows] != NOBODY
        np.add.at(loads, (of[placed], member_of[rows[placed]]), groups.lags[rows[placed]])
        room = np.where(np.arange(loads.shape[1]) < groups.members[here, None], NO_LIMIT, 0)
        filled[rows[~placed]] = lightest(groups.lags[rows[~placed]], of[~placed], of[~placed], loads, room)
    return filled


def lightest(lags: Whole, of: Whole, class_of: Whole, loads: Whole, room: Whole) -> Whole:
    """Return the member of each partition: in this order, the lightest one of its group with room for its class.

    Parameters
    ----------
    lags, of, class_of : int64 arrays (R,)
        Lag, group and class of each partition, by group.
    loads : int64 array (B, W)
        Load of each member of each group; updated in place.
    room : int64 array (K, W)
        Partitions of each class that each member may still take, 0 where there is no member; updated in place. Each
        class has room for all of its partitions.
    """
    takers = np.empty(len(lags), dtype=np.int64)
    if len(loads) <= FEW_GROUPS and len(room) == len(loads):
        starts = np.searchsorted(of, np.arange(len(loads) + 1))
        for number, (first, last) in enumerate(pairwise(starts.tolist())):
            takers[first:last] = _one_group(lags[first:last].tolist(), loads[number].tolist(), room[number].tolist())
        return takers
    rank = np.arange(len(of)) - np.searchsorted(of, of)
    by_rank = np.argsort(rank, kind="stable")
    for items in np.split(by_rank, np.flatnonzero(np.diff(rank[by_rank])) + 1) if len(of) else []:
        group, kind = of[items], class_of[items]
        taker = np.where(room[kind] > 0, loads[group], FULL).argmin(axis=1)
        takers[items] = taker
        loads[group, taker] += lags[items]
        room[kind, taker] -= 1
    return takers


def _one_group(lags: list[int], loads: list[int], room: list[int]) -> list[int]:
    """Return the same for one group with one class."""
    heap = [(load, member) for member, load in enumerate(loads) if room[member]]
    heapq.heapify(heap)
    takers = []
    for lag in lags:
        load, member = heap[0]
        takers.append(member)
        room[member] -= 1
        if room[member]:
            heapq.heapreplace(heap, (load + lag, member))
        else:
            heapq.heappop(heap)
    return takers
