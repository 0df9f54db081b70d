"""The partitions that one member may hold, by topic, and the limits on their numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Whole
from evenlag.model.balance import CountRule
from evenlag.model.problem import NOBODY

FEWEST = 2  # idle partitions; a single one has no other to replace it


@dataclass(frozen=True, eq=False)
class Idle:
    """Idle partitions: interchangeable partitions without lag, of which only the number matters.

    Moves of idle partitions follow from the numbers. A member takes as many as it holds beyond today's number. They
    come from members that give some up, and from idle partitions without an owner.

    Attributes
    ----------
    places : int64 array
        Ascending; empty if each partition without lag counts individually.
    owner : int32 array
        Owner of each, or `NOBODY`.
    lost : int
        Number whose owner may hold none.
    counted : bool
        True if the rule counts partitions. Otherwise idle partitions move only if they must.
    """

    places: Whole
    owner: NDArray[np.int32]
    lost: int
    counted: bool

    def owned(self, m: int) -> int:
        """Return the number that a member owns."""
        return int((self.owner == m).sum())

    @cached_property
    def unowned(self) -> int:
        """Number that nobody owns, if the rule counts partitions; otherwise 0."""
        return self.owned(NOBODY) if self.counted else 0

    @cached_property
    def more(self) -> int:
        """Number that members gain in total in every plan, if the rule counts partitions; otherwise 0."""
        return self.unowned + self.lost if self.counted else 0

    def slots(self, most: int) -> Whole:
        """Return the slots of a member that holds at most `most`: first interchangeable places, then its own."""
        return self.places[max(len(self.places) - most, 0) :] if self.counted else self.places[:0]

    def own_slots(self, m: int) -> Whole:
        """Return the slots that stand for a member's own idle partitions."""
        return self.places[len(self.places) - self.owned(m) :]

    def holders(self, more: dict[int, int]) -> NDArray[np.int32]:
        """Return the holder of each idle partition, given each member's change in number.

        A member that gets fewer gives up its last ones. If the rule does not count partitions, the first member of
        `more` gets all that are free.
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
    """Return the idle partitions of a rule's problem; none if partitions are not interchangeable."""
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
    """Partitions of which a member holds at least `fewest` and at most `most`.

    Attributes
    ----------
    places : int64 array
    counted : bool
        True if a table must distinguish numbers of partitions.
    slots : int64 array
        Places that stand for idle partitions, as many as the member could hold; disjoint from `places`.
    """

    places: Whole
    fewest: int
    most: int
    counted: bool
    slots: Whole = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def levels(self) -> int:
        """Rows of a table per partition and load."""
        return self.most + 1 if self.counted else 1


@dataclass(frozen=True, eq=False)
class Share:
    """The partitions that one member may hold.

    Attributes
    ----------
    topics : list of Topic
        A single one for all partitions if topics are not balanced.
    together : bool
        True if a rule also counts all topics together.
    fewest, most : int
        Limits of that rule, in partitions beyond the `fewest` of each topic.
    own : int64 array
        Partitions that it owns today and may hold, ascending; without idle ones.
    """

    topics: list[Topic]
    together: bool = False
    fewest: int = 0
    most: int = 0
    own: Whole = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def rows(self) -> int:
        """Rows of a table per load, without those of slots."""
        return sum(len(topic.places) * topic.levels for topic in self.topics) * (self.most + 1)

    @property
    def slot_rows(self) -> int:
        """Rows of a table per load for slots."""
        return sum(len(topic.slots) * topic.levels for topic in self.topics) * (self.most + 1)

    @property
    def partitions(self) -> int:
        """Largest number of partitions that it holds."""
        if self.together:
            return sum(topic.fewest for topic in self.topics) + self.most
        return sum(topic.most for topic in self.topics)


def share_of(rule: CountRule, m: int, idle: Idle | None = None) -> Share:
    """Return the share of a member; of `idle` partitions, if given, only the number counts."""
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
    """Return the only topic of a member, with its idle partitions as slots."""
    counted = fewest > 0 or most < len(places)
    if idle is None:
        return Topic(places, fewest, most, counted)
    return Topic(np.setdiff1d(places, idle.places), fewest, most, counted, idle.slots(most))
