"""`sticky`: Kafka's StickyAssignor."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush
from operator import itemgetter

import numpy as np

from evenlag.heuristics.array_operations import even_share, fewest_first, held_counts, in_turn, same_topics
from evenlag.heuristics.java_hash import buckets, hash_codes, map_order, table_size
from evenlag.heuristics.rack_filling import fewest_within_racks, fill_within_racks
from evenlag.heuristics.racks import RackTable, rack_table
from evenlag.model.arrays import Whole, rank_within, stable_order
from evenlag.model.balance import Balance
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Index, Problem

PROMISES = Balance.GROUP
ASSIGNOR = "sticky"

MOST_SWEEPS = 100  # Kafka sets no limit; a million random groups needed fewer than ten each

Batch = tuple[int, Whole]  # a topic and some of its partitions


def assign(problem: Problem) -> Plan:
    """Even out the counts as far as subscriptions allow, and keep as many partitions as possible with their owners.

    Like Kafka, use a linear algorithm if all members subscribe to the same topics; it makes the fewest moves that
    counts of ⌊P/C⌋ and ⌈P/C⌉ allow. Otherwise use the general algorithm, a local search.
    If the racks of members and replicas are known and matter (KIP-881), members keep only partitions with a replica in
    their rack, and free partitions go to members in their racks as far as the even counts allow.

    References
    ----------
    KIP-54, "Sticky Partition Assignment Strategy", with the generations of KIP-341 and the racks of KIP-881; Apache
    Kafka 4.1, ``org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor``.

    Examples
    --------
    Example 2 of KIP-54: the counts are 1, 2 and 3; those of round-robin are 1, 1 and 4.

    >>> lags = {"t0": [0], "t1": [0, 0], "t2": [0, 0, 0]}
    >>> members = {"c0": ["t0"], "c1": ["t0", "t1"], "c2": ["t0", "t1", "t2"]}
    >>> plan = assign(Problem.from_lags(lags, members))
    >>> plan.assignment
    {'c0': [('t0', 0)], 'c1': [('t1', 0), ('t1', 1)], 'c2': [('t2', 0), ('t2', 1), ('t2', 2)]}

    Then `c0` leaves; the five other partitions stay.

    >>> del members["c0"]
    >>> owned = {member: plan.assignment[member] for member in members}
    >>> assign(Problem.from_lags(lags, members, owned=owned)).assignment
    {'c1': [('t0', 0), ('t1', 0), ('t1', 1)], 'c2': [('t2', 0), ('t2', 1), ('t2', 2)]}
    """
    racks = rack_table(problem)
    if racks is not None:
        partitions, members = np.flatnonzero(problem.assignable), np.arange(len(problem.members))
        racks = racks if racks.matter(partitions, members) else None
    return _assigned(problem, racks)


def without_racks(problem: Problem) -> Plan:
    """Return the plan of `assign` for the same group without racks."""
    return _assigned(problem, None)


def _assigned(problem: Problem, racks: RackTable | None) -> Plan:
    if not problem.assignable.any():
        return Plan(problem, np.full(len(problem.lags), NOBODY, dtype=np.int32))
    return Plan(problem, _constrained(problem, racks) if same_topics(problem) else _general(problem, racks))


# ---- equal subscriptions ---------------------------------------------------------------------------------------


def _constrained(problem: Problem, racks: RackTable | None) -> Index:
    """Keep owned partitions up to the even share, lowest numbers first; fill up in turn, then add one more in turn.

    With racks, members keep only partitions that fit them, and free ones go first to members that they fit.
    """
    owner = problem.owner if racks is None else racks.fitting(problem.owner)
    owned = held_counts(owner, len(problem.members))
    low, held = even_share(owned, int(problem.assignable.sum()), lambda: map_order(problem.members))
    member_of = owner.copy()
    over = np.flatnonzero((owner != NOBODY) & (owned > held)[owner])
    over = over[stable_order(problem.partition_ids[over])]
    member_of[over[rank_within(owner[over]) >= held[owner[over]]]] = NOBODY
    free = np.flatnonzero(problem.assignable & (member_of == NOBODY))
    if racks is None:
        full = np.flatnonzero(held == low)
    else:
        free, takers, full = fill_within_racks(racks, free, held, low)
        member_of[free] = takers
        held += held_counts(takers, len(held))
        free = free[takers == NOBODY]
    lacking = np.maximum(low - held, 0)
    filled = np.argsort(lacking, kind="stable")[int((lacking == 0).sum()) :]  # in the order of reaching ⌊P/C⌋
    member_of[free] = np.concatenate([in_turn(lacking), full, filled])[: len(free)]
    return member_of


# ---- mixed subscriptions ---------------------------------------------------------------------------------------


def _general(problem: Problem, racks: RackTable | None) -> Index:
    """Give every free partition to the member with the fewest, then move partitions until the counts are even.

    Topics with few subscribers come first. First only the partitions that were free may move, then all of them. If
    partitions of the second step moved without improving the balance score, all moves are undone, unless nobody owned
    anything. With racks, a member loses owned partitions that do not fit it, and then all partitions may move at once.
    Free partitions go first to members that they fit, but moves ignore racks.
    """
    subscribers = [np.flatnonzero(subscribed) for subscribed in problem.subscribed]
    readers = np.array([len(members) for members in subscribers])
    member_of = problem.owner.copy() if racks is None else racks.fitting(problem.owner)
    revoked = racks is not None and bool((member_of != problem.owner).any())
    counts = held_counts(member_of, len(problem.members))
    shared = problem.subscribed[readers > 1].any(axis=0)  # members with a topic that others read too
    from_scratch = not counts.any()
    free: list[Batch] = []
    every: list[Batch] = []
    for topic in np.argsort(readers, kind="stable").tolist():
        if readers[topic]:
            here = np.arange(problem.topic_starts[topic], problem.topic_starts[topic + 1])
            free.append((topic, here[member_of[here] == NOBODY]))
            every.append((topic, here))
    _give_out(free, subscribers, member_of, counts, racks)
    sweeps = _Sweeps(problem, member_of, counts, subscribers)
    swept = 0
    for batches in (every,) if revoked else (free, every):
        movable = [(topic, partitions) for topic, partitions in batches if readers[topic] > 1]
        swept = 0
        while swept < MOST_SWEEPS and sweeps.sweep(movable):
            swept += 1
    better = _balance_score(np.array(sweeps.counts)[shared]) < _balance_score(counts[shared])
    return np.array(sweeps.holder, dtype=np.int32) if better or from_scratch or not swept else member_of


def _give_out(
    free: list[Batch], subscribers: list[Whole], member_of: Index, counts: Whole, racks: RackTable | None
) -> None:
    """Give every free partition to the subscriber with the fewest, in place; members in a replica's rack come first."""
    if racks is not None:
        fewest_within_racks(racks, free, subscribers, member_of, counts)
    for topic, partitions in free:
        unowned = partitions[member_of[partitions] == NOBODY]
        if len(unowned):
            takers = fewest_first(counts, subscribers[topic], len(unowned))
            member_of[unowned] = takers
            counts += np.bincount(takers, minlength=len(counts))


def _balance_score(counts: Whole) -> int:
    """Return KIP-54's balance score: Σ |n_a − n_b| over all pairs of members."""
    return int(((2 * np.arange(len(counts)) - len(counts) + 1) * np.sort(counts)).sum())


class _Sweeps:
    """Sweeps over partitions that move each one whose holder has at least two partitions more than some subscriber.

    Attributes
    ----------
    holder : list of int
        Current holder of each partition.
    counts : list of int
        Current number of partitions of each member.
    """

    def __init__(self, problem: Problem, member_of: Index, counts: Whole, subscribers: list[Whole]) -> None:
        self.holder: list[int] = member_of.tolist()
        self._home: list[int] = member_of.tolist()
        self.counts: list[int] = counts.tolist()
        self._problem = problem
        self._subscribers = [members.tolist() for members in subscribers]
        self._counts_of = {t: itemgetter(*members) for t, members in enumerate(self._subscribers) if len(members) > 1}
        self._older = _owners_of_older_generation(problem)
        # partitions away from their first holder, by topic, first holder and current holder
        self._away: dict[tuple[int, int, int], _HashSet] = {}

    @cached_property
    def _codes(self) -> Whole:
        """`TopicPartition.hashCode` of every partition, not yet reduced to 32 bits."""
        topics = hash_codes(self._problem.topics).astype(np.int64)
        return 31 * (31 + self._problem.partition_ids) + topics[self._problem.topic_of]

    def sweep(self, batches: Sequence[Batch]) -> bool:
        """Go through the partitions once, in order; return True if any moved."""
        counts, holder = self.counts, self.holder
        moved = False
        for topic, partitions in batches:
            held = self._counts_of[topic](counts)
            if max(held) <= min(held) + 1:
                continue
            fewest = list(zip(held, self._subscribers[topic], strict=True))
            heapify(fewest)
            for partition in partitions.tolist():
                if counts[holder[partition]] > fewest[0][0] + 1:
                    moved = True
                    for member in self._relieve(topic, partition, fewest[0][1]):
                        heappush(fewest, (counts[member], member))
                    while fewest[0][0] != counts[fewest[0][1]]:  # an outdated entry
                        heappop(fewest)
        return moved

    def _relieve(self, topic: int, partition: int, member: int) -> tuple[int, int]:
        """Move a partition towards the member with the fewest; return the two members whose counts changed.

        If the partition's owner of an older generation has few enough, the partition goes back there instead. If
        another partition of the topic moved the opposite way, that one goes home instead, so that no two members
        exchange partitions. As in Kafka, the opposite way is judged by this partition's first holder, not by its
        current one.
        """
        older = self._older[partition]
        if older != NOBODY and self.counts[self.holder[partition]] > self.counts[older] + 1:
            member = older
        if returning := self._away.get((topic, member, self._home[partition])):
            partition = returning.first()
        source, home = self.holder[partition], self._home[partition]
        if source != home:
            away = self._away[topic, home, source]
            away.remove(partition)
            if not away.partitions:
                del self._away[topic, home, source]
        if member != home:
            self._away.setdefault((topic, home, member), _HashSet(self._codes)).add(partition)
        self.holder[partition] = member
        self.counts[source] -= 1
        self.counts[member] += 1
        return source, member


class _HashSet:
    """A Java HashSet of partitions, whose table grows but never shrinks."""

    def __init__(self, codes: Whole) -> None:
        self._codes = codes
        self._most = 0
        self.partitions: dict[int, None] = {}

    def add(self, partition: int) -> None:
        self.partitions[partition] = None
        self._most = max(self._most, len(self.partitions))

    def remove(self, partition: int) -> None:
        del self.partitions[partition]

    def first(self) -> int:
        """Return the first partition in iteration order."""
        partitions = list(self.partitions)
        codes = self._codes[partitions].astype(np.uint32)
        return partitions[int(np.argmin(buckets(codes, table_size(self._most))))]


def _owners_of_older_generation(problem: Problem) -> list[int]:
    """Return each partition's owner if it belongs to an older generation than the newest member's, else `NOBODY`."""
    generations = np.array([-1 if generation is None else generation for generation in problem.generations])
    older = (problem.owner != NOBODY) & (generations < generations.max())[problem.owner]
    owners: list[int] = np.where(older, problem.owner, NOBODY).tolist()
    return owners
