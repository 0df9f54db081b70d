"""`lag-aware`: the greedy of KIP-169, published as the lag-based partition assignor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Ints, Problem

MANY = 32  # members from which on arrays are faster than lists

ASSIGNOR = "lag"  # the name by which its members agree on it


def assign(problem: Problem) -> Plan:
    """In every topic, give each partition, most lag first, to the subscriber with the fewest partitions.

    Ties go to the least lag held in this topic, then to the smallest member id; equal lags are taken by partition
    number. Nothing is carried from one topic to the next. As the counts start equal, every C_t partitions in a row
    go to C_t different subscribers, and what one of them takes does not change the order of those still to come:
    the rule is the same as serving the subscribers in rounds, each round sorted once by (lag held, id).

    References
    ----------
    KIP-169, "Lag-Aware Partition Assignment Strategy"; grantneale/kafka-lag-based-assignor 2.0.0 for the ties.

    Examples
    --------
    The example of KIP-169: 100,000 messages beside 110,000.

    >>> lags = {"t0": [100_000, 60_000, 50_000]}
    >>> assign(Problem.from_lags(lags, {"c0": ["t0"], "c1": ["t0"]})).assignment
    {'c0': [('t0', 0)], 'c1': [('t0', 1), ('t0', 2)]}
    """
    member_of = np.full(len(problem.lags), NOBODY, dtype=np.int32)
    for topic, subscribed in enumerate(problem.subscribed):
        members = np.flatnonzero(subscribed)
        if len(members):
            here = problem.topic_slice(topic)
            lags = problem.lags[here]
            order = np.argsort(-lags, kind="stable")
            rounds = _rounds if len(members) < MANY else _long_rounds
            member_of[here.start + order] = members[rounds(lags[order], len(members))]
    return Plan(problem, member_of)


def _rounds(lags: Ints, members: int) -> Sequence[int]:
    """Return who takes each of the lags (descending); members are numbered by id."""
    descending: list[int] = lags.tolist()
    held = [0] * members
    takers: list[int] = []
    for start in range(0, len(descending), members):
        order = sorted(range(members), key=held.__getitem__)
        for lag, member in zip(descending[start : start + members], order, strict=False):
            held[member] += lag
            takers.append(member)
    return takers


def _long_rounds(lags: Ints, members: int) -> NDArray[np.int64]:
    """Return the same by arrays, which is faster where a round has many members."""
    held = np.zeros(members, dtype=lags.dtype)
    takers = np.arange(len(lags))  # all that the first round is
    for start in range(0, len(lags), members):
        dealt = lags[start : start + members]
        if start:
            takers[start : start + members] = np.argsort(held, kind="stable")[: len(dealt)]
        held[takers[start : start + members]] += dealt
    return takers
