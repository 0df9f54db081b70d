"""Plans of some groups as tables: one slot per partition that a member may hold, filled with a partition or empty."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import NOBODY, Bools, Whole, spans
from evenlag.model.group_columns import grouped
from evenlag.search.columns.group_rules import CountRules

Number = TypeVar("Number", np.int64, np.int32, np.float32)
Shares = NDArray[np.float32]

MOST_EXTRAS = 1 << 22  # cells of the table of topic counts; beyond, only partitions of one topic are exchanged
FREE_SLOTS = 2  # empty slots per member, if total counts are not limited


class Slots:
    """Plans of B groups of at most W members with K slots each.

    An exchange swaps the contents of two slots of two members. An empty slot counts as a partition without lag, so a
    transfer is an exchange as well. Member m of group b has the row b · W + m in all tables; slot k of it has the place
    (b · W + m) · K + k.

    Parameters
    ----------
    part : int64 array (B,)
        The groups: either all count topics, or none does.
    member_of : int64 array (N,)
        A plan that keeps the rules.

    Attributes
    ----------
    loads : int64 array (B · W,)
        In messages.
    sizes : int64 array (B,)
        Slots of each member of a group; other slots are closed.
    closed : bool array (B, K)
    empty : int64 array (B · W,)
        Empty slots of each member.
    none : bool array (B, W)
        True where there is no member.
    content : int64 array (B · W, K)
        Partition in each slot, N if it is empty.
    share : float32 array (B · W, K)
        Its lag as a share of the group's mean load, by which exchanges are compared.
    home : int32 array (B · W, K)
        Row of its owner, or `NOBODY`.
    topic : int32 array (B · W, K) or None
        Its topic within the group, T if the slot is empty; None if topics do not count.
    extras : int16 array (B · W, T + 1) or None
        Partitions of each topic beyond the fewest that a member may have, then its empty slots. None if topics do not
        count, or if the table would be too large.
    """

    def __init__(self, rules: CountRules, part: Whole, member_of: Whole) -> None:
        groups = rules.groups
        self.part, self.nothing = part, len(groups.lags)
        self.members, self.even = groups.members[part], rules.even[part]
        self.width = int(self.members.max())
        self.none = np.arange(self.width) >= self.members[:, None]
        rows = groups.by_lag[groups.rows(part)]
        of = np.repeat(np.arange(len(part)), groups.sizes[part])
        member = of * self.width + member_of[rows]
        counts = np.bincount(member, minlength=self.none.size)
        fullest = counts.reshape(self.none.shape).max(axis=1)
        self.sizes = np.where(self.even, rules.most[part], fullest + FREE_SLOTS)
        self.slots = int(self.sizes.max())
        self.closed = np.arange(self.slots) >= self.sizes[:, None]
        self.empty = np.repeat(self.sizes, self.width) - counts
        order = grouped(np.arange(len(rows)), member)
        rows, of, member = rows[order], of[order], member[order]
        place = member * self.slots + np.arange(len(rows)) - (np.cumsum(counts) - counts)[member]
        self.scale = self.members / np.maximum(groups.totals[part], 1)  # shares of the mean load per message
        self.lags = rules.lags_and_none
        self.loads = np.zeros(self.none.size, dtype=np.int64)
        np.add.at(self.loads, member, groups.lags[rows])
        owner = groups.owner[rows]
        home = np.where(owner == NOBODY, NOBODY, of * self.width + owner).astype(np.int32)
        self.content = self._table(place, rows, self.nothing)
        self.share = self._table(place, (groups.lags[rows] * self.scale[of]).astype(np.float32), 0)
        self.home = self._table(place, home, NOBODY)
        self.topic: NDArray[np.int32] | None = None
        self.extras: NDArray[np.int16] | None = None
        if rules.by_topic[part[0]]:
            self._count_topics(rules, rows, of, place)

    def _table(self, place: Whole, values: NDArray[Number], otherwise: int) -> NDArray[Number]:
        table = np.full((self.none.size, self.slots), otherwise, dtype=values.dtype)
        table.reshape(-1)[place] = values
        return table

    def _count_topics(self, rules: CountRules, rows: Whole, of: Whole, place: Whole) -> None:
        groups = rules.groups
        first = np.searchsorted(groups.group_of_topic, self.part)  # topic of each group
        kinds = int(groups.topics[self.part].max()) + 1  # topics, and empty slots
        topic = groups.topic_number[rows] - first[of]
        self.topic = self._table(place, topic.astype(np.int32), kinds - 1)
        if self.none.size * kinds > MOST_EXTRAS:
            return
        cells = place // self.slots * kinds + topic
        extras = np.bincount(cells, minlength=self.none.size * kinds).reshape(*self.none.shape, kinds)
        topics, group = spans(first, groups.topics[self.part])
        extras[group, :, topics - first[group]] -= (groups.topic_sizes[topics] // self.members[group])[:, None]
        extras[..., -1] = self.empty.reshape(self.none.shape)
        self.extras = extras.reshape(-1, kinds).astype(np.int16)

    # ---- what exchanges would do -------------------------------------------------------------------------------------

    def stuck(self, group: Whole, member: Whole, taker: Whole) -> Bools:
        """Return True for slots of members, shape (n, K), that are closed, or empty when the taker has one itself."""
        shut = self.closed[group]
        full = np.flatnonzero(self.even[group] & (self.empty[taker] > 0))
        shut[full] |= self.content[member[full]] == self.nothing
        return shut

    def free(self, group: Whole, member: Whole, taker: Whole) -> Bools:
        """Return a mask of slots whose partition may go to the taker without one of the same topic in return.

        The member must have more than the fewest partitions of this topic, and the taker not. Shape (n, K).
        """
        assert self.topic is not None
        assert self.extras is not None
        topic = self.topic[member]
        more, fewest = self.extras[member] > 0, self.extras[taker] == 0
        may: Bools = np.take_along_axis(more & fewest, topic, axis=1)
        may |= (topic == self.extras.shape[1] - 1) & ~self.even[group][:, None]
        return may

    def new_moves(self, home: NDArray[np.int32], member: Whole, taker: Whole) -> NDArray[np.int8]:
        """Return the change in moves if partitions go from a member to the taker: 1, 0 or -1."""
        more: NDArray[np.int8] = np.subtract(home == member, home == taker, dtype=np.int8)
        return more

    @property
    def moves(self) -> Whole:
        """Partitions of each group that are not with their owner, shape (B,)."""
        away = (self.home != NOBODY) & (self.home != np.arange(self.none.size)[:, None])
        moves: Whole = away.sum(axis=1).reshape(self.none.shape).sum(axis=1)
        return moves

    # ---- exchanges ---------------------------------------------------------------------------------------------------

    def exchange(self, given: Whole, taken: Whole) -> None:
        """Swap the contents of pairs of places; no member may occur twice."""
        giver, taker = given // self.slots, taken // self.slots
        contents = self.content.reshape(-1)
        left, entered = contents[given], contents[taken]
        gained = self.lags[entered] - self.lags[left]
        self.loads[giver] += gained
        self.loads[taker] -= gained
        freed = (entered == self.nothing).astype(np.int64) - (left == self.nothing)
        self.empty[giver] += freed
        self.empty[taker] -= freed
        if self.extras is not None and self.topic is not None:
            gone, new = self.topic.reshape(-1)[given], self.topic.reshape(-1)[taken]
            self.extras[giver, gone] -= 1
            self.extras[giver, new] += 1
            self.extras[taker, new] -= 1
            self.extras[taker, gone] += 1
        for table in (self.content, self.share, self.home, self.topic):
            if table is not None:
                flat = table.reshape(-1)
                flat[given], flat[taken] = flat[taken], flat[given]

    def write(self, member_of: Whole) -> None:
        """Write the plans into `member_of`, shape (N,)."""
        row, slot = np.nonzero(self.content != self.nothing)
        member_of[self.content[row, slot]] = row % self.width
