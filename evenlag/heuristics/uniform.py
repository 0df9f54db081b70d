"""`uniform`: the assignor of KIP-848 groups, which runs in the broker."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from evenlag.heuristics.array_operations import fewest_first, owned_counts, same_topics
from evenlag.heuristics.java_hash import table_size
from evenlag.model.arrays import Whole, rank_within
from evenlag.model.balance import Balance
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Index, Problem

PROMISES = Balance.GROUP
ASSIGNOR = "uniform"

MOST_ROUNDS = 16  # rounds over the topics; Kafka's own limit

SurplusOrder = Callable[[Whole], Whole]
"""Order of partitions, those of a member together, by which members with too many keep the first."""


def assign(problem: Problem) -> Plan:
    """Even out the counts, starting from the broker's previous target assignment (the problem's owners).

    Members that all subscribe to the same topics keep what they own up to ⌊P/C⌋ or ⌈P/C⌉ partitions; the rest fills up
    one member after the other. With mixed subscriptions, free partitions go to the member with the fewest, and then
    each topic in turn is evened out among its own subscribers. Chains of moves across topics are not found, so counts
    may differ by more than necessary.

    References
    ----------
    KIP-848, "The Next Generation of the Consumer Rebalance Protocol"; Apache Kafka 4.1,
    ``org.apache.kafka.coordinator.group.assignor.UniformAssignor`` and its two builders.

    Examples
    --------
    `c2` joins two members with 3 partitions each, and takes the last partition of each.

    >>> owned = {"c0": [("t", 0), ("t", 1), ("t", 2)], "c1": [("t", 3), ("t", 4), ("t", 5)]}
    >>> assign(Problem.from_lags({"t": [0] * 6}, {m: ["t"] for m in ("c0", "c1", "c2")}, owned=owned)).assignment
    {'c0': [('t', 0), ('t', 1)], 'c1': [('t', 3), ('t', 4)], 'c2': [('t', 2), ('t', 5)]}

    The example in Kafka's source comments: no topic can be evened out alone, but together all counts could be 10.

    >>> lags, members = {"t0": [0] * 15, "t1": [0] * 15}, {"c0": ["t0"], "c1": ["t0", "t1"], "c2": ["t1"]}
    >>> owned = {"c0": [("t0", i) for i in range(9)], "c2": [("t1", i) for i in range(11)]}
    >>> owned["c1"] = [("t0", i) for i in range(9, 15)] + [("t1", i) for i in range(11, 15)]
    >>> assign(Problem.from_lags(lags, members, owned=owned)).counts.tolist()
    [9, 10, 11]
    """
    if not problem.assignable.any():
        return Plan(problem, np.full(len(problem.lags), NOBODY, dtype=np.int32))
    if not same_topics(problem):
        return Plan(problem, _heterogeneous(problem))
    return Plan(problem, homogeneous(problem, partial(_hash_set_order, problem)))


# ---- equal subscriptions ---------------------------------------------------------------------------------------


def homogeneous(problem: Problem, surplus_order: SurplusOrder) -> Index:
    """Keep owned partitions up to the quota; assign the free ones, then the surplus, one member after the other."""
    owned = owned_counts(problem)
    quota = _quotas(owned, int(problem.assignable.sum()))
    member_of = problem.owner.copy()
    over = np.flatnonzero((owned > quota)[problem.owner] & (problem.owner != NOBODY))
    over = over[surplus_order(over)]
    surplus = over[rank_within(problem.owner[over]) >= quota[problem.owner[over]]]
    free = np.concatenate([np.flatnonzero(problem.assignable & (member_of == NOBODY)), surplus])
    member_of[free] = np.repeat(np.arange(len(quota)), np.maximum(quota - owned, 0))
    return member_of


def _quotas(owned: Whole, partitions: int) -> Whole:
    """Return ⌊P/C⌋ for each member, plus one for P mod C of them: the first that own more, then the last members."""
    low, extra = divmod(partitions, len(owned))
    over = owned > low
    left = extra - (np.cumsum(over) - over)  # members that may still get one more, at each member's turn
    must = left >= np.arange(len(owned), 0, -1)  # no more members left than that
    return low + ((over & (left > 0)) | must)


def _hash_set_order(problem: Problem, partitions: Whole) -> Whole:
    """Return the order by member, topic, and iteration order of a HashSet of the member's partitions of the topic."""
    cells = problem.owner[partitions].astype(np.int64) * len(problem.topics) + problem.topic_of[partitions]
    sizes = table_size(np.bincount(cells))
    widest = int(sizes.max(initial=1))
    slots = problem.partition_ids[partitions] & (sizes[cells] - 1)
    return np.argsort(cells * widest + slots, kind="stable")


# ---- mixed subscriptions ---------------------------------------------------------------------------------------


def _heterogeneous(problem: Problem) -> Index:
    """Fill up topics one by one, those with the most partitions per subscriber first; then even out each topic."""
    subscribers = [np.flatnonzero(subscribed) for subscribed in problem.subscribed]
    readers = np.array([len(members) for members in subscribers])
    member_of, counts = problem.owner.copy(), owned_counts(problem)
    topics = [t for t in np.lexsort((readers, -problem.topic_sizes / np.maximum(readers, 1))).tolist() if readers[t]]
    for topic in topics:
        here = problem.topic_slice(topic)
        free = here.start + np.flatnonzero(member_of[here] == NOBODY)
        if len(free):
            members = subscribers[topic]
            takers = fewest_first(counts, members[np.argsort(counts[members], kind="stable")], len(free))
            member_of[free] = takers
            counts += np.bincount(takers, minlength=len(counts))
    last = None  # the last topic that changed
    for _ in range(MOST_ROUNDS):
        for topic in topics:
            if topic == last:
                return member_of
            if _even_out(member_of[problem.topic_slice(topic)], counts, subscribers[topic]) or last is None:
                last = topic
    return member_of


def _even_out(holders: Index, counts: Whole, members: Whole) -> bool:
    """Move one topic's partitions from its fullest to its emptiest subscribers, in place; return True if any moved."""
    held = counts[members]
    if int(held.max()) - int(held.min()) <= 1:
        return False
    order = members[np.argsort(held, kind="stable")].tolist()
    ends = _Ends(order, {member: int(counts[member]) for member in order})
    theirs: dict[int, list[int]] = {}
    for partition, holder in enumerate(holders.tolist()):
        theirs.setdefault(holder, []).append(partition)
    moved = False
    while (giver := ends.fullest(theirs)) != NOBODY:
        taker = ends.emptiest()
        if ends.high - ends.low <= 1:
            break
        ends.move(giver, taker)
        holders[theirs[giver].pop()] = taker
        moved = True
    counts[order] = [ends.counts[member] for member in order]
    return moved


class _Ends:
    """A topic's subscribers by count: the emptiest rise and the fullest sink, level by level and each in turn.

    Attributes
    ----------
    counts : dict of member to int
        Current number of partitions of each subscriber.
    low, high : int
        The count that the emptiest members just left, and the count of the fullest.
    """

    def __init__(self, order: list[int], counts: dict[int, int]) -> None:
        self.counts = counts
        self.low = counts[order[0]] - 1
        self.high = counts[order[-1]] + 1
        self._order = order
        self._low_end = self._low_next = 0  # order[:low_end] are at `low`, or one above if before low_next
        self._high_start = self._high_end = len(order)  # members at `high`; later ones have nothing to give
        self._high_next = len(order) - 1

    def emptiest(self) -> int:
        """Return the member that gets the next partition."""
        order, counts = self._order, self.counts
        if self._low_next >= self._low_end:
            self.low += 1
            while self._low_end < len(order) and counts[order[self._low_end]] == self.low:
                self._low_end += 1
            self._low_next = 0
        self._low_next += 1
        return order[self._low_next - 1]

    def fullest(self, theirs: dict[int, list[int]]) -> int:
        """Return the next member to give up a partition, among those that hold one of the topic; else `NOBODY`."""
        order = self._order
        while (at := self._next_fullest()) >= 0:
            if theirs.get(order[at]):
                return order[at]
            self._high_end -= 1
            order[at], order[self._high_end] = order[self._high_end], order[at]
        return NOBODY

    def _next_fullest(self) -> int:
        order, counts = self._order, self.counts
        if self._high_next < self._high_start:
            if self._high_end <= self._high_start and self._high_start > 0:
                self.high = counts[order[self._high_start - 1]]
            else:
                self.high -= 1
            while self._high_start > 0 and counts[order[self._high_start - 1]] == self.high:
                self._high_start -= 1
            self._high_next = self._high_end - 1
        if self._high_next < 0:
            return -1
        self._high_next -= 1
        return self._high_next + 1

    def move(self, giver: int, taker: int) -> None:
        """Update the counts for a moved partition."""
        self.counts[giver] -= 1
        self.counts[taker] += 1
