"""What members may hold in a better plan: the columns of a set partitioning problem whose members are alike.

Partitions without lag change no load. They are left out of the patterns and handed out last: all that matters is that
there are enough of them for the members that hold too few others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Whole
from evenlag.model.balance import CountRule
from evenlag.model.bounds import LoadBounds
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY
from evenlag.model.reduced_lags import max_reduced_load, reduced_lags
from evenlag.search.patterns import patterns_within

Words = NDArray[np.uint64]  # a set of up to 64 partitions each, the biggest is the lowest bit

ONE = np.uint64(1)


@dataclass(frozen=True)
class Patterns:
    """Patterns by their biggest partition; all arrays but `starts` have one entry for each."""

    bits: Words
    loads: Whole
    reduced: Whole  # sums of reduced lags
    starts: Whole  # where those begin whose biggest partition is 0, 1, …


class Candidates:
    """The partitions that have lag, at least one for each member, biggest first, and what members may hold of them.

    Parameters
    ----------
    rule : CountRule
        With members that are alike, and partitions that are interchangeable.
    bounds : LoadBounds
        What is proven of the largest and the smallest load.

    Attributes
    ----------
    items : int64 array (N,)
    idle : int64 array
        The other partitions, without lag.
    fewest, most : int
        Partitions of a member, idle ones among them.
    """

    def __init__(self, rule: CountRule, bounds: LoadBounds) -> None:
        self.problem = rule.problem
        self.members = np.flatnonzero(rule.problem.active)
        items = np.flatnonzero(rule.problem.assignable)
        items = items[np.argsort(-rule.problem.lags[items], kind="stable")]
        lagging = max(int(np.count_nonzero(rule.problem.lags[items])), len(self.members))
        self.items, self.idle = items[:lagging], items[lagging:]
        self.lags: Whole = rule.problem.lags[self.items]
        self.min_load_ub, self.max_load_lb = int(bounds.min_load_ub // 1), -int(-bounds.max_load_lb // 1)
        reduced = reduced_lags(rule, self.min_load_ub)
        if reduced[self.idle].any():  # those left out are not to count
            reduced = np.minimum(rule.problem.lags, max(self.min_load_ub, 0))
        self.reduced = reduced[self.items]
        self.raised = int(np.maximum(self.reduced - self.lags, 0).sum())
        first = self.members[0]
        self.fewest = max(int(rule.total_bounds.lo[first]), 1)  # no plan is better for a member that holds nothing
        self.most = int(rule.total_bounds.hi[first])

    def idle_needed(self, held: Whole, members: int = 1) -> Whole:
        """Return how many idle partitions so many members need at least that together hold so many others."""
        return np.maximum(members * self.fewest - held, 0)

    def loads_within(self, spread: int) -> tuple[int, int]:
        """Return the least and the greatest load in plans of at most this spread."""
        return self.max_load_lb - spread, self.min_load_ub + spread

    def rows(self, spread: int, most: int) -> list[Whole]:
        """List what a member may hold in plans of at most this spread, in one array for each number of them.

        Raises
        ------
        EnumerationLimitError
            There are more than `most` of one number.
        """
        least, greatest = self.loads_within(spread)
        most_sum = max_reduced_load(int(self.reduced.sum()), self.raised, len(self.members), least, greatest)
        sizes = range(max(self.fewest - len(self.idle), 1), min(self.most, len(self.items)) + 1)
        blocks = [patterns_within(self.reduced, size, least, most_sum, most) for size in sizes]
        loads = [self.lags[block].sum(axis=1) for block in blocks]
        return [block[(sums >= least) & (sums <= greatest)] for block, sums in zip(blocks, loads, strict=True)]

    def patterns(self, spread: int, most: int) -> Patterns:
        """Return the same by the biggest partition; of equal lags only neighbours, since they may change places."""
        columns = []
        for block in self.rows(spread, most):
            apart = np.diff(block, axis=1) > 1
            block = block[~(apart & (np.diff(self.lags[block], axis=1) == 0)).any(axis=1)]
            bits = np.bitwise_or.reduce(ONE << block.astype(np.uint64), axis=1)
            columns.append((block[:, 0], bits, self.lags[block].sum(axis=1), self.reduced[block].sum(axis=1)))
        first, bits, loads, reduced = (np.concatenate(column) for column in zip(*columns, strict=True))
        order = np.argsort(first, kind="stable")
        starts = np.searchsorted(first[order], np.arange(len(self.lags) + 1))
        return Patterns(bits[order], loads[order], reduced[order], starts)

    def plan(self, patterns: list[Whole]) -> Plan:
        """Return the plan in which each member holds one of these, and idle ones as counts ask for them."""
        member_of = np.full(len(self.problem.lags), NOBODY, dtype=np.int32)
        for member, row in zip(self.members.tolist(), patterns, strict=True):
            member_of[self.items[row]] = member
        held = np.array([len(row) for row in patterns], dtype=np.int64)
        needed = self.idle_needed(held)
        room = self.most - held - needed
        takers = np.concatenate([np.repeat(self.members, needed), np.repeat(self.members, room)])
        member_of[self.idle] = takers[: len(self.idle)]
        return Plan(self.problem, member_of)
