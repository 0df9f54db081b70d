"""`swap-balance`: even counts first, then even lags by swaps, as balancers in production do it."""

from __future__ import annotations

from bisect import bisect

import numpy as np

from evenlag.heuristics import sticky
from evenlag.heuristics.arrays import same_topics
from evenlag.model.plan import Plan, by_member
from evenlag.model.problem import Bools, Index, Ints, Problem

MANY = 48  # lags from which on arrays are faster than lists


def assign(problem: Problem) -> Plan:
    """Even out the counts as `sticky` does, then swap partitions between the most and the least loaded member.

    Each swap is the one that brings their lags closest, one partition for one, each member subscribing to what it
    gets; where even the largest is too small, the next largest follow at once. A member that no swap relieves is
    passed over until only such are left; then all are tried again, as long as that brings another swap. With mixed
    subscriptions the other is the least loaded one with a topic in common.

    References
    ----------
    Allegro Hermes, ``WeightedWorkBalancer`` (2022): the same number of tasks for every consumer, then the same weight
    by swaps.

    Examples
    --------
    Even counts alone leave 160 messages beside 60; 70 and 10 change places, and then no swap helps.

    >>> problem = Problem.from_lags({"t": [90, 50, 70, 10]}, {"c0": ["t"], "c1": ["t"]})
    >>> sticky.assign(problem).loads.tolist()
    [160, 60]
    >>> plan = assign(problem)
    >>> plan.assignment, plan.loads.tolist()
    ({'c0': [('t', 0), ('t', 3)], 'c1': [('t', 1), ('t', 2)]}, [100, 120])
    """
    swaps = _Swaps(sticky.assign(problem))
    swaps.run()
    return Plan(problem, swaps.member_of)


class _Swaps:
    """What every member holds, and how much that is."""

    def __init__(self, even: Plan) -> None:
        problem = even.problem
        self.member_of: Index = even.member_of.copy()
        self._loads: Ints = even.loads.copy()
        held = by_member(even.member_of, len(problem.members), problem.assignable)
        ascending = [here[np.argsort(problem.lags[here], kind="stable")] for here in held]
        self._items: list[list[int]] = [here.tolist() for here in ascending]
        self._lags: list[list[int]] = [problem.lags[here].tolist() for here in ascending]
        self._mixed = not same_topics(problem)
        self._subscribed = problem.subscribed
        self._topic_of = problem.topic_of

    def run(self) -> None:
        """Swap until no swap helps."""
        while self._round():
            pass

    def _round(self) -> bool:
        """Swap until every member was passed over; say whether there was any swap."""
        swapped = False
        holding = np.array([bool(items) for items in self._items], dtype=bool)
        beyond = int(self._loads.sum()) + 1
        most, least = np.where(holding, self._loads, -1), np.where(holding, self._loads, beyond)
        while most.max(initial=-1) > 0:
            high = int(most.argmax())
            low = int((np.where(self._shares_a_topic(high), least, beyond) if self._mixed else least).argmin())
            if self._swap(high, low):
                swapped = True
                for m in (high, low):
                    most[m] = least[m] = self._loads[m]
            else:
                most[high] = -1
        return swapped

    def _shares_a_topic(self, m: int) -> Bools:
        shared: Bools = np.asarray(self._subscribed[self._subscribed[:, m]].any(axis=0))
        return shared

    def _swap(self, high: int, low: int) -> bool:
        """Swap what brings two members closest; say whether any swap does."""
        difference = int(self._loads[high]) - int(self._loads[low])
        if self._mixed:
            gives, takes = self._places(high, low), self._places(low, high)
            more, less = ([self._lags[m][i] for i in at] for m, at in ((high, gives), (low, takes)))
            if found := _best_swap(more, less, difference):
                self._exchange(high, low, gives[found[0]], takes[found[1]])
            return found is not None
        more, less = self._lags[high], self._lags[low]
        swapped = False
        while 0 < 2 * (more[-1] - less[0]) <= difference:  # even the largest is too small
            difference -= 2 * (more[-1] - less[0])
            self._exchange(high, low, len(more) - 1, 0)
            swapped = True
        if not swapped and (found := _best_swap(more, less, difference)):
            self._exchange(high, low, *found)
            swapped = True
        return swapped

    def _places(self, source: int, target: int) -> list[int]:
        """Return where the partitions of `source` stand that `target` subscribes to."""
        able = self._subscribed[:, target]
        return [i for i, p in enumerate(self._items[source]) if able[self._topic_of[p]]]

    def _exchange(self, high: int, low: int, i: int, j: int) -> None:
        given, taken = (
            (self._lags[high].pop(i), self._items[high].pop(i)),
            (self._lags[low].pop(j), self._items[low].pop(j)),
        )
        for (lag, p), source, target in ((given, high, low), (taken, low, high)):
            at = bisect(self._lags[target], lag)
            self._lags[target].insert(at, lag)
            self._items[target].insert(at, p)
            self.member_of[p] = target
            self._loads[source] -= lag
            self._loads[target] += lag


def _best_swap(more: list[int], less: list[int], difference: int) -> tuple[int, int] | None:
    """Return which of the lags (ascending) change places so that two loads come closest; None: no swap helps.

    A swap moves δ messages, the difference of its lags, and leaves |`difference` − 2δ|.
    """
    if not more or not less:
        return None
    if len(more) >= MANY and 4 * max(more[-1], less[-1], difference) < 2**62:
        return _best_swap_of_many(np.array(more), np.array(less), difference)
    best, closest = None, difference
    at, last = 0, len(less) - 1
    for i, lag in enumerate(more):
        wanted = 2 * lag - difference  # twice the lag that would bring them level
        while at < last and 2 * less[at] < wanted:
            at += 1
        for j in range(max(at - 1, 0), at + 1):
            if (miss := abs(wanted - 2 * less[j])) < closest:
                best, closest = (i, j), miss
    return best


def _best_swap_of_many(more: Ints, less: Ints, difference: int) -> tuple[int, int] | None:
    wanted = 2 * more - difference
    at = np.minimum(np.searchsorted(2 * less, wanted), len(less) - 1)
    best, closest = None, difference
    for places in (np.maximum(at - 1, 0), at):
        misses = np.abs(wanted - 2 * less[places])
        i = int(misses.argmin())
        if misses[i] < closest:
            best, closest = (i, int(places[i])), int(misses[i])
    return best
