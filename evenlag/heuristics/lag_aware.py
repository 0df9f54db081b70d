"""`lag-aware`: the greedy algorithm of KIP-169, published as the lag-based partition assignor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evenlag.model.balance import Balance
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Ints, Problem

PROMISES = Balance.TOPIC
ASSIGNOR = "lag"

MANY = 32  # number of members from which arrays are faster than lists


def assign(problem: Problem) -> Plan:
    """Give each partition of a topic, in descending order of lag, to the subscriber with the fewest partitions.

    Ties go to the member with the least lag in this topic, then to the smallest member id. Partitions of equal lag are
    taken by number. Topics are independent: counts and lags start at zero in each. The counts start equal, so each run
    of C_t consecutive partitions goes to C_t different subscribers, and within a run no choice affects a later one.
    The rule therefore equals rounds over the subscribers, each sorted once by (lag held, id).

    References
    ----------
    KIP-169, "Lag-Aware Partition Assignment Strategy"; ties as in grantneale/kafka-lag-based-assignor 2.0.0.

    Examples
    --------
    The example of KIP-169: loads of 100,000 and 110,000 messages.

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
    """Return the taker of each of the lags, which are in descending order; members are numbered by id."""
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
    """Return the same as `_rounds`, computed on arrays; faster if a round has many members."""
    held = np.zeros(members, dtype=lags.dtype)
    takers = np.arange(len(lags))  # right for the first round already
    for start in range(0, len(lags), members):
        dealt = lags[start : start + members]
        if start:
            takers[start : start + members] = np.argsort(held, kind="stable")[: len(dealt)]
        held[takers[start : start + members]] += dealt
    return takers
