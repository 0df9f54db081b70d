"""Longest processing time first for many groups at once: each partition goes to the lightest member with room for it.

Without limits on the room, this is Graham's 1969 rule for the makespan.
"""

from __future__ import annotations

import heapq

import numpy as np

from evenlag.model.arrays import NOBODY, Whole
from evenlag.model.group_columns import alike
from evenlag.search.columns.group_rules import CountRules

MOST_CELLS = 1 << 18  # cells of all tables in use at a time
FEW_GROUPS = 16  # groups with as many partitions that are faster one by one
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
    """Return the member of each partition: the lightest member of its group with room for its class.

    Partitions are taken in their order.

    Parameters
    ----------
    lags, of, class_of : int64 arrays (R,)
        Lag, group and class of each partition, by group, then by class.
    loads : int64 array (B, W)
        Load of each member of each group; updated in place.
    room : int64 array (K, W)
        Partitions of each class that each member may still take, 0 where there is no member. Each class has room
        for all of its partitions. May be updated in place.
    """
    takers = np.empty(len(lags), dtype=np.int64)
    rank = np.arange(len(of)) - np.searchsorted(of, of)
    if len(of) <= FEW_GROUPS * (rank.max(initial=0) + 1):
        changes = np.flatnonzero((np.diff(of) != 0) | (np.diff(class_of) != 0)) + 1
        for items in np.split(np.arange(len(of)), changes) if len(of) else ():
            _one_class(takers[items[0] : items[-1] + 1], lags[items], loads[of[items[0]]], room[class_of[items[0]]])
        return takers
    by_rank = np.argsort(rank, kind="stable")
    for items in np.split(by_rank, np.flatnonzero(np.diff(rank[by_rank])) + 1):
        group, kind = of[items], class_of[items]
        taker = np.where(room[kind] > 0, loads[group], FULL).argmin(axis=1)
        takers[items] = taker
        loads[group, taker] += lags[items]
        room[kind, taker] -= 1
    return takers


def _one_class(takers: Whole, lags: Whole, loads: Whole, room: Whole) -> None:
    """Do the same for one class; `takers` and `loads` are written."""
    members = np.flatnonzero(room)
    heap = list(zip(loads[members].tolist(), members.tolist(), room[members].tolist(), strict=True))
    heapq.heapify(heap)
    for place, lag in enumerate(lags.tolist()):
        load, member, left = heap[0]
        takers[place] = member
        loads[member] = load + lag
        if left > 1:
            heapq.heapreplace(heap, (load + lag, member, left - 1))
        else:
            heapq.heappop(heap)
