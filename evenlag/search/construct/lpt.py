"""Longest processing time first: each partition, biggest first, to the least loaded member.

Source: Graham 1969, "Bounds on multiprocessing timing anomalies": at most 4/3 of the least makespan.
"""

from __future__ import annotations

import heapq

import numpy as np

from evenlag.model.balance import CountRule
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY


def lpt(rule: CountRule) -> Plan:
    """Return a fresh plan that minds no counts.

    Parameters
    ----------
    rule : CountRule
        Without a balance, of members that are all alike (`differencing.applies`).
    """
    problem = rule.problem
    active = np.flatnonzero(problem.active).tolist()
    items = np.flatnonzero(problem.assignable)
    items = items[np.argsort(-problem.lags[items], kind="stable")]
    member_of = np.full(len(problem.lags), NOBODY, dtype=np.int32)
    heap = [(0, m) for m in active]
    takers = []
    for lag in problem.lags[items].tolist():
        load, m = heap[0]
        heapq.heapreplace(heap, (load + lag, m))
        takers.append(m)
    member_of[items] = takers
    return Plan(problem, member_of)
