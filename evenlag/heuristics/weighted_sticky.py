"""`weighted-sticky`: the weighted partition assignor of a blog post of 2022, including its faults."""

from __future__ import annotations

from math import lcm

import numpy as np

from evenlag.model.arrays import Whole, rank_within
from evenlag.model.balance import Balance
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Problem

PROMISES = Balance.TOPIC
ASSIGNOR = "weighted-partition-assignor"


def assign(problem: Problem) -> Plan:
    """Give every member a quota of each topic by weight; keep, fill and deal out partitions by quota.

    The quota of a subscriber of topic t is exactly ⌊P_t · w / Σ w⌋.

    1. Members keep their own partitions of a topic, lowest numbers first, up to the quota.
    2. The rest of the quotas, topic after topic and member after member, is filled from the head of one list of all
       free partitions.
    3. The remaining partitions are dealt out over all members.

    Steps 2 and 3 ignore topics. Members may therefore get partitions of topics that they do not subscribe to, and
    shares of a topic may differ from its quotas by more than rounding. Both are faults of the original, reproduced
    here.

    References
    ----------
    "Diving Into Kafka Partitioning By Building a Custom Partition Assignor", 2022;
    kylec32/kafka-repartitioning-poc, ``WeightedPartitionAssignor``.

    Examples
    --------
    Weights 900, 90 and 10 share 100 partitions, as in the post:

    >>> members, weights = {m: ["t"] for m in "abc"}, {"a": 900, "b": 90, "c": 10}
    >>> assign(Problem.from_lags({"t": [0] * 100}, members, weights=weights)).counts.tolist()
    [90, 9, 1]

    `b` reads only `v`, but gets a partition of `u`:

    >>> plan = assign(Problem.from_lags({"u": [0, 0, 0], "v": [0]}, {"a": ["u"], "b": ["v"], "c": ["u"]}))
    >>> plan.assignment
    {'a': [('u', 0), ('v', 0)], 'b': [('u', 2)], 'c': [('u', 1)]}
    """
    member_of = np.full(len(problem.lags), NOBODY, dtype=np.int32)
    if problem.assignable.any():
        members = len(problem.members)
        quotas = _quotas(problem).ravel()
        owned = np.flatnonzero(problem.owner != NOBODY)
        cells = problem.topic_of[owned].astype(np.int64) * members + problem.owner[owned]
        within = rank_within(cells) < quotas[cells]
        member_of[owned[within]] = problem.owner[owned[within]]
        left = quotas - np.bincount(cells[within], minlength=len(quotas))
        free = np.flatnonzero(problem.assignable & (member_of == NOBODY))
        fill = np.repeat(np.arange(len(quotas)) % members, left)
        member_of[free] = np.concatenate([fill, np.arange(len(free) - len(fill)) % members])
    return Plan(problem, member_of)


def _quotas(problem: Problem) -> Whole:
    """Return ⌊P_t · w_m / Σ w over the topic's subscribers⌋, 0 for other members; shape (T, M)."""
    common = lcm(*(weight.denominator for weight in problem.weights))
    weights = [int(weight * common) for weight in problem.weights]
    fits = sum(weights) * len(problem.lags) < 2**62
    shares = np.where(problem.subscribed, np.array(weights, dtype=np.int64 if fits else object), 0)
    totals = np.maximum(shares.sum(axis=1, keepdims=True), 1)
    quotas: Whole = (shares * problem.topic_sizes[:, None] // totals).astype(np.int64)
    return quotas
