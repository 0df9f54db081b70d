"""Array steps that several assignors share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenlag.model.arrays import Whole, rank_within, stable_order
from evenlag.model.problem import NOBODY, Index, Problem


def in_turn(wanted: Whole) -> Whole:
    """Return member numbers in rounds, each member in as many rounds as it wants: [1, 3, 2] → [0, 1, 2, 1, 2, 1]."""
    levels = np.unique(wanted)
    rounds = np.diff(levels, prepend=0)
    parts = [np.tile(np.flatnonzero(wanted >= level), times) for level, times in zip(levels, rounds, strict=True)]
    return np.concatenate(parts)


def owned_counts(problem: Problem) -> Whole:
    """Return how many partitions each member owned before, shape (M,)."""
    return held_counts(problem.owner, len(problem.members))


def held_counts(member_of: Index, members: int) -> Whole:
    """Return how many partitions each member has, shape (M,)."""
    return np.bincount(member_of[member_of != NOBODY], minlength=members).astype(np.int64)


def same_topics(problem: Problem) -> bool:
    """Whether every member subscribes to the same topics, pins and caps aside."""
    return bool((problem.subscribed == problem.subscribed[:, :1]).all())


def even_share(owned: Whole, partitions: int, order: Callable[[], Whole] | None = None) -> tuple[int, Whole]:
    """Return ⌊P/C⌋, and how many of its partitions each member keeps where counts are to be ⌊P/C⌋ or ⌈P/C⌉.

    Only P mod C members can have ⌈P/C⌉: the first of those that own so many, by id or in the order given. As the
    members that keep more than ⌊P/C⌋ are never too many, the partitions nobody keeps always suffice to fill the others.
    `owned` has the number of partitions that each of the C members owns.
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
    """Return who takes each of some partitions, always the one with the fewest, then the first of `members`."""
    held = counts[members]
    ascending = np.sort(held)
    below = np.cumsum(ascending)
    to_level = ascending * np.arange(1, len(members) + 1) - below  # what brings all before up to each member
    raised = max(int(np.searchsorted(to_level, partitions)), 1)
    level = -(-(partitions + int(below[raised - 1])) // raised)  # nobody ends above it
    slots = np.repeat(np.arange(len(members)), np.maximum(level - held, 0))
    height = held[slots] + rank_within(slots)
    return members[slots[stable_order(height)[:partitions]]]
