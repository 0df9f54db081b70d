"""Costs of exchanging partitions where pairs of a partition and a member have costs, such as moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import NOBODY, Bools, Index, Ints, Whole, leaving
from evenlag.model.objective import Objective
from evenlag.model.pair_costs import total
from evenlag.model.problem import Problem

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CostTable:
    """Prices of pairs, and limits on costs.

    Attributes
    ----------
    price : float array (P, M)
        Messages that it costs that a member has a partition, >= 0.
    owner : int32 array (P,)
        Whose home a partition is, if it costs no more there than elsewhere.
    limits : sequence of (array (P, M), int)
        Costs, and the most that a plan may come to.
    """

    price: Floats
    owner: Index
    limits: Sequence[tuple[Ints, int]]

    @cached_property
    def home(self) -> Index:
        """Where each partition costs least: with its owner, if that is so there."""
        least, at = self.price.argmin(axis=1).astype(np.int32), np.arange(len(self.owner))
        owned = self.price[at, self.owner] <= self.price[at, least]
        home: Index = np.where((self.owner != NOBODY) & owned, self.owner, least)
        return home

    def of(self, member_of: Index) -> float:
        """Return what a plan costs, in messages."""
        held = np.flatnonzero(member_of != NOBODY)
        return float(self.price[held, member_of[held]].sum())

    def away(self, member_of: Index) -> Bools:
        """Return which partitions would cost less at home."""
        at = np.arange(len(member_of))
        dearer: Bools = self.price[at, member_of] > self.price[at, self.home]
        dearer &= member_of != NOBODY
        return dearer

    def change(self, ours: Whole, theirs: Whole, me: int, holder: Whole) -> Floats:
        """Return what exchanges cost more: rows are what a member gives, columns what it takes of which holder."""
        return _change(self.price, ours, theirs, me, holder)

    def fits(self, member_of: Index, ours: Whole, theirs: Whole, me: int, holder: Whole) -> Bools:
        """Return which exchanges keep the limits."""
        fits: Bools = np.ones((len(ours), len(theirs)), dtype=bool)
        for costs, most in self.limits:
            fits &= _change(costs, ours, theirs, me, holder) <= max(most - total(costs, member_of), 0)
        return fits


def _change(table: Ints | Floats, ours: Whole, theirs: Whole, me: int, holder: Whole) -> NDArray[np.float64]:
    give = np.where((ours == NOBODY)[:, None], 0, table[ours][:, holder] - table[ours, me][:, None])
    take = np.where(theirs == NOBODY, 0, table[theirs, me] - table[theirs, holder])
    change: Floats = give + take
    return change


def cost_table(problem: Problem, goal: Objective) -> CostTable:
    """Return the costs of a goal, moves with the others."""
    leaves = leaving(problem.owner, len(problem.members))
    price = float(goal.stickiness) * leaves.astype(np.float64)
    for pair in goal.pairs:
        price += float(Fraction(pair.price)) * pair.costs.astype(np.float64)
    limits = [(pair.costs, pair.budget) for pair in goal.pairs if pair.budget is not None]
    if goal.max_moves is not None:
        limits.append((leaves, goal.max_moves))
    return CostTable(price, problem.owner, limits)
