"""`roundrobin`: Kafka's RoundRobinAssignor."""

from __future__ import annotations

import numpy as np

from evenlag.model.balance import Balance
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Problem

PROMISES = Balance.GROUP
ASSIGNOR = "roundrobin"


def assign(problem: Problem) -> Plan:
    """Deal out the partitions in turn, topic after topic, skipping members that do not subscribe.

    The turn carries over from one topic to the next; it does not start again at the first member.

    References
    ----------
    Apache Kafka 4.1, ``org.apache.kafka.clients.consumer.RoundRobinAssignor``.

    Examples
    --------
    Example 2 of KIP-54: with mixed subscriptions, the counts are 1, 1 and 4.

    >>> lags = {"t0": [0], "t1": [0, 0], "t2": [0, 0, 0]}
    >>> members = {"c0": ["t0"], "c1": ["t0", "t1"], "c2": ["t0", "t1", "t2"]}
    >>> assign(Problem.from_lags(lags, members)).assignment
    {'c0': [('t0', 0)], 'c1': [('t1', 0)], 'c2': [('t1', 1), ('t2', 0), ('t2', 1), ('t2', 2)]}
    """
    member_of = np.full(len(problem.lags), NOBODY, dtype=np.int32)
    turn = 0  # the member whose turn is next
    for topic, subscribed in enumerate(problem.subscribed):
        members = np.flatnonzero(subscribed)
        if len(members):
            first = np.searchsorted(members, turn)
            dealt = members[(first + np.arange(problem.topic_sizes[topic])) % len(members)]
            member_of[problem.topic_slice(topic)] = dealt
            turn = (int(dealt[-1]) + 1) % len(problem.members)
    return Plan(problem, member_of)
