"""Many ordinary groups in columns: one row per partition, measured with operations on whole columns.

A group is ordinary if its members are alike (equal weights, the same subscriptions, no caps) and its partitions have no
pins, racks, sizes or scenarios. All figures are exact: the lags of a group must sum to less than 2**62.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenlag.model.arrays import NOBODY, Bools, Whole, spans
from evenlag.model.balance import Balance

MOST_BITS = 62  # width of a sort key that packs two numbers


@dataclass(frozen=True, eq=False)
class GroupColumns:
    """G ordinary groups with N partitions in all, sorted by group, then topic, then partition number.

    Attributes
    ----------
    starts : int64 array (G + 1,)
        The rows of group g are starts[g]:starts[g + 1]; each group has at least one.
    topic_of : int64 array (N,)
        Topic of each row, equal within a group only for partitions of one topic; ascending in each group.
    lags : int64 array (N,)
        In messages, >= 0; the sum over each group is below 2**62.
    owner : int64 array (N,)
        Index of the owner among the members of the row's group, in the order of their ids, or `NOBODY`.
    members : int64 array (G,)
        Number of members of each group, >= 1.
    """

    starts: Whole
    topic_of: Whole
    lags: Whole
    owner: Whole
    members: Whole

    # ---- shape ---------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def sizes(self) -> Whole:
        """Partitions of each group, shape (G,)."""
        return np.diff(self.starts)

    @cached_property
    def group_of(self) -> Whole:
        """Group of each row, shape (N,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @cached_property
    def member_starts(self) -> Whole:
        """Members of all groups before each one, shape (G + 1,): member m of group g has the number [g] + m."""
        return np.concatenate([[0], np.cumsum(self.members)])

    @cached_property
    def topic_starts(self) -> Whole:
        """First row of each topic of each group, and N; shape (T + 1,), T topics over all groups."""
        first = np.ones(len(self.lags), dtype=bool)
        first[1:] = self.topic_of[1:] != self.topic_of[:-1]
        first[self.starts[:-1]] = True
        return np.append(np.flatnonzero(first), len(self.lags))

    @cached_property
    def topic_sizes(self) -> Whole:
        """Partitions of each topic, shape (T,)."""
        return np.diff(self.topic_starts)

    @cached_property
    def group_of_topic(self) -> Whole:
        """Group of each topic, shape (T,)."""
        return self.group_of[self.topic_starts[:-1]]

    @cached_property
    def topic_number(self) -> Whole:
        """Topic of each row, numbered over all groups, shape (N,)."""
        return np.repeat(np.arange(len(self.topic_sizes)), self.topic_sizes)

    @cached_property
    def topics(self) -> Whole:
        """Topics of each group, shape (G,)."""
        return np.bincount(self.group_of_topic, minlength=len(self))

    def rows(self, groups: Whole) -> Whole:
        """Return the rows of these groups, group after group."""
        return rows_of_parts(self.starts, groups)

    # ---- lags ----------------------------------------------------------------------------------------------------

    @cached_property
    def totals(self) -> Whole:
        """Lag of each group in messages, shape (G,)."""
        return _over_groups(np.add, self.lags, self.starts)

    @cached_property
    def by_lag(self) -> Whole:
        """Rows by group, then lag, largest first, then row; shape (N,)."""
        return grouped(descending(self.lags), self.group_of)

    @cached_property
    def by_topic_and_lag(self) -> Whole:
        """Rows by group, then topic, then lag, largest first, then row; shape (N,)."""
        return grouped(self.by_lag, self.topic_number)

    # ---- plans ---------------------------------------------------------------------------------------------------

    def numbers(self, member_of: Whole) -> Whole:
        """Return the number of each row's member over all groups, shape (N,); every row must have a member."""
        return self.member_starts[self.group_of] + member_of

    def loads(self, member_of: Whole) -> Whole:
        """Return the lag of each member in messages, shape (sum of members,); every row must have a member."""
        loads = np.zeros(self.member_starts[-1], dtype=np.int64)
        np.add.at(loads, self.numbers(member_of), self.lags)
        return loads

    def makespan(self, member_of: Whole) -> Whole:
        """Return the largest load of each group in messages, shape (G,)."""
        return _over_groups(np.maximum, self.loads(member_of), self.member_starts)

    def spread(self, member_of: Whole) -> Whole:
        """Return the largest minus the smallest load of each group in messages, shape (G,)."""
        return _range_over(self.loads(member_of), self.member_starts)

    def moves(self, member_of: Whole) -> Whole:
        """Return the partitions of each group that leave their owner, shape (G,)."""
        return self.count_rows((self.owner != NOBODY) & (member_of != self.owner))

    def forced_moves(self) -> Whole:
        """Return the partitions of each group that have no owner, shape (G,)."""
        return self.count_rows(self.owner == NOBODY)

    def count_rows(self, chosen: Bools) -> Whole:
        """Return the number of chosen rows of each group, shape (G,)."""
        return _over_groups(np.add, chosen.astype(np.int64), self.starts)

    def keeps(self, member_of: Whole, balance: str) -> Bools:
        """Return True for each group whose rows all have a member and keep the count balance (slack 0), shape (G,)."""
        placed: Bools = self.count_rows(member_of == NOBODY) == 0
        if balance == Balance.NONE:
            return placed
        held = np.maximum(member_of, 0)
        if balance in (Balance.GROUP, Balance.BOTH):
            counts = np.bincount(self.numbers(held), minlength=self.member_starts[-1])
            placed &= _range_over(counts, self.member_starts) <= 1
        if balance in (Balance.TOPIC, Balance.BOTH):
            placed[self.group_of_topic[~self._even_topics(held)]] = False
        return placed

    def _even_topics(self, member_of: Whole) -> Bools:
        """Return True for each topic of which members hold even numbers of partitions, shape (T,)."""
        members = self.members[self.group_of_topic]
        firsts = np.concatenate([[0], np.cumsum(members)])
        cells, counts = np.unique(firsts[self.topic_number] + member_of, return_counts=True)
        topics = np.searchsorted(firsts, cells, side="right") - 1
        least, over = np.divmod(self.topic_sizes, members)
        uneven = (counts < least[topics]) | (counts > (least + (over > 0))[topics])
        even: Bools = (least == 0) | (np.bincount(topics, minlength=len(members)) == members)
        even[topics[uneven]] = False
        return even


def rows_of_parts(starts: Whole, chosen: Whole) -> Whole:
    """Return the rows starts[k]:starts[k + 1] of some parts k, part after part."""
    return spans(starts[:-1][chosen], np.diff(starts)[chosen])[0]


def sums_over(values: Whole, starts: Whole) -> Whole:
    """Return the sum over each part starts[k]:starts[k + 1] of `values`, none of which is empty; shape (K,)."""
    return _over_groups(np.add, values, starts)


def _over_groups(reduce: np.ufunc, values: Whole, starts: Whole) -> Whole:
    """Return a reduction over each of the parts of `values`, none of which is empty."""
    return reduce.reduceat(values, starts[:-1]) if len(starts) > 1 else np.zeros(0, dtype=np.int64)


def _range_over(values: Whole, starts: Whole) -> Whole:
    """Return the largest minus the smallest value of each of the parts."""
    return _over_groups(np.maximum, values, starts) - _over_groups(np.minimum, values, starts)


# ---- orders ----------------------------------------------------------------------------------------------------------


def descending(values: Whole) -> Whole:
    """Return the order of values >= 0 from the largest to the smallest, equal ones in their order.

    The position is packed into the key, because sorting numbers is ten times as fast as sorting positions stably.
    """
    bits = len(values).bit_length()
    largest = int(values.max(initial=0))
    if largest.bit_length() + bits > MOST_BITS:
        return np.argsort(-values, kind="stable")
    keys = np.sort(((largest - values) << bits) | np.arange(len(values)))
    return keys & ((1 << bits) - 1)


def grouped(order: Whole, group_of: Whole) -> Whole:
    """Return the entries of `order` by group, each group's in their order; groups are numbered from 0."""
    bits = len(order).bit_length()
    keys = np.sort((group_of[order] << bits) | np.arange(len(order)))
    ordered: Whole = order[keys & ((1 << bits) - 1)]
    return ordered


def alike(widths: Whole, heights: Whole, most: int) -> Iterator[Whole]:
    """Yield indices of pairs (width, height) that are nearly the same, so that tables of their size waste little.

    Parameters
    ----------
    widths, heights : int64 arrays (K,)
        Sizes of tables, >= 1.
    most : int
        Cells that the tables of one part may have together, unless it is a single one.
    """
    classes = np.stack([np.ceil(3 * np.log2(sizes)).astype(np.int64) for sizes in (widths, heights)])
    order = np.lexsort(classes)
    changes = np.flatnonzero((np.diff(classes[:, order], axis=1) != 0).any(axis=0)) + 1
    for part in np.split(order, changes) if len(order) else []:
        step = max(most // int(widths[part].max() * heights[part].max()), 1)
        for first in range(0, len(part), step):
            yield part[first : first + step]
