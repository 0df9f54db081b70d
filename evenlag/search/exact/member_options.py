"""Enumerate the exchanges of one member that have a given shape and leave it a load in a given range.

In an exchange the member gives some of its own partitions and takes some that nobody or another member owns. It may
also hold more or fewer idle partitions (member_share.py) than today. Exchanges are found by meet in the middle
(Horowitz and Sahni 1974): sums of given and of unowned partitions are looked up in the sorted sums of others' ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Bools, Whole, spans
from evenlag.model.balance import CountRule
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY
from evenlag.search.exact.member_share import idle_of
from evenlag.search.subsets import (
    WORD,
    Bits,
    EnumerationLimitError,
    bits_of,
    holds,
    packed,
    subsets,
    unpacked,
    weights_of,
)

# Own partitions to give, unowned ones to take, others' ones to take, and the change in the number of idle ones.
Shape = tuple[int, int, int, int]

HELD = 0  # index in a shape of the given partitions; among equivalent partitions the first ones are given

AT_ONCE = 1 << 18  # combinations looked up in one step of the clock


@dataclass(frozen=True)
class JoinLimits:
    """Enumeration limits. With these one member takes some tenths of a second."""

    subsets: float = 700_000  # of one kind and size
    looked_up: float = 2_000_000  # combinations of one shape
    hits: float = 1_000_000  # exchanges of one shape, before dominated ones are dropped
    exchanges: float = 500_000  # of one member: as many as the join can process
    patterns: float = 300_000  # of one member, with prices
    states: float = 1_500_000  # partial plans of one set of members, about 100 MB

    def times(self, share: float) -> JoinLimits:
        """Return a share of these limits."""
        return JoinLimits(*(share * most for most in astuple(self)))


@dataclass(frozen=True)
class Subsets:
    """Subsets of one kind and size, in ascending order of their sums.

    Attributes
    ----------
    bits : uint64 array (W, N)
        Partitions in each subset.
    alike : uint64 array (W, N)
        Partitions that are not worth exchanging for one in the subset; shape (W, 0) where there are none.
    sums : int64 array (N,)
        Sums of reduced lags.
    """

    bits: Bits
    alike: Bits
    sums: Whole


@dataclass(frozen=True)
class Exchanges:
    """The N exchanges that one member may make.

    Attributes
    ----------
    bits : uint64 array (W, N)
        Partitions that the member gives or takes, without idle ones.
    idle : int64 array (N,)
        Change in its number of idle partitions (member_share.py).
    reduced : int64 array (N,)
        Sum of the reduced lags that it then holds.
    gives : int64 array (N,)
        Number of partitions that it gives.
    lost : int64 array (N,)
        Reduced cost of the exchange by dual prices; 0 without prices.
    """

    bits: Bits
    idle: Whole
    reduced: Whole
    gives: Whole
    lost: Whole

    def __len__(self) -> int:
        return len(self.lost)

    def take(self, kept: Bools) -> Exchanges:
        """Return the exchanges that the mask keeps."""
        return Exchanges(self.bits[:, kept], self.idle[kept], self.reduced[kept], self.gives[kept], self.lost[kept])


class MemberOptions:
    """The subsets that one member may give and take, and their sums.

    Parameters
    ----------
    reduced : int64 array
        Reduced lags (model/bounds.py) of the assignable partitions. The sum of every member is at least the smallest
        load, and little is left to share beyond that.
    price : int
        Price of a move, in messages.

    Attributes
    ----------
    held, unowned, foreign : int64 array
        Partitions of this member, of nobody and of other members, as indices among the assignable partitions. Idle
        partitions are excluded. Partitions whose owner may hold none are unowned.
    count : int
        Number of partitions that it holds today, including idle ones.
    idle : Idle
    own_idle : int
    """

    def __init__(
        self, rule: CountRule, member: int, reduced: Whole, price: int, limits: JoinLimits = JoinLimits()
    ) -> None:  # fmt: skip
        problem = rule.problem
        items = np.flatnonzero(problem.assignable)
        owner, lags = problem.owner[items], problem.lags[items]
        owner = np.where((owner != NOBODY) & problem.active[owner], owner, NOBODY)
        self.idle = idle_of(rule)
        idle = np.isin(items, self.idle.places)
        self.own_idle = self.idle.owned(member)
        self.count = int((owner == member).sum())
        self._idle_lag = int(reduced[idle].max(initial=0))  # the same for all idle partitions
        self.member, self.limits, self._problem = member, limits, problem
        self.lags, self.beyond = reduced, lags - reduced
        different, numbers = np.unique(lags, return_inverse=True)
        self.twins = len(different) < len(items)
        kinds = np.stack([np.where(idle, NOBODY, owner), numbers, *_places_of(rule, items)])
        self.kinds: Whole = np.unique(kinds, axis=1, return_inverse=True)[1].ravel()
        near = 2 * np.abs(lags[:, None] - lags[None, :]) <= price
        for where in _places_of(rule, items):
            near &= where[:, None] == where
        near[idle], near[:, idle] = np.eye(len(items), dtype=bool)[idle], np.eye(len(items), dtype=bool)[:, idle]
        self.any_alike = bool(near.sum() > len(items))
        self.held, self.unowned = np.flatnonzero(~idle & (owner == member)), np.flatnonzero(~idle & (owner == NOBODY))
        self.foreign = np.flatnonzero(~idle & (owner != member) & (owner != NOBODY))
        self.lo, self.hi = int(rule.total_bounds.lo[member]), int(rule.total_bounds.hi[member])
        self.load = int(self.lags[self.held].sum())
        self.words = -(-len(items) // WORD)
        self.alike = np.array([packed(row, self.words) for row in near])
        self.inside = packed(~idle & (owner == member), self.words)
        self.idle_bits, self.unowned_bits = (packed(each, self.words) for each in (idle, ~idle & (owner == NOBODY)))
        self.none: Bits = np.zeros((self.words, 0), dtype=np.uint64)
        self._known: dict[tuple[int, int], Subsets] = {}

    def shapes(self, gives: int, takes: int, most: int) -> Iterator[Shape]:
        """Yield the shapes that the counts allow, with at least these gives and takes and at most `most` moves."""
        for more in self._idle_changes():
            left, got = max(-more, 0), max(more, 0)
            moved = left + max(got - self.idle.more, 0)
            for give in range(max(gives - left, 0), min(len(self.held), most - moved) + 1):
                kept = self.count + more - give
                for take in range(max(self.lo - kept, takes - got, 0), self.hi - kept + 1):
                    for unowned in range(min(take, len(self.unowned)) + 1):
                        others = take - unowned
                        if others <= len(self.foreign) and give + others + moved <= most:
                            yield give, unowned, others, more

    def _idle_changes(self) -> range:
        """Return the possible changes in the number of its idle partitions."""
        return range(-self.own_idle, len(self.idle.places) - self.own_idle + 1) if self.idle.counted else range(1)

    def reduced_idle(self, more: Whole | int) -> Whole | int:
        """Return the reduced lag of its idle partitions when their number changes by `more`."""
        return (self.own_idle + more) * self._idle_lag

    def plan(self, chosen: NDArray[np.int32], more: dict[int, int]) -> Plan:
        """Return the plan with these holders of assignable partitions and each member's change in idle ones, `more`."""
        chosen[unpacked(self.idle_bits, len(chosen))] = self.idle.holders(more)
        member_of = np.full(len(self._problem.lags), NOBODY, dtype=np.int32)
        member_of[self._problem.assignable] = chosen
        return Plan(self._problem, member_of)

    def loads_of(self, held: Bits, more: Whole | int, reduced: Whole) -> Whole:
        """Return the loads of sets of partitions by their sums of reduced lags and the change `more` in idle ones."""
        return reduced - self.reduced_idle(more) + weights_of(held, self.beyond)

    @cached_property
    def _later(self) -> tuple[Whole, Bits]:
        """Return the next partition of each partition's kind, or -1, and the set of all later ones."""
        count = len(self.kinds)
        after = (self.kinds[:, None] == self.kinds) & (np.arange(count) > np.arange(count)[:, None])
        bits = np.array([packed(row, self.words) for row in after])
        return np.where(after.any(axis=1), after.argmax(axis=1), -1), bits

    def may_hold(self, item: int, bits: Bits) -> Bools:
        """Return a mask of the sets that may also hold `item`; each set holds only partitions after `item`.

        This breaks symmetry: of equivalent partitions a member gives the first ones, and takes consecutive ones.
        """
        following, later = self._later
        if following[item] < 0:
            return np.ones(bits.shape[1], dtype=bool)
        next_too = holds(bits, int(following[item]))
        own = holds((self.inside | self.idle_bits)[:, None], item)[0]
        return next_too if own else next_too | ~(bits & later[item][:, None]).any(axis=0)

    def dominated(self, held: Bits) -> Bools:
        """Return a mask of the sets that take a partition of about the same lag as one that they give."""
        vain = np.zeros(held.shape[1], dtype=bool)
        if self.any_alike:
            taken = held & ~self.inside[:, None]
            for item in self.held.tolist():
                vain |= ~holds(held, item) & (taken & self.alike[item][:, None]).any(axis=0)
        return vain

    def exchanges(self, shape: Shape, low: int, high: int, stop: Callable[[], bool]) -> tuple[Bits, Whole]:
        """Return the exchanges of a shape that bring the sum of reduced lags into [low, high], and these sums.

        An exchange that gives a partition and takes one of about the same lag is dominated. The member may keep its own
        and leave the other to the member that took it. This saves a move and changes two loads by the difference.

        Raises
        ------
        EnumerationLimitError
            The enumeration limits are exceeded, or `stop` ended the search.
        """
        *sizes, more = shape
        given, found, taken = (self._subsets(kind, size, stop) for kind, size in enumerate(sizes))
        if len(given.sums) * len(found.sums) > self.limits.looked_up:
            raise EnumerationLimitError
        base = (self.load + self.reduced_idle(more) - given.sums[:, None] + found.sums[None, :]).ravel()
        left, right = self._looked_up(base, taken.sums, low, high, stop)
        give, unowned = np.divmod(left, len(found.sums))
        if self.any_alike:
            alike = given.alike[:, give] & (found.bits[:, unowned] | taken.bits[:, right])
            kept = ~alike.any(axis=0)
            left, right, give, unowned = left[kept], right[kept], give[kept], unowned[kept]
        return given.bits[:, give] | found.bits[:, unowned] | taken.bits[:, right], base[left] + taken.sums[right]

    def _looked_up(
        self, base: Whole, ascending: Whole, low: int, high: int, stop: Callable[[], bool]
    ) -> tuple[Whole, Whole]:
        """Return all pairs of entries, one of each array, whose sum is in [low, high]."""
        begin, hits = np.empty((2, len(base)), dtype=np.int64)
        for a in range(0, len(base), AT_ONCE):
            if stop():
                raise EnumerationLimitError
            here = slice(a, a + AT_ONCE)
            begin[here] = np.searchsorted(ascending, low - base[here], side="left")
            hits[here] = np.searchsorted(ascending, high - base[here], side="right") - begin[here]
        if hits.sum() > self.limits.hits:
            raise EnumerationLimitError
        right, left = spans(begin, hits)
        return left, right

    def _subsets(self, kind: int, size: int, stop: Callable[[], bool]) -> Subsets:
        """Return the subsets of one kind and size, one of each class of equivalent subsets.

        Partitions with the same owner and lag are interchangeable. The first of them are given, and consecutive ones
        are taken.
        """
        if (kind, size) not in self._known:
            of = (self.held, self.unowned, self.foreign)[kind]
            if comb(len(of), size) > self.limits.subsets or stop():
                raise EnumerationLimitError
            chosen = subsets(len(of), size)
            if self.twins:
                of = of[np.argsort(self.kinds[of], kind="stable")]
                chosen = chosen[_canonical(self.kinds[of], chosen, from_first=kind == HELD)]
            rows = of[chosen]
            sums = np.zeros(len(rows), dtype=np.int64)
            for column in rows.T:
                sums += self.lags[column]
            order = np.argsort(sums, kind="stable")
            alike = np.bitwise_or.reduce(self.alike[rows[order]], axis=1).T if self.any_alike else self.none
            self._known[kind, size] = Subsets(bits_of(rows, self.words)[:, order], alike, sums[order])
        return self._known[kind, size]


def _canonical(alike: Whole, chosen: Whole, *, from_first: bool) -> NDArray[np.bool_]:
    """Return a mask of the rows whose items of each kind are consecutive, and begin at its first if `from_first`."""
    first = np.concatenate([[True], np.diff(alike) != 0])[: len(alike)]
    begun = first[chosen]  # True where the previous item of its kind is not in the row
    begun[:, :1] = True
    begun[:, 1:] |= np.diff(chosen, axis=1) > 1
    if from_first:
        return np.asarray((~begun | first[chosen]).all(axis=1))
    kept = np.ones(len(chosen), dtype=bool)
    for a, b in combinations(range(chosen.shape[1]), 2):
        kept &= ~(begun[:, b] & (alike[chosen[:, a]] == alike[chosen[:, b]]))
    return kept


def _places_of(rule: CountRule, items: Whole) -> list[Whole]:
    """Return the other attributes that interchangeable partitions share: topic and pin, if they differ."""
    if rule.interchangeable and not (rule.problem.pins != NOBODY).any():
        return []
    return [rule.problem.topic_of[items].astype(np.int64), rule.problem.pins[items].astype(np.int64)]
