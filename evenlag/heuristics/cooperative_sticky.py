"""`cooperative-sticky`: Kafka's CooperativeStickyAssignor."""

from __future__ import annotations

from evenlag.heuristics import sticky
from evenlag.model.balance import Balance
from evenlag.model.plan import Plan
from evenlag.model.problem import Problem

PROMISES = Balance.GROUP
ASSIGNOR = "cooperative-sticky"


def assign(problem: Problem) -> Plan:
    """Return the assignment that the group converges to, which is that of `sticky` from the same owners.

    Both use the same algorithm and differ in the protocol. In a cooperative group, members go on reading the partitions
    that they keep; a partition that moves is withheld until its owner has revoked it and the group rebalances again.

    References
    ----------
    KIP-429, "Kafka Consumer Incremental Rebalance Protocol"; Apache Kafka 4.1,
    ``org.apache.kafka.clients.consumer.CooperativeStickyAssignor``.

    Examples
    --------
    `c1` joins. Kafka's first answer withholds t-2 and t-3 until `c0` has revoked them; the second assigns them.

    >>> owned = {"c0": [("t", 0), ("t", 1), ("t", 2), ("t", 3)]}
    >>> plan = assign(Problem.from_lags({"t": [0, 0, 0, 0]}, {"c0": ["t"], "c1": ["t"]}, owned=owned))
    >>> plan.assignment, plan.moves
    ({'c0': [('t', 0), ('t', 1)], 'c1': [('t', 2), ('t', 3)]}, 2)
    """
    return sticky.assign(problem)
