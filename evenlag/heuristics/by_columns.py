"""Published assignors over many ordinary groups at once, by operations on whole columns.

Each gives every group the plan that the function of `HEURISTICS` with its name gives the group alone. Members are taken
in the order of their indices and topics in the order of their rows, as there. Groups have no racks, so `range` is the
plain one. Sticky assignors are left out: their plans depend on the order of moves, partition by partition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.model.group_columns import GroupColumns, alike

MOST_CELLS = 1 << 18  # cells of all tables in use at a time: they fit in a processor's cache
FEW_CELLS = 128  # tables of so few cells are slower than lists
NO_MEMBER = np.iinfo(np.int64).max  # load of a column without a member: sorts after all others


def lag_aware(groups: GroupColumns) -> Whole:
    """Deal each topic out in rounds, largest lag first: in each round, to members in the order of their lag held.

    Returns
    -------
    int64 array (N,)
        Index of each partition's member within its group. The same holds for the other functions.
    """
    order = groups.by_topic_and_lag
    members = groups.members[groups.group_of_topic]
    lags = groups.lags[order]
    takers = (np.arange(len(lags)) - groups.topic_starts[groups.topic_number]) % members[groups.topic_number]
    rounds = -(-groups.topic_sizes // members)
    longer = np.flatnonzero((rounds > 1) & (members > 1))
    for part in alike(members[longer], rounds[longer], MOST_CELLS):
        here = longer[part]
        here = here[np.argsort(-rounds[here], kind="stable")]
        _deal(lags, takers, groups.topic_starts[here], groups.topic_sizes[here], members[here])
    member_of = np.empty_like(takers)
    member_of[order] = takers
    return member_of


def _deal(lags: Whole, takers: Whole, starts: Whole, sizes: Whole, members: Whole) -> None:
    """Deal these topics out in rounds; `takers` is for the first round, and updated in place for later ones.

    Topics are in descending order of rounds, so that those still dealt out come first.
    """
    width = int(members.max())
    column = np.arange(width)
    rounds = -(-sizes // members)
    held = np.full((len(starts), width), NO_MEMBER)
    held[column < members[:, None]] = 0
    for number in range(int(rounds.max())):
        left = int((rounds > number).sum())
        if left * width < FEW_CELLS:
            for topic in range(left):
                first, last = int(starts[topic] + number * members[topic]), int(starts[topic] + sizes[topic])
                takers[first:last] = _dealt(lags[first:last].tolist(), held[topic, : members[topic]].tolist())
            return
        done = number * members[:left, None]
        rows = starts[:left, None] + done + column
        dealt = (column < members[:left, None]) & (done + column < sizes[:left, None])
        order = np.argsort(held[:left], axis=1, kind="stable")
        cells = np.nonzero(dealt)
        row, taker = rows[cells], order[cells]
        takers[row] = taker
        held[cells[0], taker] += lags[row]


def _dealt(lags: list[int], held: list[int]) -> list[int]:
    """Return the takers of the remaining rounds of one topic."""
    members = range(len(held))
    takers: list[int] = []
    for start in range(0, len(lags), len(held)):
        order = sorted(members, key=held.__getitem__)[: len(lags) - start]
        for lag, member in zip(lags[start : start + len(held)], order, strict=True):
            held[member] += lag
        takers += order
    return takers


def ranges(groups: GroupColumns) -> Whole:
    """Cut every topic into consecutive ranges, one per member; the first P_t mod C have one partition more."""
    members = groups.members[groups.group_of_topic]
    each, over = np.divmod(groups.topic_sizes, members)
    number = groups.topic_number
    place = np.arange(len(number)) - groups.topic_starts[number]
    longer = over * (each + 1)  # partitions in the ranges that have one more
    beyond = over[number] + (place - longer[number]) // np.maximum(each, 1)[number]
    member_of: Whole = np.where(place < longer[number], place // (each + 1)[number], beyond)
    return member_of


def roundrobin(groups: GroupColumns) -> Whole:
    """Deal out the partitions of each group in turn, topic after topic; the turn carries over from topic to topic."""
    place = np.arange(len(groups.lags)) - groups.starts[groups.group_of]
    return place % groups.members[groups.group_of]


BY_COLUMNS: Mapping[str, Callable[[GroupColumns], Whole]] = {
    "lag-aware": lag_aware,
    "range": ranges,
    "roundrobin": roundrobin,
}
