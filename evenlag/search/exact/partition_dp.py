"""Set partitioning by dynamic programming over the members, with dominance.

A label is a partial plan: what the first members hold. Whoever holds the biggest partition comes first, then whoever
holds the biggest of those left, and so on, so no plan is met twice. Of the labels that hand out the same partitions to
the same number of members only those are kept that no other dominates in both the smallest and the largest load, and
none whose rest, shared out at best, is past the spread asked for.

Partitions without lag change no load. They are left out of the patterns and handed out last: all that matters is that
there are enough of them for the members that hold too few others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Whole
from evenlag.model.balance import CountRule
from evenlag.model.bounds import LoadBounds
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY
from evenlag.model.reduced_lags import max_reduced_load, reduced_lags
from evenlag.search.exact.labels import undominated
from evenlag.search.patterns import EnumerationLimitError, patterns_within

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


AT_ONCE = 1 << 19  # pairs of label and pattern compared in one step of the clock: about 2 ms


@dataclass
class Labels:
    """What the first members may hold together; all arrays have one entry for each way, shape (N,).

    Attributes
    ----------
    bits : uint64 array
        The partitions that are handed out.
    low, high : int64 arrays
        The smallest and the largest load, members still to come included as far as is known of them.
    load, reduced : int64 arrays
        Sums of lags and of reduced lags.
    idle : int64 array
        How many partitions without lag these members need at least.
    parent, pattern : int64 arrays
        The label of one member less that it came from, and the pattern that was added.
    """

    bits: Words
    low: Whole
    high: Whole
    load: Whole
    reduced: Whole
    idle: Whole
    parent: Whole
    pattern: Whole

    def __len__(self) -> int:
        return len(self.bits)

    def take(self, kept: NDArray[np.generic]) -> Labels:
        """Return only these, in this order."""
        return Labels(*(column[kept] for column in vars(self).values()))

    def undominated(self) -> Labels:
        """Drop those beside which there is one of the same partitions with no smaller low and no larger high."""
        return self.take(undominated(self.low, self.high, self.bits, self.idle))

    @classmethod
    def together(cls, parts: list[Labels]) -> Labels:
        """Return all of these in one."""
        return cls(*(np.concatenate(columns) for columns in zip(*(vars(part).values() for part in parts), strict=True)))


class PartitionDP:
    """The search for the plan of least spread, up to `spread`, out of these patterns.

    Parameters
    ----------
    candidates : Candidates
    patterns : Patterns
    spread : int
        In messages.
    most : int
        Labels that may be kept of one number of members.
    stop : callable
        Asked before each step.
    """

    def __init__(
        self, candidates: Candidates, patterns: Patterns, spread: int, most: int, stop: Callable[[], bool]
    ) -> None:
        self.candidates, self.patterns = candidates, patterns
        self.spread, self.most, self.stop = spread, most, stop
        self.idle_needed = candidates.idle_needed(np.bitwise_count(patterns.bits).astype(np.int64))
        self.load, self.reduced = int(candidates.lags.sum()), int(candidates.reduced.sum())
        same = np.flatnonzero(np.diff(candidates.lags) == 0)
        after_its_like = ONE << (same + 1).astype(np.uint64)
        self.after_its_like = np.bitwise_or.reduce(np.concatenate([[np.uint64(0)], after_its_like]))

    def best(self) -> tuple[int, list[int]] | None:
        """Return the least spread and the patterns that make it, or None if there is no plan.

        Raises
        ------
        EnumerationLimitError
            There were more labels than `most`, or `stop` ended it.
        """
        labels, layers = self._empty(), []
        for rest in reversed(range(len(self.candidates.members))):
            labels = self._extended(labels, rest)
            layers.append(labels)
            if not len(labels):
                return None
        spreads = labels.high - labels.low
        at = int(spreads.argmin())
        return int(spreads[at]), _traced(layers, at)

    def _empty(self) -> Labels:
        zero = np.zeros(1, dtype=np.int64)
        low, high = zero + self.candidates.min_load_ub, zero + self.candidates.max_load_lb
        return Labels(zero.astype(np.uint64), low, high, zero, zero, zero, zero, zero)

    def _extended(self, labels: Labels, rest: int) -> Labels:
        """Return the labels of one member more; `rest` members are still to come after it."""
        found, size = [labels.take(np.zeros(0, dtype=np.int64))], 0
        for some, begin, end in self._batches(labels):
            if self.stop():
                raise EnumerationLimitError
            i, j = np.nonzero((labels.bits[some][:, None] & self.patterns.bits[None, begin:end]) == 0)
            found.append(self._added(labels, some[i], j + begin, rest))
            size += len(found[-1])
            if size > 2 * self.most:
                found = [Labels.together(found).undominated()]
                size = len(found[0])
                if size > self.most:
                    raise EnumerationLimitError
        return Labels.together(found).undominated()

    def _batches(self, labels: Labels) -> Iterator[tuple[Whole, int, int]]:
        """Yield labels with the range of patterns that hold the biggest partition left of them."""
        biggest = np.bitwise_count((~labels.bits & (labels.bits + ONE)) - ONE)
        for item in np.unique(biggest).tolist():
            same = np.flatnonzero(biggest == item)
            begin, end = self.patterns.starts[item : item + 2].tolist()
            step = max(AT_ONCE // max(end - begin, 1), 1)
            for at in range(0, len(same), step):
                yield same[at : at + step], begin, end

    def _added(self, labels: Labels, i: Whole, j: Whole, rest: int) -> Labels:
        """Add patterns j to labels i, as far as that can lead to a plan."""
        case = self.candidates
        bits = labels.bits[i] | self.patterns.bits[j]
        left = len(case.lags) - np.bitwise_count(bits).astype(np.int64)
        idle = labels.idle[i] + self.idle_needed[j]
        kept = (((bits & self.after_its_like) >> ONE) & ~bits) == 0  # of equal lags the first are handed out first
        kept &= (left >= rest) & (left <= rest * case.most)
        kept &= idle + case.idle_needed(left, rest) <= len(case.idle)
        bits, i, j, idle = bits[kept], i[kept], j[kept], idle[kept]
        loads = self.patterns.loads[j]
        low, high = np.minimum(labels.low[i], loads), np.maximum(labels.high[i], loads)
        load, reduced = labels.load[i] + loads, labels.reduced[i] + self.patterns.reduced[j]
        if rest:  # some member to come gets no more than their mean of what is left, and some no less
            low, high = (
                np.minimum(low, (self.reduced - reduced) // rest),
                np.maximum(high, -((load - self.load) // rest)),
            )
        return Labels(bits, low, high, load, reduced, idle, i, j).take(high - low <= self.spread)


def _traced(layers: list[Labels], at: int) -> list[int]:
    """Return the patterns that the last layer's label `at` was made of, the last member's first."""
    chosen = []
    for labels in reversed(layers):
        chosen.append(int(labels.pattern[at]))
        at = int(labels.parent[at])
    return chosen
