"""Array steps that several assignors share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Whole
from evenlag.model.problem import NOBODY, Problem


def stable_order(keys: NDArray[Any]) -> Whole:
    """Return `argsort(keys, kind="stable")`; NumPy sorts whole numbers of 16 bits by radix, some ten times faster."""
    if len(keys) and keys.min() >= -(2**15) and keys.max() < 2**15:
        keys = keys.astype(np.int16)
    return np.argsort(keys, kind="stable")


def rank_within(groups: NDArray[Any]) -> Whole:
    """Return each entry's rank among the entries of its group, in the order given: [7, 3, 7, 7] → [0, 0, 1, 2]."""
    order = stable_order(groups)
    ordered = groups[order]
    firsts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))[: len(groups)]
    ranks = np.empty(len(groups), dtype=np.int64)
    ranks[order] = np.arange(len(groups)) - np.repeat(firsts, np.diff(firsts, append=len(groups)))
    return ranks


def in_turn(wanted: Whole) -> Whole:
    """Return member numbers in rounds, each member in as many rounds as it wants: [1, 3, 2] → [0, 1, 2, 1, 2, 1]."""
    levels = np.unique(wanted)
    rounds = np.diff(levels, prepend=0)
    parts = [np.tile(np.flatnonzero(wanted >= level), times) for level, times in zip(levels, rounds, strict=True)]
    return np.concatenate(parts)


def undominated(low: Whole, high: Whole, *alike: NDArray[Any]) -> Whole:
    """Return the entries beside which there is none with the same `alike`, no smaller low and no larger high."""
    order = np.lexsort((-low, high, *alike))
    if len(order) < 2:
        return order
    other = np.zeros(len(order) - 1, dtype=bool)
    for column in alike:
        other |= np.diff(column[order]) != 0
    _, rank = np.unique(low[order], return_inverse=True)
    lifted = rank + np.concatenate([[0], np.cumsum(other)]) * (len(order) + 1)
    best: Whole = order[np.concatenate([[True], lifted[1:] > np.maximum.accumulate(lifted)[:-1]])]
    return best


def owned_counts(problem: Problem) -> Whole:
    """Return how many partitions each member owned before, shape (M,)."""
    return np.bincount(problem.owner[problem.owner != NOBODY], minlength=len(problem.members)).astype(np.int64)


def same_topics(problem: Problem) -> bool:
    """Whether every member subscribes to the same topics, pins and caps aside."""
    return bool((problem.subscribed == problem.subscribed[:, :1]).all())


def even_share(problem: Problem, order: Callable[[], Whole] | None = None) -> tuple[int, Whole]:
    """Return ⌊P/C⌋, and how many of its partitions each member keeps where counts are to be ⌊P/C⌋ or ⌈P/C⌉.

    Only P mod C members can have ⌈P/C⌉: the first of those that own so many, by id or in the order given. As the
    members that keep more than ⌊P/C⌋ are never too many, the partitions nobody keeps always suffice to fill the others.
    """
    low, extra = divmod(int(problem.assignable.sum()), len(problem.members))
    owned = owned_counts(problem)
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
