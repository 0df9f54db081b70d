"""`fairest-sticky`: owned partitions stay, and free ones go where they even out the counts."""

from __future__ import annotations

import numpy as np

from evenlag.heuristics.array_operations import fewest_first, owned_counts, same_topics
from evenlag.model.arrays import Whole
from evenlag.model.balance import Balance
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Index, Problem

PROMISES = Balance.NONE


def assign(problem: Problem) -> Plan:
    """Keep every owned partition, and give each free one to the subscriber with the fewest partitions.

    Stickiness takes precedence over balance: nothing moves, and new members get only free partitions. As in the rest of
    KIP-54, topics with few subscribers come first, and free partitions are assigned again as long as that evens out the
    counts further.

    References
    ----------
    KIP-54, "Alternatives Yet to be Considered": the *sticky yet fair* or *fairest sticky* strategy.

    Examples
    --------
    KIP-54's example 3: `c2` joins and gets nothing; `sticky` would move one partition to it.

    >>> members = {member: ["t0", "t1"] for member in ("c0", "c1", "c2")}
    >>> owned = {"c0": [("t0", 0), ("t1", 0)], "c1": [("t0", 1), ("t1", 1)]}
    >>> plan = assign(Problem.from_lags({"t0": [0, 0], "t1": [0, 0]}, members, owned=owned))
    >>> plan.counts.tolist(), plan.moves
    ([2, 2, 0], 0)

    `t1` grows by two partitions: `c2` gets both.

    >>> assign(Problem.from_lags({"t0": [0, 0], "t1": [0, 0, 0, 0]}, members, owned=owned)).assignment["c2"]
    [('t1', 2), ('t1', 3)]
    """
    member_of = problem.owner.copy()
    free = np.flatnonzero(problem.assignable & (member_of == NOBODY))
    if len(free) and same_topics(problem):
        member_of[free] = fewest_first(owned_counts(problem), np.arange(len(problem.members)), len(free))
    elif len(free):
        _even_out(problem, member_of, free)
    return Plan(problem, member_of)


def _even_out(problem: Problem, member_of: Index, free: Whole) -> None:
    """Assign the free partitions topic by topic; then reassign topics until no change evens out counts."""
    counts = owned_counts(problem)
    topics = problem.topic_of[free]
    few = np.argsort(problem.subscribed.sum(axis=1), kind="stable").tolist()
    batches = [(free[topics == topic], np.flatnonzero(problem.subscribed[topic])) for topic in few]
    batches = [(partitions, members) for partitions, members in batches if len(partitions)]
    uneven = True
    while uneven:
        uneven = False
        for partitions, members in batches:
            holders = member_of[partitions]
            held = holders[holders != NOBODY]
            if len(held) and counts[held].max() <= counts[members].min() + 1:
                continue
            np.subtract.at(counts, held, 1)
            member_of[partitions] = takers = fewest_first(counts, members, len(partitions))
            np.add.at(counts, takers, 1)
            uneven = True
