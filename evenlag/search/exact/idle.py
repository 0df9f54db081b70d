"""Idle partitions, those without lag: where any may take the place of any other, only their number on a member counts.

How many of them move follows from the numbers: whatever a member holds beyond what it holds today it takes, and what is
taken is what others give, and what nobody owns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Whole
from evenlag.model.balance import CountRule
from evenlag.model.problem import NOBODY

FEWEST = 2  # with one there is none to take its place


@dataclass(frozen=True, eq=False)
class Idle:
    """Partitions of which only the number counts.

    Attributes
    ----------
    places : int64 array
        Rising; empty where each is looked at for itself.
    owner : int32 array
        Who holds each today, or `NOBODY`.
    lost : int
        How many are held by members that may hold none.
    counted : bool
        Whether the rule counts partitions; where it does not, none of these moves that need not.
    """

    places: Whole
    owner: NDArray[np.int32]
    lost: int
    counted: bool

    def owned(self, m: int) -> int:
        """Return how many a member holds today."""
        return int((self.owner == m).sum())

    @cached_property
    def unowned(self) -> int:
        """How many nobody holds today, as far as they are counted."""
        return self.owned(NOBODY) if self.counted else 0

    @cached_property
    def more(self) -> int:
        """How many more all members that may hold some hold in a plan than today, as far as they are counted."""
        return self.unowned + self.lost if self.counted else 0

    def slots(self, most: int) -> Whole:
        """Return the places that stand for those of a member that holds at most so many: the last ones are its own."""
        return self.places[max(len(self.places) - most, 0) :] if self.counted else self.places[:0]

    def own_slots(self, m: int) -> Whole:
        """Return the places that stand for a member's own, whichever those are."""
        return self.places[len(self.places) - self.owned(m) :]

    def holders(self, more: dict[int, int]) -> NDArray[np.int32]:
        """Return who holds each where members hold so many more than today; who holds fewer gives its last ones.

        Where they are not counted, those of nobody, or of a member that may hold none, go to the first one.
        """
        holders = np.where(np.isin(self.owner, list(more)), self.owner, NOBODY).astype(np.int32)
        for m, number in more.items():
            if number < 0:
                holders[np.flatnonzero(self.owner == m)[number:]] = NOBODY
        free = np.flatnonzero(holders == NOBODY)
        takers = [m for m, number in more.items() for _ in range(number)]
        holders[free] = takers if self.counted else next(iter(more))
        return holders


def idle_of(rule: CountRule) -> Idle:
    """Return the idle partitions of a rule's problem as far as they can take each other's place."""
    problem = rule.problem
    places = np.flatnonzero(problem.assignable & (problem.lags == 0))
    if len(places) < FEWEST or not rule.interchangeable or (problem.pins != NOBODY).any():
        places = places[:0]
    bounds, active = rule.total_bounds, problem.active
    counted = bounds.lo[active].any() or (bounds.hi[active] < problem.assignable.sum()).any()
    owner = problem.owner[places]
    lost = int(((owner != NOBODY) & ~active[owner]).sum())
    return Idle(places, owner, lost, bool(counted and len(places)))
