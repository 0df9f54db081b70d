"""`fairest-sticky`: every partition stays with its owner, the others go where they even the counts out."""

from __future__ import annotations

import numpy as np

from evenlag.heuristics.arrays import fewest_first, owned_counts, same_topics
from evenlag.model.arrays import Whole
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Index, Problem


def assign(problem: Problem) -> Plan:
    """Leave what is owned where it is, and give each free partition to the subscriber with the fewest partitions.

    Stickiness takes precedence over balance, so nothing ever moves, and members that join get only what is free. As in
    the rest of KIP-54, topics with few subscribers come first, and what was free is handed on while that evens the
    counts out further.

    References
    ----------
    KIP-54, "Alternatives Yet to be Considered": the *sticky yet fair* or *fairest sticky* strategy.

    Examples
    --------
    KIP-54's example 3: `c2` joins and gets nothing, where `sticky` moves one partition to it.

    >>> members = {member: ["t0", "t1"] for member in ("c0", "c1", "c2")}
    >>> owned = {"c0": [("t0", 0), ("t1", 0)], "c1": [("t0", 1), ("t1", 1)]}
    >>> plan = assign(Problem.from_lags({"t0": [0, 0], "t1": [0, 0]}, members, owned=owned))
    >>> plan.counts.tolist(), plan.moves
    ([2, 2, 0], 0)

    Two more partitions of `t1`: `c2` gets both.

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
    """Give out the free partitions topic by topic, and each topic's anew until no partition does better elsewhere."""
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
