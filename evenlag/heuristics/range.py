"""`range`: Kafka's RangeAssignor, the default assignor."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice

import numpy as np

from evenlag.heuristics.racks import RackTable, rack_table
from evenlag.model.arrays import Bools
from evenlag.model.balance import Balance
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Index, Problem

PROMISES = Balance.TOPIC
ASSIGNOR = "range"


def assign(problem: Problem) -> Plan:
    """Cut every topic into consecutive ranges, one for each subscriber in the order of their ids.

    The first P_t mod C_t subscribers of a topic get one partition more than the others. If the racks of members and
    replicas are known and matter (KIP-881), members first take partitions with a replica in their rack, as many as the
    even counts allow, and the remaining partitions are cut into ranges. Topics with equal numbers of partitions and the
    same subscribers are assigned together: partition i of all of them goes to one member.

    References
    ----------
    Apache Kafka 4.1, ``org.apache.kafka.clients.consumer.RangeAssignor``; KIP-881, "Rack-aware Partition Assignment
    for Kafka Consumers".

    Examples
    --------
    The table of KIP-169: loads of 160,000 and 50,000 messages.

    >>> lags = {"t0": [100_000, 60_000, 50_000]}
    >>> assign(Problem.from_lags(lags, {"c0": ["t0"], "c1": ["t0"]})).assignment
    {'c0': [('t0', 0), ('t0', 1)], 'c1': [('t0', 2)]}

    With racks, `c0` gets one partition instead of two.

    >>> racks = {"racks": {"c0": "a", "c1": "b"}, "partition_racks": {"t0": [["b"], ["a"], ["b"]]}}
    >>> assign(Problem.from_lags(lags, ["c0", "c1"], **racks)).assignment
    {'c0': [('t0', 1)], 'c1': [('t0', 0), ('t0', 2)]}
    """
    racks = rack_table(problem)
    if racks is not None:
        return Plan(problem, _by_rack(problem, racks))
    member_of = np.full(len(problem.lags), NOBODY, dtype=np.int32)
    for topic, subscribed in enumerate(problem.subscribed):
        members = np.flatnonzero(subscribed)
        if len(members):
            each, extra = divmod(int(problem.topic_sizes[topic]), len(members))
            member_of[problem.topic_slice(topic)] = np.repeat(members, each + (np.arange(len(members)) < extra))
    return Plan(problem, member_of)


def _by_rack(problem: Problem, racks: RackTable) -> Index:
    """Match racks where they matter, then cut ranges of the rest; topics alike are assigned as one."""
    alike: defaultdict[tuple[bytes, int], list[int]] = defaultdict(list)
    matter = []
    partitions = np.arange(len(problem.lags))
    for topic, subscribed in enumerate(problem.subscribed):
        alike[subscribed.tobytes(), int(problem.topic_sizes[topic])].append(topic)
        matter.append(racks.matter(partitions[problem.topic_slice(topic)], np.flatnonzero(subscribed)))
    member_of = np.full(len(problem.lags), NOBODY, dtype=np.int32)
    for (_, size), topics in alike.items():
        members = np.flatnonzero(problem.subscribed[topics[0]])
        if not len(members):
            continue
        ranges = _Ranges(size, racks.rack_of[members].tolist())
        fits = [racks.fits[racks.kind_of[problem.topic_slice(topic)]] for topic in topics]
        if len(topics) > 1 and any(matter):
            ranges.match_together(np.logical_and.reduce(fits))
        elif matter[topics[0]]:
            ranges.match_alone(fits[0])
        takers = members[ranges.filled()]
        for topic in topics:
            member_of[problem.topic_slice(topic)] = takers
    return member_of


class _Ranges:
    """Assignment of a topic, or of several alike topics, to C subscribers: ⌊P/C⌋ partitions each, or one more.

    Parameters
    ----------
    size : int
        P, the number of partitions of a topic.
    racks : list of int
        Rack of each subscriber, by number.
    """

    def __init__(self, size: int, racks: list[int]) -> None:
        self._racks = racks
        self._each, self._extra = divmod(size, len(racks))
        self._held = [0] * len(racks)
        self._taker = [NOBODY] * size

    def _room(self, member: int) -> int:
        """Return the number of partitions that a subscriber may still take; once 0, it stays 0."""
        return max(self._each + (self._extra > 0) - self._held[member], 0)

    def _give(self, partition: int, member: int) -> None:
        self._taker[partition] = member
        self._held[member] += 1
        self._extra -= self._held[member] > self._each

    def match_alone(self, fits: Bools) -> None:
        """Give each subscriber the first free partitions that fit its rack; `fits` has one row per partition."""
        waiting = {rack: iter(np.flatnonzero(fits[:, rack]).tolist()) for rack in set(self._racks)}
        for member, rack in enumerate(self._racks):
            free = (partition for partition in waiting[rack] if self._taker[partition] == NOBODY)
            for partition in list(islice(free, self._room(member))):
                self._give(partition, member)

    def match_together(self, fits: Bools) -> None:
        """Give each partition to the first subscriber with room whose rack it fits in all topics."""
        waiting: list[list[int]] = [[] for _ in range(fits.shape[1])]  # by rack, the first at the end
        for member in reversed(range(len(self._racks))):
            waiting[self._racks[member]].append(member)
        for partition, row in enumerate(fits.tolist()):
            first = len(self._racks)
            for queue, fitting in zip(waiting, row, strict=True):
                while fitting and queue and not self._room(queue[-1]):
                    queue.pop()
                if fitting and queue:
                    first = min(first, queue[-1])
            if first < len(self._racks):
                self._give(partition, first)

    def filled(self) -> Index:
        """Return the subscriber of each partition, after cutting the unassigned ones into ranges."""
        takers = np.array(self._taker, dtype=np.int32)
        lacking = self._each - np.array(self._held)
        lacking[np.flatnonzero(lacking >= 0)[: self._extra]] += 1
        takers[takers == NOBODY] = np.repeat(np.arange(len(lacking)), np.maximum(lacking, 0))
        return takers
