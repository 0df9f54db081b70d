"""What one member may hold where members differ: its partitions by topic, and how many of each and of all."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.model.balance import CountRule
from evenlag.model.problem import NOBODY
from evenlag.search.exact.idle import Idle


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
        Places that stand for idle partitions, as many as the member could hold (`idle.py`); not among the others.
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
