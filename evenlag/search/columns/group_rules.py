"""Count rules of many groups, and the classes of partitions to which they apply."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenlag.model.arrays import Bools, Whole, spans
from evenlag.model.balance import Balance
from evenlag.model.group_columns import GroupColumns, grouped, sums_over


@dataclass(frozen=True, eq=False)
class CountRules:
    """The counts that a balance with slack 0 allows in each group.

    Members are alike, so counts are bounded by ⌊P / C⌋ and ⌈P / C⌉: counts per topic (`by_topic`), total counts
    (`even`), or both. A group with one topic needs only the total counts.
    """

    groups: GroupColumns
    balance: str

    @cached_property
    def by_topic(self) -> Bools:
        """True where the counts of several topics must be even, shape (G,)."""
        several: Bools = self.groups.topics > 1
        return several if self.balance in (Balance.TOPIC, Balance.BOTH) else np.zeros(len(several), dtype=bool)

    @cached_property
    def even(self) -> Bools:
        """True where the counts of all partitions must be even, shape (G,)."""
        if self.balance in (Balance.GROUP, Balance.BOTH):
            return np.ones(len(self.groups), dtype=bool)
        alone: Bools = self.groups.topics == 1
        return alone if self.balance == Balance.TOPIC else np.zeros(len(alone), dtype=bool)

    @cached_property
    def fewest(self) -> Whole:
        """Lower bound on the partitions of a member, shape (G,)."""
        return np.where(self.even, self.groups.sizes // self.groups.members, self._of_topics(0))

    @cached_property
    def most(self) -> Whole:
        """Upper bound on the partitions of a member, shape (G,)."""
        even = -(-self.groups.sizes // self.groups.members)
        return np.where(self.even, even, np.where(self.by_topic, self._of_topics(1), self.groups.sizes))

    def _of_topics(self, more: int) -> Whole:
        """Return the sum of ⌊P_t / C⌋, or of ⌈P_t / C⌉ with `more` = 1, over the topics of each group."""
        groups = self.groups
        members = groups.members[groups.group_of_topic]
        counts = (groups.topic_sizes + more * (members - 1)) // members
        starts = np.searchsorted(groups.group_of_topic, np.arange(len(groups) + 1))
        return np.where(self.by_topic, sums_over(counts, starts), 0)

    @cached_property
    def lags_and_none(self) -> Whole:
        """Lags of all rows in messages, and 0 for no row; shape (N + 1,)."""
        return np.append(self.groups.lags, 0)

    @cached_property
    def classes(self) -> Classes:
        """Partitions that are interchangeable under the rule."""
        groups = self.groups
        apart = self.by_topic[groups.group_of_topic]
        apart[1:] |= groups.group_of_topic[1:] != groups.group_of_topic[:-1]
        apart[:1] = True
        number = (np.cumsum(apart) - 1)[groups.topic_number]
        first_topics = np.flatnonzero(apart)
        starts = np.append(groups.topic_starts[first_topics], len(groups.lags))
        group_of = groups.group_of_topic[first_topics]
        order = grouped(groups.by_lag, number)
        return Classes(order, groups.lags[order], starts, group_of)


@dataclass(frozen=True, eq=False)
class Classes:
    """Partitions of all groups by class: a topic, or a whole group if its topics are interchangeable.

    Attributes
    ----------
    order : int64 array (N,)
        Rows by class, then lag, largest first.
    lags : int64 array (N,)
        Lags in that order, in messages.
    starts : int64 array (K + 1,)
        First place in `order` of each class.
    group_of : int64 array (K,)
        Group of each class, ascending.
    """

    order: Whole
    lags: Whole
    starts: Whole
    group_of: Whole

    @cached_property
    def firsts(self) -> Whole:
        """First class of each group, and K; shape (G + 1,)."""
        return np.searchsorted(self.group_of, np.arange(self.group_of.max(initial=-1) + 2))

    def of_groups(self, groups: Whole) -> tuple[Whole, Whole]:
        """Return the classes of these groups, and the index in `groups` of each class's group."""
        return spans(self.firsts[groups], np.diff(self.firsts)[groups])


def numbered(counts: Whole) -> tuple[Whole, Whole]:
    """Return k and 1 … counts[k] for each index k, as two arrays."""
    numbers, which = spans(np.ones_like(counts), counts)
    return which, numbers
