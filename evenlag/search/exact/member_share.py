"""What one member may hold where members differ: its partitions by topic, and how many of each and of all."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Whole
from evenlag.model.balance import CountRule
from evenlag.model.problem import NOBODY

FEWEST = 2  # idle partitions: with one there is none to take its place


@dataclass(frozen=True, eq=False)
class Idle:
    """Idle partitions, those without lag: where any may take the place of any other, only their number counts.

    How many of them move follows from the numbers: whatever a member holds beyond what it holds today it takes, and
    what is taken is what others give, and what nobody owns.

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


@dataclass(frozen=True, eq=False)
class Topic:
    """Partitions of which a member holds a number between two.

    Attributes
    ----------
    places : int64 array
    fewest, most : int
    counted : bool
        Whether a table has to tell numbers apart.
    slots : int64 array
        Places that stand for idle partitions, as many as the member could hold; not among the others.
    """

    places: Whole
    fewest: int
    most: int
    counted: bool
    slots: Whole = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def levels(self) -> int:
        """Rows of a table for each partition."""
        return self.most + 1 if self.counted else 1


@dataclass(frozen=True, eq=False)
class Share:
    """What one member may hold.

    Attributes
    ----------
    topics : list of Topic
        One for all together where topics are not balanced.
    together : bool
        Whether all topics together have a rule besides their own.
    fewest, most : int
        That rule: partitions beyond the fewest of each topic.
    own : int64 array
        Places of what it owns today and may hold, rising; without idle partitions.
    """

    topics: list[Topic]
    together: bool = False
    fewest: int = 0
    most: int = 0
    own: Whole = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def rows(self) -> int:
        """Rows of a table, whatever the loads; those of slots aside."""
        return sum(len(topic.places) * topic.levels for topic in self.topics) * (self.most + 1)

    @property
    def slot_rows(self) -> int:
        """Rows of a table for slots, whatever the loads."""
        return sum(len(topic.slots) * topic.levels for topic in self.topics) * (self.most + 1)

    @property
    def partitions(self) -> int:
        """The most that it holds."""
        if self.together:
            return sum(topic.fewest for topic in self.topics) + self.most
        return sum(topic.most for topic in self.topics)


def share_of(rule: CountRule, m: int, idle: Idle | None = None) -> Share:
    """Return what a member may hold; of idle partitions, where they are given, only the number counts."""
    problem = rule.problem
    mine = problem.allowed[problem.topic_of, m] & ((problem.pins == NOBODY) | (problem.pins == m))
    places = np.flatnonzero(mine)
    fewest, most = int(rule.member_bounds.lo[m]), int(rule.member_bounds.hi[m])
    used = np.unique(problem.topic_of[places]).tolist()
    own = places[problem.owner[places] == m]
    if idle is not None:
        own = np.setdiff1d(own, idle.places)
    if rule.topic_bounds is None or rule.topic_distance or not used:
        most = min(most, len(places))
        return Share([_topic(places, fewest, most, idle)], own=own)
    owns = [places[problem.topic_of[places] == topic] for topic in used]
    lows = [int(rule.topic_bounds.lo[topic, m]) for topic in used]
    highs = [min(int(rule.topic_bounds.hi[topic, m]), len(own)) for topic, own in zip(used, owns, strict=True)]
    if len(used) == 1:
        return Share([_topic(places, max(fewest, *lows), min(most, *highs), idle)], own=own)
    fewest, most = max(fewest - sum(lows), 0), min(most, sum(highs)) - sum(lows)
    together = fewest > 0 or most < sum(highs) - sum(lows)
    counted = [together or low > 0 or high < len(own) for own, low, high in zip(owns, lows, highs, strict=True)]
    topics = [Topic(*each) for each in zip(owns, lows, highs, counted, strict=True)]
    return Share(topics, together, fewest, most, own) if together else Share(topics, own=own)


def _topic(places: Whole, fewest: int, most: int, idle: Idle | None) -> Topic:
    """Return the one topic of a member, its idle partitions by slots."""
    counted = fewest > 0 or most < len(places)
    if idle is None:
        return Topic(places, fewest, most, counted)
    return Topic(np.setdiff1d(places, idle.places), fewest, most, counted, idle.slots(most))
