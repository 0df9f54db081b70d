"""Set partitioning: the best plan of few partitions from enumerated patterns, or a proof that none is better.

The formulation is that of Balas and Padberg 1976: choose columns, here patterns of one member, so that every partition
is in exactly one. All columns that a plan within a target could use are enumerated (subsets.py). So if no choice of
them is a plan, no such plan exists. The target spread rises from the bound in growing steps (iterative deepening, Korf
1985). A step without a plan raises the bound, and the first plan found is the best one. Unlike branch and price, no
linear relaxation generates columns, since it says nothing about which lags add up to a load.

Columns are chosen by dynamic programming over the members, with dominance. Narrow windows of loads leave few labels. A
label is a partial plan: the patterns of the first members. The holder of the biggest partition comes first, then the
holder of the biggest one left, and so on. So no plan is met twice. Among labels with the same partitions and the same
number of members, one is dropped if another dominates it in both the smallest and the largest load. A label is also
dropped if its best completion exceeds the target spread.

Partitions without lag change no load. They are left out of the patterns and assigned last. It only matters that enough
of them exist for the members that hold too few others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Whole
from evenlag.model.balance import CountRule
from evenlag.model.bounds import LoadBounds, max_reduced_load, reduced_lags
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY
from evenlag.search.exact.deepening import Pace, Proof, deepened, findings
from evenlag.search.incumbent import Bound, Finding, Incumbent
from evenlag.search.stage import Stage
from evenlag.search.subsets import (
    WORD,
    EnumerationLimitError,
    exact_cover_is_a_plan,
    patterns_within,
    undominated,
    unpacked,
)
from evenlag.search.task import Task

Words = NDArray[np.uint64]  # sets of up to 64 partitions, the biggest in the lowest bit

ONE = np.uint64(1)
AT_ONCE = 1 << 19  # pairs of label and pattern compared in one step of the clock: about 2 ms

MOST_PARTITIONS = WORD  # with lag; those of a label fit one word
MOST_HELD = 6  # per member, without idle ones; with more, nearly every load can be reached in too many ways


@dataclass(frozen=True)
class PartitioningParams:
    """Parameters of set partitioning; the limits take about a second and 200 MB."""

    listed: float = 60_000  # most patterns of one size
    labels: float = 400_000  # most labels of one number of members
    pace: Pace = Pace(first=1 / 64)

    def times(self, share: float) -> PartitioningParams:
        """Return the parameters with a share of the limits."""
        return replace(self, listed=share * self.listed, labels=share * self.labels)


@dataclass(frozen=True)
class Patterns:
    """Patterns by their biggest partition. Each array but `starts` has one entry per pattern."""

    bits: Words
    loads: Whole
    reduced: Whole  # sums of reduced lags
    starts: Whole  # index of the first pattern whose biggest partition is 0, 1, …


class Candidates:
    """Partitions with lag, biggest first and at least one per member, and the patterns that members may hold.

    Parameters
    ----------
    rule : CountRule
        Members must be identical and partitions interchangeable.
    bounds : LoadBounds
        Bounds on the largest and the smallest load.

    Attributes
    ----------
    items : int64 array (N,)
    idle : int64 array
        The other partitions, all without lag.
    fewest, most : int
        Limits on a member's number of partitions, including idle ones.
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
        if reduced[self.idle].any():  # the idle partitions are left out, so each must count 0
            reduced = np.minimum(rule.problem.lags, max(self.min_load_ub, 0))
        self.reduced = reduced[self.items]
        self.raised = int(np.maximum(self.reduced - self.lags, 0).sum())
        first = self.members[0]
        self.fewest = max(int(rule.total_bounds.lo[first]), 1)  # a member without partitions never improves a plan
        self.most = int(rule.total_bounds.hi[first])

    def idle_needed(self, held: Whole, members: int = 1) -> Whole:
        """Return the least number of idle partitions for `members` members that together hold `held` others."""
        return np.maximum(members * self.fewest - held, 0)

    def loads_within(self, spread: int) -> tuple[int, int]:
        """Return the least and the greatest load in plans with at most this spread."""
        return self.max_load_lb - spread, self.min_load_ub + spread

    def rows(self, spread: int, most: int) -> list[Whole]:
        """Enumerate the patterns of plans with at most this spread, in one array per number of partitions.

        Raises
        ------
        EnumerationLimitError
            More than `most` patterns have the same size.
        """
        least, greatest = self.loads_within(spread)
        most_sum = max_reduced_load(int(self.reduced.sum()), self.raised, len(self.members), least, greatest)
        sizes = range(max(self.fewest - len(self.idle), 1), min(self.most, len(self.items)) + 1)
        blocks = [patterns_within(self.reduced, size, least, most_sum, most) for size in sizes]
        loads = [self.lags[block].sum(axis=1) for block in blocks]
        return [block[(sums >= least) & (sums <= greatest)] for block, sums in zip(blocks, loads, strict=True)]

    def patterns(self, spread: int, most: int) -> Patterns:
        """Return these patterns by biggest partition. They hold consecutive ones of equal lags."""
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
        """Return the plan in which each member holds one of these patterns, and idle partitions fill up the counts."""
        member_of = np.full(len(self.problem.lags), NOBODY, dtype=np.int32)
        for member, row in zip(self.members.tolist(), patterns, strict=True):
            member_of[self.items[row]] = member
        held = np.array([len(row) for row in patterns], dtype=np.int64)
        needed = self.idle_needed(held)
        room = self.most - held - needed
        takers = np.concatenate([np.repeat(self.members, needed), np.repeat(self.members, room)])
        member_of[self.idle] = takers[: len(self.idle)]
        return Plan(self.problem, member_of)


@dataclass
class Labels:
    """Labels: partial plans of the first members. All arrays have shape (N,).

    Attributes
    ----------
    bits : uint64 array
        Partitions that are assigned.
    low, high : int64 arrays
        Smallest and largest load, including bounds on those of the remaining members.
    load, reduced : int64 arrays
        Sums of lags and of reduced lags.
    idle : int64 array
        Least number of idle partitions that these members need.
    parent, pattern : int64 arrays
        Label with one member less, and the pattern that was added to it.
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
        """Return the labels that a mask or index selects."""
        return Labels(*(column[kept] for column in vars(self).values()))

    def undominated(self) -> Labels:
        """Drop each label if another with the same partitions and idle need has no smaller low and no larger high."""
        return self.take(undominated(self.low, self.high, self.bits, self.idle))

    @classmethod
    def together(cls, parts: list[Labels]) -> Labels:
        """Concatenate labels."""
        return cls(*(np.concatenate(columns) for columns in zip(*(vars(part).values() for part in parts), strict=True)))


class PartitionDP:
    """Search for the plan of least spread, up to `spread`, that these patterns form.

    Parameters
    ----------
    spread : int
        In messages.
    most : int
        Largest number of labels with the same number of members.
    stop : callable
        Called before each step.
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
        """Return the least spread and its patterns, or None if there is no plan.

        Raises
        ------
        EnumerationLimitError
            More than `most` labels were needed, or `stop` ended the search.
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
        """Return the labels with one more member, after which `rest` members remain."""
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
        """Yield labels with the range of patterns that hold their biggest unassigned partition."""
        biggest = np.bitwise_count((~labels.bits & (labels.bits + ONE)) - ONE)
        for item in np.unique(biggest).tolist():
            same = np.flatnonzero(biggest == item)
            begin, end = self.patterns.starts[item : item + 2].tolist()
            step = max(AT_ONCE // max(end - begin, 1), 1)
            for at in range(0, len(same), step):
                yield same[at : at + step], begin, end

    def _added(self, labels: Labels, i: Whole, j: Whole, rest: int) -> Labels:
        """Add patterns j to labels i, and keep the labels that may lead to a plan."""
        case = self.candidates
        bits = labels.bits[i] | self.patterns.bits[j]
        left = len(case.lags) - np.bitwise_count(bits).astype(np.int64)
        idle = labels.idle[i] + self.idle_needed[j]
        kept = (((bits & self.after_its_like) >> ONE) & ~bits) == 0  # assign partitions of equal lag in order
        kept &= (left >= rest) & (left <= rest * case.most)
        kept &= idle + case.idle_needed(left, rest) <= len(case.idle)
        bits, i, j, idle = bits[kept], i[kept], j[kept], idle[kept]
        loads = self.patterns.loads[j]
        low, high = np.minimum(labels.low[i], loads), np.maximum(labels.high[i], loads)
        load, reduced = labels.load[i] + loads, labels.reduced[i] + self.patterns.reduced[j]
        if rest:  # some remaining member gets at most the mean of the remaining lag, and some at least the mean
            low, high = (
                np.minimum(low, (self.reduced - reduced) // rest),
                np.maximum(high, -((load - self.load) // rest)),
            )
        return Labels(bits, low, high, load, reduced, idle, i, j).take(high - low <= self.spread)


def _traced(layers: list[Labels], at: int) -> list[int]:
    """Return the patterns of the label `at` in the last layer, that of the last member first."""
    chosen = []
    for labels in reversed(layers):
        chosen.append(int(labels.pattern[at]))
        at = int(labels.parent[at])
    return chosen


def applies(rule: CountRule) -> bool:
    """Return True if all patterns can be enumerated: few partitions with lag, and few held by identical members."""
    problem = rule.problem
    members, lags = int(problem.active.sum()), problem.lags[problem.assignable]
    lagging = int(np.count_nonzero(lags))
    if not members <= len(lags) or lagging > MOST_PARTITIONS or not exact_cover_is_a_plan(rule):
        return False
    idle = (len(lags) - lagging) // members  # idle partitions per member, if spread evenly
    return int(rule.total_bounds.hi[problem.active].max()) - idle <= MOST_HELD


def best_partitioning(
    rule: CountRule,
    bounds: LoadBounds,
    spread: int,
    stop: Callable[[], bool],
    params: PartitioningParams = PartitioningParams(),
) -> Proof:
    """Find a plan with a smaller spread than the best known one, or prove that none exists.

    Parameters
    ----------
    rule : CountRule
        Rule for which `applies` is True.
    bounds : LoadBounds
        Bounds on the largest and the smallest load of any plan.
    spread : int
        Spread of the best known plan, in messages.
    stop : callable
        Called before each step of the dynamic programming.

    Returns
    -------
    Proof
        The bound is on the spread.
    """
    candidates = Candidates(rule, bounds)

    def look(target: int) -> tuple[int, Plan] | None:
        patterns = candidates.patterns(target, int(params.listed))
        found = PartitionDP(candidates, patterns, target, int(params.labels), stop).best()
        if found is None:
            return None
        best, chosen = found
        return best, candidates.plan([np.flatnonzero(unpacked(patterns.bits[i : i + 1], WORD)) for i in chosen])

    return deepened(max(candidates.max_load_lb - candidates.min_load_ub, 0), spread, look, stop, params.pace)


@dataclass(frozen=True)
class SetPartitioning(Stage):
    """Set partitioning, as a stage.

    Attributes
    ----------
    full_seconds : float
        With at least this much time the enumeration limits are highest.
    """

    full_seconds: float = 0.3
    params: PartitioningParams = PartitioningParams()
    name: str = "set partitioning"

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Return True if only loads count, in small groups of identical members."""
        return not task.moves_matter and applies(task.rule)

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Yield a better plan or prove that none exists; for the makespan only yield a plan with a smaller spread."""
        clock = task.clock
        size = min(clock.allowance() / self.full_seconds, 1.0)
        params = self.params.times(size)
        proof = best_partitioning(task.rule, task.bounds, int(best.plan.spread), clock.stop(), params)
        if proof.stopped != "proof" and size < 1:
            clock.ended()
        proven = findings(proof, clock, task.bounds)
        yield from proven if task.spread_matters else (found for found in proven if not isinstance(found, Bound))
