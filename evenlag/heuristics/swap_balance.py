"""`swap-balance`: even counts first, then even lags by swaps, as balancers in production do."""

from __future__ import annotations

import numpy as np

from evenlag.heuristics import sticky
from evenlag.heuristics.array_operations import same_topics
from evenlag.model.arrays import Whole, stable_order
from evenlag.model.balance import Balance
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Bools, Index, Ints, Problem

PROMISES = Balance.GROUP

FEW = 64  # partitions per member up to which all swaps of a pair are tried; beyond, a binary search finds one
AT_ONCE = 2**18  # swaps evaluated per batch
PATIENT = 3  # rounds after which a pair without a swap drops out altogether, not only its more loaded member


def assign(problem: Problem) -> Plan:
    """Even out the counts as `sticky` does without racks, then swap partitions between most and least loaded members.

    The most loaded member is paired with the least loaded, the second most with the second least, and so on; among
    equal loads, the earlier member counts as the larger. Each pair makes the one swap, partition for partition, that
    brings its loads closest, provided each member subscribes to what it gets. Then the members are paired again. A
    member without a helpful swap drops out, the more loaded of the pair first. When all but one have dropped out, all
    are paired again, as long as that reduces the distance between the most and the least loaded, or the number of
    members at these loads. With mixed subscriptions, members of a pair have a topic in common.

    References
    ----------
    Allegro Hermes, ``WeightedWorkBalancer`` (2022), which gives every consumer the same number of tasks, then evens
    out their weight by swaps.

    Examples
    --------
    Even counts alone give loads of 160 and 60; after swapping 90 and 50, no swap helps.

    >>> problem = Problem.from_lags({"t": [90, 50, 70, 10]}, {"c0": ["t"], "c1": ["t"]})
    >>> sticky.assign(problem).loads.tolist()
    [160, 60]
    >>> plan = assign(problem)
    >>> plan.assignment, plan.loads.tolist()
    ({'c0': [('t', 1), ('t', 2)], 'c1': [('t', 0), ('t', 3)]}, [120, 100])
    """
    swaps = _Swaps(sticky.without_racks(problem))
    while swaps.bring_in():
        pass
    return Plan(problem, swaps.member_of())


class _Swaps:
    """Partitions of each member, in consecutive slots; swaps never change a member's number of slots."""

    def __init__(self, even: Plan) -> None:
        problem = even.problem
        self._even = even.member_of
        self._counts = even.counts
        self._first = np.cumsum(self._counts) - self._counts
        self._holding: Whole = np.flatnonzero(self._counts)
        self._few = self._counts <= FEW
        width = int(self._counts[self._few].max(initial=1))
        self._slots = self._first[:, None] + np.minimum(np.arange(width), self._counts[:, None] - 1)  # repeats the last
        self._partitions = stable_order(even.member_of)[int((even.member_of == NOBODY).sum()) :]
        exact = object if 4 * int(even.loads.sum()) >= 2**62 else np.int64
        self._loads: Ints = even.loads.astype(exact)
        self._twice: Ints = 2 * problem.lags[self._partitions].astype(exact)  # the lag of each slot, twice
        self._row: Whole = problem.topic_of[self._partitions].astype(np.int64) * len(self._counts)
        self._far = 4 * int(even.loads.sum()) + 1  # greater than the distance of any swap
        self._able = None if same_topics(problem) else problem.subscribed.ravel()  # indexed by topic · M + member
        self._strangers: Bools | None = None  # (M, M): True if two members have no topic in common
        if self._able is not None:
            subscribed = problem.subscribed.astype(np.float32)
            strangers = subscribed.T @ subscribed == 0
            self._strangers = strangers if strangers.any() else None

    def member_of(self) -> Index:
        """Return the member of each partition, shape (P,)."""
        member_of = self._even.copy()
        member_of[self._partitions] = np.repeat(np.arange(len(self._counts)), self._counts)
        return member_of

    def bring_in(self) -> bool:
        """Swap until every member has dropped out; return True if the extreme loads improved."""
        before = self._extremes()
        left, pairings = self._holding, 0
        while True:
            left = left[np.argsort(-self._loads[left], kind="stable")]
            high, low = self._pairs(left)
            if not len(high):
                return self._extremes() < before
            passed_over = np.zeros(len(self._counts), dtype=bool)
            passed_over[high] = ~self._swap(high, low)
            if pairings >= PATIENT:
                passed_over[low] = passed_over[high]
            left, pairings = left[~passed_over[left]], pairings + 1

    def _extremes(self) -> tuple[int, int]:
        """Return the distance between the largest and the smallest load, and the number of members at either."""
        loads = self._loads[self._holding]
        if not len(loads):
            return 0, 0
        most, least = loads.max(), loads.min()
        return int(most - least), int((loads == most).sum() + (loads == least).sum())

    def _pairs(self, descending: Whole) -> tuple[Whole, Whole]:
        """Pair the first with the last, the second with the last but one, …; keep pairs that have a topic in common."""
        half = len(descending) // 2
        high, low = descending[:half], descending[: -half - 1 : -1]
        if self._strangers is None:
            return high, low
        known = ~self._strangers[high, low]
        if known.any():
            return high[known], low[known]
        pairs: list[tuple[int, int]] = []
        while len(descending) > 1:
            first, others = descending[0], descending[1:]
            able = np.flatnonzero(~self._strangers[first, others])
            if len(able):
                pairs.append((first, others[able[-1]]))
                others = np.delete(others, able[-1])
            descending = others
        firsts, lasts = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        return firsts, lasts

    def _swap(self, high: Whole, low: Whole) -> Bools:
        """Make the swap that brings each pair closest; return a mask of the pairs that had one."""
        at_once = max(AT_ONCE // self._slots.shape[1] ** 2, 1)
        few = self._few[high] & self._few[low]
        if few.all() and len(high) <= at_once:
            given, taken = self._best_of_all(high, low)
        else:
            given, taken = np.full(len(high), -1), np.full(len(high), -1)
            together = np.flatnonzero(few)
            for k in range(0, len(together), at_once):
                at = together[k : k + at_once]
                given[at], taken[at] = self._best_of_all(high[at], low[at])
            for k in np.flatnonzero(~few).tolist():
                given[k], taken[k] = self._best_by_search(int(high[k]), int(low[k]))
        swapped: Bools = np.asarray(given >= 0)
        given, taken = given[swapped], taken[swapped]
        moved = (self._twice[given] - self._twice[taken]) // 2
        self._loads[high[swapped]] -= moved
        self._loads[low[swapped]] += moved
        for held in (self._partitions, self._twice, self._row):
            held[given], held[taken] = held[taken], held[given]
        return swapped

    def _best_of_all(self, high: Whole, low: Whole) -> tuple[Whole, Whole]:
        """Return the slots that each pair swaps to bring its loads closest; −1 if no swap helps.

        A swap moves δ messages, the difference of its lags, and leaves a distance of |`difference` − 2δ|.
        """
        difference = self._loads[high] - self._loads[low]
        give, take = self._slots[high], self._slots[low]
        wanted, have = self._twice[give] - difference[:, None], self._twice[take]
        if self._able is not None:
            wanted = np.where(self._able[self._row[give] + low[:, None]], wanted, self._far)
            have = np.where(self._able[self._row[take] + high[:, None]], have, -self._far)
        misses = np.abs(wanted[:, :, None] - have[:, None, :]).reshape(len(high), -1)
        best = misses.argmin(axis=1)
        pairs = np.arange(len(high))
        helps = misses[pairs, best] < difference
        i, j = np.divmod(best, have.shape[1])
        return np.where(helps, give[pairs, i], -1), np.where(helps, take[pairs, j], -1)

    def _best_by_search(self, high: int, low: int) -> tuple[int, int]:
        """Return the same as `_best_of_all` for one pair of members, found by binary search."""
        give, take = (self._first[m] + np.arange(self._counts[m]) for m in (high, low))
        if self._able is not None:
            give, take = give[self._able[self._row[give] + low]], take[self._able[self._row[take] + high]]
        best, closest = (-1, -1), self._loads[high] - self._loads[low]
        if not len(give) or not len(take):
            return best
        take = take[np.argsort(self._twice[take], kind="stable")]
        wanted, have = self._twice[give] - closest, self._twice[take]
        above = np.searchsorted(have, wanted)
        for places in (np.maximum(above - 1, 0), np.minimum(above, len(take) - 1)):
            misses = np.abs(wanted - have[places])
            i = int(misses.argmin())
            if misses[i] < closest:
                best, closest = (int(give[i]), int(take[places[i]])), misses[i]
        return best
