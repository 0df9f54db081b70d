"""Members that are alike exchange all they hold, so that as many partitions as possible stay with their owners.

The symmetry of members that are alike, made use of: of all plans that differ in the members' names alone, the one
with the fewest moves. Kuhn 1955's assignment problem, solved by OR-Tools.
"""

from __future__ import annotations

import numpy as np
from ortools.graph.python import linear_sum_assignment

from evenlag.model.balance import CountRule
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY
from evenlag.search.construct import differencing

MOST_MEMBERS = 500  # the assignment takes about the square of them


def relabel(plan: Plan, rule: CountRule) -> Plan:
    """Return the plan with the active members renamed so that it moves least; loads and counts only change hands.

    Who takes whose place is an assignment problem: the more a member owned of what another is to hold, the better.

    Parameters
    ----------
    plan : Plan
        Returned as it is where members are not all alike (`differencing.applies`) or too many, or where no other names
        move less.
    rule : CountRule
        That the plan keeps.
    """
    problem = plan.problem
    active = np.flatnonzero(problem.active)
    owned = (problem.owner != NOBODY) & (plan.member_of != NOBODY)
    if len(active) > MOST_MEMBERS or not owned.any() or not differencing.applies(rule):
        return plan
    place = np.full(len(problem.members), NOBODY)
    place[active] = np.arange(len(active))
    cells = place[plan.member_of[owned]] * len(active) + place[problem.owner[owned]]
    held = np.bincount(cells, minlength=len(active) ** 2)
    solver = linear_sum_assignment.SimpleLinearSumAssignment()
    source, target = np.divmod(np.arange(len(active) ** 2), len(active))
    solver.add_arcs_with_cost(source, target, held.max() - held)
    if solver.solve() != solver.OPTIMAL:
        return plan
    name = np.arange(len(problem.members) + 1, dtype=np.int32)
    name[-1] = NOBODY  # for what nobody gets
    name[active] = active[[solver.right_mate(i) for i in range(len(active))]]
    renamed = Plan(problem, name[plan.member_of])
    return renamed if renamed.moves < plan.moves else plan
