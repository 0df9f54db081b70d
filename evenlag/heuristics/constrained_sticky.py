"""`constrained-sticky`: the linear algorithm of KAFKA-9987, for members that all subscribe to the same topics."""

from __future__ import annotations

import numpy as np

from evenlag.errors import InvalidPlanError
from evenlag.heuristics.array_operations import even_share, owned_counts, same_topics
from evenlag.model.arrays import rank_within
from evenlag.model.balance import Balance
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Problem

PROMISES = Balance.GROUP


def assign(problem: Problem) -> Plan:
    """Keep owned partitions up to the even share, fill the members below it, then deal out the rest one each.

    With P partitions and C members, the share is ⌊P/C⌋, or ⌈P/C⌉ for P mod C of the members. The partitions that nobody
    keeps are dealt out in the order t0-0, t1-0, …, t0-1, …. First, each member below ⌊P/C⌋ gets as many as it lacks;
    then each member at ⌊P/C⌋ gets one. Both go through the members by id.

    The design's pseudo-code lets every member keep ⌈P/C⌉ and takes one partition back for each member that stays empty.
    Four members with 3 partitions each and a new one thus end with 2, 3, 3, 3 and 1. Here at most P mod C members keep
    ⌈P/C⌉. That leaves nothing to take back, and moves no more partitions than taking back until all are filled would.

    Raises
    ------
    InvalidPlanError
        The members subscribe to different topics.

    References
    ----------
    "Constrained cooperative sticky assignor", the design document attached to KAFKA-9987.

    Examples
    --------
    A fifth member joins four members that have 3 partitions each: two partitions move.

    >>> owned = {f"c{m}": [("t", 3 * m + i) for i in range(3)] for m in range(4)}
    >>> members = {f"c{m}": ["t"] for m in range(5)}
    >>> plan = assign(Problem.from_lags({"t": [0] * 12}, members, owned=owned))
    >>> plan.counts.tolist(), plan.moves
    ([3, 3, 2, 2, 2], 2)
    """
    if not same_topics(problem):
        raise InvalidPlanError("constrained-sticky is defined only for members that all subscribe to the same topics")
    member_of = np.full(len(problem.lags), NOBODY, dtype=np.int32)
    if problem.assignable.any():
        low, keep = even_share(owned_counts(problem), int(problem.assignable.sum()))
        kept = (problem.owner != NOBODY) & (rank_within(problem.owner) < keep[problem.owner])
        member_of[kept] = problem.owner[kept]
        free = np.flatnonzero(problem.assignable & ~kept)
        free = free[np.argsort(problem.partition_ids[free], kind="stable")]
        fill = np.repeat(np.arange(len(keep)), np.maximum(low - keep, 0))
        member_of[free] = np.concatenate([fill, np.flatnonzero(keep <= low)])[: len(free)]
    return Plan(problem, member_of)
