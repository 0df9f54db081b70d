"""`fair`: even counts regardless of owners, the strategy of KIP-49 as described in KIP-54."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evenlag.heuristics import sticky
from evenlag.model.balance import Balance
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Problem

PROMISES = Balance.GROUP


def assign(problem: Problem) -> Plan:
    """Even out the counts as `sticky` does, but from an empty assignment, so that owners do not matter.

    Racks are ignored, because the strategy is older than rack awareness.

    References
    ----------
    KIP-54, "Alternatives Yet to be Considered", on the fair strategy of KIP-49.

    Examples
    --------
    KIP-54's example 2 after `c0` left: the counts are even again, but ownership is ignored.

    >>> lags, members = {"t0": [0], "t1": [0, 0], "t2": [0, 0, 0]}, {"c1": ["t0", "t1"], "c2": ["t0", "t1", "t2"]}
    >>> owned = {"c1": [("t1", 0), ("t1", 1)], "c2": [("t0", 0), ("t2", 0), ("t2", 1), ("t2", 2)]}
    >>> plan = assign(Problem.from_lags(lags, members, owned=owned))
    >>> plan.assignment, plan.moves
    ({'c1': [('t0', 0), ('t1', 0), ('t1', 1)], 'c2': [('t2', 0), ('t2', 1), ('t2', 2)]}, 1)
    """
    nobody = np.full(len(problem.lags), NOBODY, dtype=np.int32)
    return Plan(problem, sticky.without_racks(replace(problem, owner=nobody)).member_of)
