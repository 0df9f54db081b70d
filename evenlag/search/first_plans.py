"""First plans of many ordinary groups at once, by operations on whole columns.

Each group gets the best of several plans: today's assignment where it keeps the count balance, and fresh ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.model.group_columns import GroupColumns
from evenlag.model.objective import ObjectiveKind

METHODS = ("current", "first-plan")
"""Names of the stages, by their code in `FirstPlans.method`."""


@dataclass(frozen=True, eq=False)
class FirstPlans:
    """One plan for each of G groups with N partitions in all.

    Attributes
    ----------
    member_of : int64 array (N,)
        Index of each partition's member among the members of its group.
    objective : int64 array (G,)
        Spread or makespan plus price · moves, in messages.
    bound : int64 array (G,)
        Lower bound on the objective of every plan that keeps the balance, in messages.
    spread, makespan : int64 array (G,)
        In messages.
    moves : int64 array (G,)
        Partitions that leave their owner.
    method : int64 array (G,)
        Stage that found the plan, as an index of `METHODS`.
    """

    member_of: Whole
    objective: Whole
    bound: Whole
    spread: Whole
    makespan: Whole
    moves: Whole
    method: Whole


def first_plans(
    groups: GroupColumns, *, balance: str, kind: str, price: Whole, deadline: float | None = None
) -> FirstPlans:
    """Return a plan for each group that keeps the balance (slack 0).

    Parameters
    ----------
    groups : GroupColumns
    balance : str
        A `Balance`: "both", "topic", "group" or "none".
    kind : str
        An `ObjectiveKind`: "spread" or "makespan".
    price : int64 array (G,)
        Price of a move in messages, >= 0. A group's total lag plus the price of moving all its partitions must be below
        2**62.
    deadline : float, optional
        Time by `time.monotonic()` after which plans are not improved any more. The first plans are made in any case.

    Returns
    -------
    FirstPlans
        No objective is above that of today's assignment, if this keeps the balance.
    """
    del deadline  # nothing is improved yet
    order = groups.by_topic_and_lag
    member_of = np.empty(len(order), dtype=np.int64)
    # Dealing in turn over all topics keeps the counts of each topic and those of the members even.
    member_of[order] = (np.arange(len(order)) - groups.starts[groups.group_of]) % groups.members[groups.group_of]
    fresh = _measured(groups, member_of, kind, price)
    today = np.maximum(groups.owner, 0)
    current = _measured(groups, today, kind, price)
    better = groups.keeps(groups.owner, balance) & (current[0] <= fresh[0])
    objective, spread, makespan, moves = (np.where(better, *pair) for pair in zip(current, fresh, strict=True))
    member_of = np.where(better[groups.group_of], today, member_of)
    bound = _bound(groups, kind)
    return FirstPlans(member_of, objective, bound, spread, makespan, moves, np.where(better, 0, 1))


def _measured(groups: GroupColumns, member_of: Whole, kind: str, price: Whole) -> tuple[Whole, ...]:
    """Return the objective, spread, makespan and moves of each group's plan."""
    spread, makespan, moves = groups.spread(member_of), groups.makespan(member_of), groups.moves(member_of)
    objective = (spread if kind == ObjectiveKind.SPREAD else makespan) + price * moves
    return objective, spread, makespan, moves


def _bound(groups: GroupColumns, kind: str) -> Whole:
    """Return a lower bound from the mean and the biggest partition: one member holds it, the others share the rest."""
    largest: Whole = np.maximum(-(-groups.totals // groups.members), groups.biggest)
    if kind != ObjectiveKind.SPREAD:
        return largest
    others = np.where(groups.members > 1, groups.totals - groups.biggest, groups.totals)
    smallest = np.minimum(groups.totals // groups.members, others // np.maximum(groups.members - 1, 1))
    bound: Whole = np.where(groups.members > 1, np.maximum(largest - smallest, 0), 0)
    return bound
