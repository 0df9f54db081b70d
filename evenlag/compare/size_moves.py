"""The least that must move from today's assignment to a group of another size that meets its deadline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from evenlag.compare.drain import Course
from evenlag.compare.resized import Staff
from evenlag.model.objective import MOVES, ObjectiveKind
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Problem
from evenlag.search.options import MOST_GAP, SolveOptions
from evenlag.search.solver import search


@dataclass(frozen=True)
class Handover:
    """The plan found that meets the deadline and moves least.

    Attributes
    ----------
    moves : int
        Partitions that leave their owner, including those of members that leave the group.
    units : int
        Total size of these partitions; their number if partitions have no sizes.
    bound : int
        No plan that meets the deadline moves fewer units.
    sized : bool
        True if partitions have sizes.
    """

    moves: int
    units: int
    bound: int
    sized: bool


def least_handover(
    problem: Problem,
    plan: Plan,
    deadline: Fraction,
    capacity: Fraction,
    rates: Sequence[Fraction],
    options: SolveOptions,
) -> Handover | None:
    """Find the plan of the new size that meets the deadline and moves least.

    Parameters
    ----------
    problem : Problem
        Today's group.
    plan : Plan
        A plan of the new size that meets the deadline.
    deadline : Fraction
        Seconds until the deadline.
    capacity : Fraction
        Messages per second read by a member of weight 1.
    rates : sequence of Fraction (P,)
        Messages per second that arrive in each partition.
    options : SolveOptions
        Balance and limits.

    Returns
    -------
    Handover or None
        None if no partition has an owner today, or no member is active at the new size.
    """
    if not (problem.owner != NOBODY).any():
        return None
    staff = Staff(problem)
    course = Course(problem, rates, capacity, staff.heaviest())
    resized = staff.of(len(plan.problem.members))
    if not resized.active.any():
        return None
    then, parts = (resized, 1) if course.steady else course.at(resized, deadline)
    then = then.at(then.lags, resized.owner)
    asked = replace(
        options, objective=ObjectiveKind.SPREAD, first=(MOVES,), max_load=course.load_within(then, deadline, parts),
        gap=MOST_GAP,
    )  # fmt: skip
    found = search(then, asked, start=Plan(then, plan.member_of), tie_break=False, explain=False)
    best = Plan(resized, found.plan.member_of)
    if course.of_plan(best) > deadline:  # the search rounds incoming messages down
        best = Plan(resized, plan.member_of)
    sizes = np.ones_like(problem.lags) if problem.pairs.move_sizes is None else problem.pairs.move_sizes
    gone = (problem.owner != NOBODY) & (resized.owner == NOBODY)
    moved = gone | ((resized.owner != NOBODY) & (best.member_of != resized.owner))
    bound = min(found.cost_bounds.values(), default=0) + int(sizes[gone].sum())
    return Handover(int(moved.sum()), int(sizes[moved].sum()), bound, problem.pairs.move_sizes is not None)
