"""Plans of some groups as tables: one slot per partition that a member may hold, filled with a partition or empty."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import NOBODY, Bools, Whole
from evenlag.model.group_columns import grouped
from evenlag.search.columns.rules import CountRules, spans

Number = TypeVar("Number", np.int64, np.int32, np.float32)

MOST_EXTRAS = 1 << 22  # cells of the table of topic counts; beyond, only partitions of one topic are exchanged
FREE_SLOTS = 2  # of each member beyond its partitions, where total counts have no rule


class Slots:
    """Plans of B groups of at most W members with K slots each.

    An exchange swaps the contents of two slots of two members. An empty slot counts as a partition of no lag, so a
    transfer is an exchange as well.

    Parameters
    ----------
    rules : CountRules
    part : int64 array (B,)
        The groups; all of them count topics, or none.
    member_of : int64 array (N,)
        A plan that keeps the rules.

    Attributes
    ----------
    row : int64 array (B, W, K)
        Partition in each slot; N is none.
    lag : int64 array (B, W, K)
        Its lag in messages.
    share : float32 array (B, W, K)
        Its lag as a share of the group's mean load, to compare exchanges.
    home : int32 array (B, W, K)
        Its owner, or `NOBODY`.
    topic : int32 array (B, W, K) or None
        Its topic within the group, T if the slot is empty; None if topics do not count.
    extras : int16 array (B, W, T + 1) or None
        Partitions of each topic beyond the fewest a member may have, 0 or 1, then its empty slots. None if topics do
        not count, or if there are too many.
    empty : int64 array (B, W)
        Empty slots of each member.
    loads : int64 array (B, W)
        In messages.
    """

    def __init__(self, rules: CountRules, part: Whole, member_of: Whole) -> None:
        groups = rules.groups
        self.part, self.nothing = part, len(groups.lags)
        self.members = groups.members[part]
        self.even = rules.even[part]
        self.rows = groups.by_lag[groups.rows(part)]
        self.of = np.repeat(np.arange(len(part)), groups.sizes[part])
        width = int(self.members.max())
        numbers = self.of * width + member_of[self.rows]
        counts = np.bincount(numbers, minlength=len(part) * width)
        slots = np.where(self.even, rules.most[part], counts.reshape(len(part), width).max(axis=1) + FREE_SLOTS)
        self.shape = len(part), width, int(slots.max())
        self.none = np.arange(width) >= self.members[:, None]  # stand for no member, shape (B, W)
        order = grouped(np.arange(len(self.rows)), numbers)
        place = np.arange(len(order)) - (np.cumsum(counts) - counts)[numbers[order]]
        cells = numbers[order] * self.shape[2] + place
        rows = self.rows[order]
        self.closed = np.arange(self.shape[2]) >= np.where(self.even, slots, self.shape[2])[:, None]  # shape (B, K)
        self.row = self._table(cells, rows, self.nothing)
        self.lag = self._table(cells, groups.lags[rows], 0)
        mean = np.maximum(groups.totals[part] / self.members, 1)
        self.scale = 1 / mean
        self.share = self._table(cells, (groups.lags[rows] * self.scale[self.of[order]]).astype(np.float32), 0)
        self.home = self._table(cells, groups.owner[rows].astype(np.int32), NOBODY)
        self.loads = self.lag.sum(axis=2)
        self.empty = slots[:, None] - counts.reshape(self.shape[:2])
        self.topic: NDArray[np.int32] | None = None
        self.extras: NDArray[np.int16] | None = None
        if rules.by_topic[part[0]]:
            self._count_topics(rules, cells, rows)

    def _table(self, cells: Whole, values: NDArray[Number], otherwise: int) -> NDArray[Number]:
        table = np.full(self.shape, otherwise, dtype=values.dtype)
        table.reshape(-1)[cells] = values
        return table

    def _count_topics(self, rules: CountRules, cells: Whole, rows: Whole) -> None:
        groups = rules.groups
        first = np.searchsorted(groups.group_of_topic, self.part)  # topic of each group
        kinds = int(groups.topics[self.part].max()) + 1  # topics, and empty slots
        batch, width, slots = self.shape
        topic = (groups.topic_number[rows] - first[cells // (width * slots)]).astype(np.int32)
        self.topic = self._table(cells, topic, kinds - 1)
        if batch * width * kinds > MOST_EXTRAS:
            return
        counts = np.bincount(cells // slots * kinds + topic, minlength=batch * width * kinds)
        extras = counts.reshape(batch, width, kinds)
        topics, of = spans(first, groups.topics[self.part])
        fewest = groups.topic_sizes[topics] // self.members[of]
        extras[of, :, topics - first[of]] -= fewest[:, None]
        extras[..., -1] = self.empty
        self.extras = extras.astype(np.int16)

    # ---- exchanges, of slots given as indices (group, member, slot) --------------------------------------------------

    def new_moves(self, of: tuple[Whole, ...], taker: Whole) -> Whole:
        """Return by how many the moves grow if another member gets what is in these slots: 1, 0 or -1."""
        home = self.home[of]
        more: Whole = (home == of[1]).astype(np.int64) - (home == taker)
        return more

    def stuck(self, of: tuple[Whole, ...], taker: Whole) -> Bools:
        """Return True for empty slots that the taker may not get, as it would have two."""
        full = self.even[of[0]] & (self.empty[of[0], taker] > 0)
        found: Bools = full & (self.row[of] == self.nothing) if full.any() else np.zeros(1, dtype=bool)
        return found

    def free(self, of: tuple[Whole, ...], taker: Whole) -> Bools:
        """Return True for slots whose content may go to another member without a partition of the same topic in return.

        The giver has one more than the fewest of this topic, the taker has not.
        """
        assert self.topic is not None
        assert self.extras is not None
        topic = self.topic[of]
        may: Bools = (self.extras[of[0], of[1], topic] > 0) & (self.extras[of[0], taker, topic] == 0)
        may |= (topic == self.extras.shape[2] - 1) & ~self.even[of[0]]
        return may

    @property
    def moves(self) -> Whole:
        """Partitions of each group that are not with their owner, shape (B,)."""
        away = (self.home != NOBODY) & (self.home != np.arange(self.shape[1])[:, None])
        moves: Whole = np.count_nonzero(away, axis=(1, 2))
        return moves

    def exchange(self, group: Whole, giver: Whole, slot: Whole, taker: Whole, other: Whole) -> None:
        """Swap a slot's content with another's, for different groups or different pairs of members at a time."""
        gained = self.lag[group, taker, other] - self.lag[group, giver, slot]
        self.loads[group, giver] += gained
        self.loads[group, taker] -= gained
        if self.extras is not None and self.topic is not None:
            left, entered = self.topic[group, giver, slot], self.topic[group, taker, other]
            for member, gone, new in ((giver, left, entered), (taker, entered, left)):
                self.extras[group, member, gone] -= 1
                self.extras[group, member, new] += 1
        freed = (self.row[group, taker, other] == self.nothing).astype(np.int64)
        freed -= self.row[group, giver, slot] == self.nothing
        self.empty[group, giver] += freed
        self.empty[group, taker] -= freed
        for table in (self.row, self.lag, self.share, self.home, self.topic):
            if table is not None:
                kept = table[group, giver, slot]
                table[group, giver, slot] = table[group, taker, other]
                table[group, taker, other] = kept

    def write(self, member_of: Whole) -> None:
        """Write the plans into `member_of`, shape (N,)."""
        group, member, slot = np.nonzero(self.row != self.nothing)
        member_of[self.row[group, member, slot]] = member
