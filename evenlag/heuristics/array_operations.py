"""Array operations shared by several assignors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenlag.model.arrays import Whole, rank_within, stable_order
from evenlag.model.problem import NOBODY, Index, Problem


def in_turn(wanted: Whole) -> Whole:
    """Return member numbers in rounds, each member in `wanted` of them: [1, 3, 2] → [0, 1, 2, 1, 2, 1]."""
    levels = np.unique(wanted)
    rounds = np.diff(levels, prepend=0)
    parts = [np.tile(np.flatnonzero(wanted >= level), times) for level, times in zip(levels, rounds, strict=True)]
    return np.concatenate(parts)


def owned_counts(problem: Problem) -> Whole:
    """Return the number of partitions that each member owns today, shape (M,)."""
    return held_counts(problem.owner, len(problem.members))


def held_counts(member_of: Index, members: int) -> Whole:
    """Return the number of partitions that each member has, shape (M,)."""
    return np.bincount(member_of[member_of != NOBODY], minlength=members).astype(np.int64)


def same_topics(problem: Problem) -> bool:
    """Return True if every member subscribes to the same topics; pins and caps do not matter."""
    return bool((problem.subscribed == problem.subscribed[:, :1]).all())


def even_share(owned: Whole, partitions: int, order: Callable[[], Whole] | None = None) -> tuple[int, Whole]:
    """Return ⌊P/C⌋, and the number of its partitions that each member keeps if counts must be ⌊P/C⌋ or ⌈P/C⌉.

    Only P mod C members can have ⌈P/C⌉: the first of those that own more than ⌊P/C⌋, by id or in the given order. No
    more members than that keep ⌈P/C⌉, so the partitions that nobody keeps always suffice to fill the others.

    Parameters
    ----------
    owned : int64 array (C,)
        Partitions that each member owns.
    partitions : int
        P.
    order : callable, optional
        Returns all members in the order of precedence; called only if it matters.
    """
    low, extra = divmod(partitions, len(owned))
    keep = np.minimum(owned, low)
    over = owned > low
    if order is not None and 0 < extra < over.sum():
        sequence = order()
        over_first = sequence[over[sequence]]
    else:
        over_first = np.flatnonzero(over)
    keep[over_first[:extra]] += 1
    return low, keep


def fewest_first(counts: Whole, members: Whole, partitions: int) -> Whole:
    """Return the takers of some partitions: each goes to the member with the fewest, then the first in `members`."""
    held = counts[members]
    ascending = np.sort(held)
    below = np.cumsum(ascending)
    to_level = ascending * np.arange(1, len(members) + 1) - below  # partitions that lift all before to each
    raised = max(int(np.searchsorted(to_level, partitions)), 1)
    level = -(-(partitions + int(below[raised - 1])) // raised)  # the highest count at the end
    slots = np.repeat(np.arange(len(members)), np.maximum(level - held, 0))
    height = held[slots] + rank_within(slots)
    return members[slots[stable_order(height)[:partitions]]]
