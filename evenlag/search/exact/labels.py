"""Partial plans: what some of the members do together, and what they leave open to the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Whole
from evenlag.search.exact.bits import Bits, sizes_of
from evenlag.search.patterns import runs


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


@dataclass(frozen=True)
class Origin:
    """Which partial plans of two smaller sets of members each one was joined of: `i` of `one` with `j` of `two`."""

    one: PartialPlans
    i: Whole
    two: PartialPlans
    j: Whole


@dataclass
class PartialPlans:
    """What some members do together; N ways, the states of the dynamic programming.

    Attributes
    ----------
    members : list of int
        Places in the list of members.
    inside : uint64 array (W,)
        The partitions that these members hold today.
    open : uint64 array (W, N)
        What they give and none of them takes, and what they take and none of them gives; without idle partitions.
    idle : int64 array (N,)
        How many more idle partitions (member_share.py) they hold than today.
    gives : int64 array (N,)
        How many partitions leave their owner.
    low, high : int64 arrays (N,)
        The smallest load, or `min_load_ub` if that is less; the largest, or `max_load_lb` if that is more.
    load : int64 array (N,)
        The sum of reduced lags.
    lost : int64 array (N,)
        What the members could hold more by some prices of partitions; 0 without prices.
    origin : Origin or None
        None for a single member.
    """

    members: list[int]
    inside: Bits
    open: Bits
    idle: Whole
    gives: Whole
    low: Whole
    high: Whole
    load: Whole
    lost: Whole
    origin: Origin | None = None

    def __len__(self) -> int:
        return len(self.gives)

    def take(self, kept: NDArray[np.generic]) -> PartialPlans:
        """Return only these, in this order."""
        of = self.origin
        origin = None if of is None else Origin(of.one, of.i[kept], of.two, of.j[kept])
        idle, gives, low, high, load, lost = (
            column[kept] for column in (self.idle, self.gives, self.low, self.high, self.load, self.lost)
        )
        return PartialPlans(self.members, self.inside, self.open[:, kept], idle, gives, low, high, load, lost, origin)

    def by_moves(self, elsewhere: Bits) -> list[tuple[int, Whole]]:
        """Return which have how many moves, made or called for of partitions held `elsewhere`, fewest first."""
        moves = self.gives + sizes_of(self.open & elsewhere[:, None])
        order = np.argsort(moves, kind="stable")
        numbers, starts = np.unique(moves[order], return_index=True)
        return list(zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)) if len(order) else []

    def exchanges(self, row: int) -> Iterator[tuple[int, Bits, int]]:
        """Return what each member does in one of them, and how many more idle partitions it holds."""
        if self.origin is None:
            yield self.members[0], self.open[:, row], int(self.idle[row])
        else:
            yield from self.origin.one.exchanges(int(self.origin.i[row]))
            yield from self.origin.two.exchanges(int(self.origin.j[row]))


def joined(one: PartialPlans, i: Whole, two: PartialPlans, j: Whole) -> PartialPlans:
    """Return the partial plans that such pairs make."""
    low, high = np.minimum(one.low[i], two.low[j]), np.maximum(one.high[i], two.high[j])
    gives, load, lost = one.gives[i] + two.gives[j], one.load[i] + two.load[j], one.lost[i] + two.lost[j]
    idle = one.idle[i] + two.idle[j]
    members, inside, opened = one.members + two.members, one.inside | two.inside, one.open[:, i] ^ two.open[:, j]
    return PartialPlans(members, inside, opened, idle, gives, low, high, load, lost, Origin(one, i, two, j))


def compatible(mine: Bits, inside: Bits, theirs: Bits, their_inside: Bits) -> tuple[Whole, Whole]:
    """Return the pairs in which each takes from the other only what that gives, and not both the same.

    Of what each set of members holds, bits are turned over: then it is the same bit in both that stands in the way,
    whether one takes what the other keeps, or both take the same.
    """
    mine, theirs = mine ^ inside[:, None], theirs ^ their_inside[:, None]
    clash = theirs[0][:, None] & mine[0]
    for of_mine, of_theirs in zip(mine[1:], theirs[1:], strict=True):
        clash |= of_theirs[:, None] & of_mine
    fits = clash == 0
    j = np.repeat(np.arange(len(fits)), np.count_nonzero(fits, axis=1))
    return np.flatnonzero(fits.ravel()) - j * mine.shape[1], j


def equal_pairs(mine: Bits, theirs: Bits) -> tuple[Whole, Whole]:
    """Return all pairs of equal columns."""
    both = np.concatenate([mine, theirs], axis=1)
    order = np.lexsort(both)
    same = (both[:, order[1:]] == both[:, order[:-1]]).all(axis=0)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.concatenate([[0], np.cumsum(~same)])
    my_number, their_number = np.split(number, [mine.shape[1]])
    order = np.argsort(their_number, kind="stable")
    begin, end = (np.searchsorted(their_number[order], my_number, side=side) for side in ("left", "right"))
    i, at = runs(end - begin, begin)
    return i, order[at]
