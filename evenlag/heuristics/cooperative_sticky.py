"""`cooperative-sticky`: Kafka's CooperativeStickyAssignor."""

from __future__ import annotations

from evenlag.heuristics import sticky
from evenlag.model.plan import Plan
from evenlag.model.problem import Problem


def assign(problem: Problem) -> Plan:
    """Return what the group is heading for, which is what `sticky` assigns from the same owners.

    The two share their algorithm and differ in the protocol: a member of a cooperative group goes on reading what it
    keeps, and a partition that moves is withheld until its owner has revoked it and the group rebalances once more.

    References
    ----------
    KIP-429, "Kafka Consumer Incremental Rebalance Protocol"; Apache Kafka 4.1,
    ``org.apache.kafka.clients.consumer.CooperativeStickyAssignor``.

    Examples
    --------
    `c1` joins. Kafka's first answer withholds t-2 and t-3 until `c0` has let them go; the second gives them out.

    >>> owned = {"c0": [("t", 0), ("t", 1), ("t", 2), ("t", 3)]}
    >>> plan = assign(Problem.from_lags({"t": [0, 0, 0, 0]}, {"c0": ["t"], "c1": ["t"]}, owned=owned))
    >>> plan.assignment, plan.moves
    ({'c0': [('t', 0), ('t', 1)], 'c1': [('t', 2), ('t', 3)]}, 2)
    """
    return sticky.assign(problem)
