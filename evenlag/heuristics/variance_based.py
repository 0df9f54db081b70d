"""`variance-based`: damped steps from members above the average to those below, as the Kinesis Client Library has."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from random import Random

import numpy as np

from evenlag.heuristics.array_operations import owned_counts
from evenlag.model.balance import Balance
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Problem

PROMISES = Balance.NONE

THRESHOLD = 10  # percent above or below the average from which a run moves load
DAMPING = 60  # percent of a member's load above the average that a run takes from it
PATIENCE = 10  # runs in a row without a move after which the rule has settled: each draws another order

Room = tuple[int, int, int]  # a member's load as it counts, its partitions, the member: the smallest has the most room


def assign(problem: Problem) -> Plan:
    """Give free partitions to the members with the most room, then even out loads in runs until none moves anything.

    Loads are sums of lags. Their average is over the members that subscribe to a topic.

    1. Each free partition goes to the member with the most room, the smallest load. A member without load counts as
       half the average.
    2. If a load is more than `THRESHOLD` percent off the average, each load as far above it gives up `DAMPING` percent
       of its excess: partitions in random order that fit into the rest of that amount, or else the one with the least
       lag. If the others are only too low, the largest load gives.
    3. Each of them goes to the member with the most room. If that would bring it above the average, the giver keeps the
       rest, and the receiver gets nothing more in this run.

    The rule has settled after `PATIENCE` runs in a row without a move. The random order has a fixed seed. Ties go to
    the member with the fewest partitions, then by id.

    References
    ----------
    Amazon Kinesis Client Library 3, ``VarianceBasedLeaseAssignmentDecider`` with its default settings and throughput as
    the only metric.

    Examples
    --------
    The average is 100. `c0` gives up 60 percent of its excess of 80, into which the partition of 40 fits:

    >>> owned = {"c0": [("t", 0), ("t", 1)], "c1": [("t", 2)]}
    >>> members = {"c0": ["t"], "c1": ["t"]}
    >>> assign(Problem.from_lags({"t": [140, 40, 20]}, members, owned=owned)).loads.tolist()
    [140, 60]
    """
    group = _Group(problem)
    if group.members:
        group.share_free()
        random, idle = Random(0), 0
        while idle < PATIENCE:
            idle = 0 if group.even_out(random) else idle + 1
    return Plan(problem, np.array(group.member_of, dtype=np.int32))


class _Group:
    """The assignment with its loads, in whole numbers: a load is above the average if C · load exceeds the total."""

    def __init__(self, problem: Problem) -> None:
        self.members: list[int] = np.flatnonzero(problem.subscribed.any(axis=0)).tolist()
        self.member_of: list[int] = problem.owner.tolist()
        self._subscribed = [set(np.flatnonzero(row).tolist()) for row in problem.subscribed]
        self._topic_of: list[int] = problem.topic_of.tolist()
        self._free: list[int] = np.flatnonzero(problem.assignable & (problem.owner == NOBODY)).tolist()
        self._lags: list[int] = problem.lags.tolist()
        self._total = sum(problem.lags[problem.assignable].tolist())
        self._counts: list[int] = owned_counts(problem).tolist()
        self._loads = [0] * len(problem.members)
        for lag, m in zip(self._lags, self.member_of, strict=True):
            if m != NOBODY:
                self._loads[m] += lag

    def share_free(self) -> None:
        """Assign the free partitions, by topic and number."""
        rooms = self._rooms()
        for p in self._free:
            m = self._roomiest(rooms, p)
            if m is not None:
                self._give(p, m)
                heappush(rooms, self._room(m))

    def even_out(self, random: Random) -> bool:
        """Move partitions once from members far above the average to those below; return True if any moved."""
        givers = self._givers()
        held: dict[int, list[int]] = {m: [] for m in givers}
        for p, m in enumerate(self.member_of):
            if m in held:
                held[m].append(p)
        rooms, moved = self._rooms(), False
        for giver in givers:
            for p in self._offered(giver, held[giver], random):
                receiver = self._roomiest(rooms, p)
                if receiver is None:
                    continue
                if len(self.members) * (self._loads[receiver] + self._lags[p]) > self._total:
                    break
                self._give(p, receiver)
                heappush(rooms, self._room(receiver))
                moved = True
        return moved

    def _givers(self) -> list[int]:
        """Return the members that give up load, the largest excess first; none if all loads are near the average."""
        scaled = {m: 100 * len(self.members) * self._loads[m] for m in self.members}
        highest, lowest = (100 + THRESHOLD) * self._total, (100 - THRESHOLD) * self._total
        if all(lowest <= load <= highest for load in scaled.values()):
            return []
        descending = sorted(self.members, key=lambda m: -scaled[m])
        return [m for m in descending if scaled[m] >= highest] or descending[:1]

    def _offered(self, giver: int, held: list[int], random: Random) -> list[int]:
        """Return the partitions that a member offers, in random order; one of the least lag if none fits."""
        random.shuffle(held)
        rest = DAMPING * (len(self.members) * self._loads[giver] - self._total)  # times 100 · C
        offered = []
        for p in held:
            lag = 100 * len(self.members) * self._lags[p]
            if rest > lag:
                rest -= lag
                offered.append(p)
        return offered or sorted(held, key=self._lags.__getitem__)[:1]

    def _rooms(self) -> list[Room]:
        rooms = [self._room(m) for m in self.members]
        heapify(rooms)
        return rooms

    def _room(self, m: int) -> Room:
        """Return the rank of a member among receivers; its load is in units of 1 / 2C."""
        counted = 2 * len(self.members) * self._loads[m] if self._loads[m] else self._total
        return counted, self._counts[m], m

    def _roomiest(self, rooms: list[Room], p: int) -> int | None:
        """Take the subscriber of a partition with the most room from the heap; None if none is left."""
        able, passed_over = self._subscribed[self._topic_of[p]], []
        found = None
        while rooms and found is None:
            room = heappop(rooms)
            if room[2] in able:
                found = room[2]
            else:
                passed_over.append(room)
        for room in passed_over:
            heappush(rooms, room)
        return found

    def _give(self, p: int, m: int) -> None:
        before = self.member_of[p]
        for member, sign in ((before, -1), (m, 1)):
            if member != NOBODY:
                self._loads[member] += sign * self._lags[p]
                self._counts[member] += sign
        self.member_of[p] = m
