"""`range`: Kafka's RangeAssignor, its default."""

from __future__ import annotations

import numpy as np

from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Problem


def assign(problem: Problem) -> Plan:
    """Cut every topic into consecutive ranges, one for each of its subscribers in the order of their ids.

    A topic's first P_t mod C_t subscribers get one partition more than the others. Kafka 4.1 departs from this
    only for members that name their rack.

    References
    ----------
    Apache Kafka 4.1, ``org.apache.kafka.clients.consumer.RangeAssignor``.

    Examples
    --------
    The table of KIP-169: 160,000 messages beside 50,000.

    >>> lags = {"t0": [100_000, 60_000, 50_000]}
    >>> assign(Problem.from_lags(lags, {"c0": ["t0"], "c1": ["t0"]})).assignment
    {'c0': [('t0', 0), ('t0', 1)], 'c1': [('t0', 2)]}
    """
    member_of = np.full(len(problem.lags), NOBODY, dtype=np.int32)
    for topic, subscribed in enumerate(problem.subscribed):
        members = np.flatnonzero(subscribed)
        if len(members):
            each, extra = divmod(int(problem.topic_sizes[topic]), len(members))
            member_of[problem.topic_slice(topic)] = np.repeat(members, each + (np.arange(len(members)) < extra))
    return Plan(problem, member_of)
