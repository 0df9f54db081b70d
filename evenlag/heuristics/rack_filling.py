"""Assignment of free partitions within racks (KIP-881), the first step of Kafka's rack-aware sticky assignors."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Sequence
from heapq import heapify, heapreplace
from typing import NamedTuple

import numpy as np

from evenlag.heuristics.racks import RackTable
from evenlag.model.arrays import Whole
from evenlag.model.problem import NOBODY, Index


class Filled(NamedTuple):
    """Free partitions in the order of assignment, and the result of the rack-aware step.

    Attributes
    ----------
    partitions : int64 array (F,)
        The partitions that fit the fewest members come first.
    takers : int32 array (F,)
        Member that took each partition; `NOBODY` if none did.
    full : int64 array
        Members that have ⌊P/C⌋ partitions and may get one more, in the order of their turns.
    """

    partitions: Whole
    takers: Index
    full: Whole


def fill_within_racks(racks: RackTable, free: Whole, held: Whole, low: int) -> Filled:
    """Give free partitions to members that they fit, in turn until each has ⌊P/C⌋, then one more to the first.

    Members of unknown rack take no part.

    Parameters
    ----------
    free : int64 array (F,)
        Partitions that nobody keeps, ascending.
    held : int64 array (M,)
        Number of partitions that each member keeps.
    low : int
        ⌊P/C⌋.
    """
    members_in = np.bincount(racks.rack_of, minlength=racks.nowhere + 1)[: racks.nowhere]
    kinds = racks.kind_of[free]
    order = np.argsort((racks.fits[:, : racks.nowhere] @ members_in)[kinds], kind="stable")
    turns = _Turns(racks.rack_of.tolist(), racks.nowhere, held.tolist(), low, int(held.sum()) + len(free))
    takers = [turns.take(racks.racks_of[kind]) for kind in kinds[order].tolist()]
    return Filled(free[order], np.array(takers, dtype=np.int32), np.array(turns.full(), dtype=np.int64))


class _Turns:
    """Turns of the members in each rack: those below ⌊P/C⌋ in rotation, those at ⌊P/C⌋ once, in order of reaching it.

    Parameters
    ----------
    rack_of : list of int (M,)
        Rack of each member by number; `nowhere` if unknown.
    held : list of int (M,)
        Number of partitions that each member has.
    low, total : int
        ⌊P/C⌋ and P.
    """

    def __init__(self, rack_of: list[int], nowhere: int, held: list[int], low: int, total: int) -> None:
        self._rack_of = rack_of
        self._held = held
        self._low = low
        self._more = total % len(held) - sum(count > low for count in held)  # members that may still reach ⌈P/C⌉
        self._next = 0  # the member whose turn is next
        self._below: list[list[int]] = [[] for _ in range(nowhere + 1)]  # by rack, members below ⌊P/C⌋ by id
        self._full: list[deque[tuple[int, int]]] = [deque() for _ in range(nowhere + 1)]  # by rack, (place, member)
        self._places = 0
        for member, count in enumerate(held):
            if count < low:
                self._below[rack_of[member]].append(member)
            elif count == low:
                self._queue(member)

    def take(self, racks: list[int]) -> int:
        """Return the member that takes a partition with replicas in these racks; `NOBODY` if no member may."""
        member = self._below_in(racks)
        if member != NOBODY:
            self._next = member + 1
            self._held[member] += 1
            if self._held[member] == self._low:
                below = self._below[self._rack_of[member]]
                del below[bisect_left(below, member)]
                self._queue(member)
            return member
        waiting = [queue[0] for rack in racks if (queue := self._full[rack])] if self._more else []
        if not waiting:
            return NOBODY
        member = min(waiting)[1]
        self._full[self._rack_of[member]].popleft()
        self._more -= 1
        return member

    def full(self) -> list[int]:
        """Return the members with ⌊P/C⌋ partitions, in the order of their turns."""
        return [member for _, member in sorted(entry for queue in self._full for entry in queue)]

    def _queue(self, member: int) -> None:
        self._full[self._rack_of[member]].append((self._places, member))
        self._places += 1

    def _below_in(self, racks: list[int]) -> int:
        """Return the next member below ⌊P/C⌋ in these racks, in rotation from the current turn."""
        found = []
        for rack in racks:
            if members := self._below[rack]:
                place = bisect_left(members, self._next)
                member = members[place] if place < len(members) else members[0]
                found.append((member < self._next, member))
        return min(found)[1] if found else NOBODY


def fewest_within_racks(
    racks: RackTable,
    batches: Sequence[tuple[int, Whole]],
    subscribers: Sequence[Whole],
    member_of: Index,
    counts: Whole,
) -> None:
    """Give each partition to the subscriber that it fits and that has the fewest, then the first by id.

    A partition that fits no subscriber stays free. Subscribers of unknown rack fit all partitions.

    Parameters
    ----------
    batches : sequence of (int, int64 array)
        Topics with their free partitions.
    subscribers : sequence of int64 array
        Subscribers of each topic, ascending.
    member_of : int32 array (P,)
        Member of each partition; changed in place.
    counts : int64 array (M,)
        Number of partitions that each member has; changed in place.
    """
    held: list[int] = counts.tolist()
    for topic, partitions in batches:
        queues: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for member in subscribers[topic].tolist() if len(partitions) else ():
            queues[int(racks.rack_of[member])].append((held[member], member))
        for queue in queues.values():
            heapify(queue)
        kinds = racks.kind_of[partitions].tolist()
        able = {k: [queues[r] for r in (*racks.racks_of[k], racks.nowhere) if r in queues] for k in set(kinds)}
        member_of[partitions] = [_fewest(able[kind], held) for kind in kinds]
    counts[:] = held


def _fewest(queues: list[list[tuple[int, int]]], held: list[int]) -> int:
    """Return the member with the fewest in these queues, and count one more for it; `NOBODY` if all are empty."""
    for queue in queues:
        while queue[0][0] != held[queue[0][1]]:  # an outdated entry
            heapreplace(queue, (held[queue[0][1]], queue[0][1]))
    taker = min((queue[0] for queue in queues), default=(0, NOBODY))[1]
    if taker != NOBODY:
        held[taker] += 1
    return taker
