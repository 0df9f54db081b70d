"""`fair`: even counts whatever the owners, the strategy of KIP-49 as KIP-54 takes it up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evenlag.heuristics import sticky
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Problem


def assign(problem: Problem) -> Plan:
    """Even out the counts as `sticky` does, with stickiness switched off: it starts from an empty assignment.

    Racks are not looked at: the strategy is older than they are.

    References
    ----------
    KIP-54, "Alternatives Yet to be Considered", on the fair strategy of KIP-49.

    Examples
    --------
    The members of KIP-54's example 2 without `c0`: the counts are even again, but what the members held is forgotten.

    >>> lags, members = {"t0": [0], "t1": [0, 0], "t2": [0, 0, 0]}, {"c1": ["t0", "t1"], "c2": ["t0", "t1", "t2"]}
    >>> owned = {"c1": [("t1", 0), ("t1", 1)], "c2": [("t0", 0), ("t2", 0), ("t2", 1), ("t2", 2)]}
    >>> plan = assign(Problem.from_lags(lags, members, owned=owned))
    >>> plan.assignment, plan.moves
    ({'c1': [('t0', 0), ('t1', 0), ('t1', 1)], 'c2': [('t2', 0), ('t2', 1), ('t2', 2)]}, 1)
    """
    nobody = np.full(len(problem.lags), NOBODY, dtype=np.int32)
    return Plan(problem, sticky.without_racks(replace(problem, owner=nobody)).member_of)
