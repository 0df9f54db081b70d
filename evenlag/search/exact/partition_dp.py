"""Set partitioning by dynamic programming over the members, with dominance.

A label is a partial plan: what the first members hold. Whoever holds the biggest partition comes first, then whoever
holds the biggest of those left, and so on, so no plan is met twice. Of the labels that hand out the same partitions to
the same number of members only those are kept that no other dominates in both the smallest and the largest load, and
none whose rest, shared out at best, is past the spread asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Whole
from evenlag.search.exact.candidates import ONE, Candidates, Patterns, Words
from evenlag.search.exact.labels import undominated
from evenlag.search.patterns import EnumerationLimitError

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
