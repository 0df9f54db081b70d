"""Local search over classes of members: swaps and shifts of partitions between two classes.

A class is judged by the loads that its members could have: the highest is no less than its mean load, and the lowest no
more than the mean of its lags reduced in any of several ways (model/reduced_lags.py). All in floats: plans come of it,
no bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Bools, Whole
from evenlag.model.balance import CountRule
from evenlag.model.plan import by_member

Floats = NDArray[np.float64]

MOST_EACH = 100  # partitions of a class that are looked at together


@dataclass(frozen=True, eq=False)
class SplitCost:
    """A cost of partitions on classes.

    Attributes
    ----------
    costs : int64 array (P, K)
    price : float
        Scaled load that a unit costs.
    budget : int or None
    """

    costs: Whole
    price: float
    budget: int | None


class ClassSearch:
    """A split of partitions among classes, which gets better.

    Parameters
    ----------
    rule : CountRule
        Of a problem whose members are the classes.
    class_of : int array (P,)
        Keeps the rule; -1 where nobody subscribes.
    lags : float array (P,)
        Scaled.
    beside : float array (C, P)
        Scaled; the sum of each row over a class is no more than the highest load of its members.
    reduced : float array (T, P)
        Scaled lags reduced in T ways; none where the lowest load does not count.
    sizes : float array (K,)
        Members of each class, as many as have one unit of scaled load each for one of load.
    window : (low, high)
        Scaled loads beyond which nothing is gained.
    costs : sequence of SplitCost
    free : bool array (P,)
        Partitions that may change places.
    seed : int
    """

    def __init__(
        self, rule: CountRule, class_of: Whole, lags: Floats, beside: Floats, reduced: Floats, sizes: Floats,
        window: tuple[float, float], costs: Sequence[SplitCost], free: Bools, seed: int,
    ) -> None:  # fmt: skip
        self._rule, self.class_of, self._sizes, self._free = rule, class_of.copy(), sizes, free
        self._values = np.vstack([lags, beside, reduced])
        self._highs = 1 + len(beside)  # rows that the highest load is no less than; the lowest is no more than others
        self._per = np.vstack([sizes, np.ones((len(beside), len(sizes))), *([sizes] * len(reduced))])
        here = np.flatnonzero(class_of >= 0)
        sums = [np.bincount(class_of[here], row[here], len(sizes)) for row in self._values]
        self._sums: Floats = np.array(sums, dtype=np.float64)
        self._window, self._costs = window, costs
        self._mean = max(window[0] or float(lags.sum() / sizes.sum()), 1.0)
        self._spent = [int(each.costs[here, class_of[here]].sum()) for each in costs]
        problem = rule.problem
        cells = problem.topic_of[here].astype(np.int64) * len(sizes) + class_of[here]
        self._counts = np.bincount(cells, minlength=len(problem.topics) * len(sizes)).reshape(-1, len(sizes))
        self._rng = np.random.default_rng(seed)

    def run(self, stop: Callable[[], bool]) -> None:
        """Carry out the best exchange of any two classes, until none is worth it."""
        classes = range(len(self._sizes))
        while not stop():
            found = [self._best(a, b) for a in classes for b in classes if a < b]
            gain, a, b, p, q = max(found, default=(0.0, 0, 0, -1, -1))
            if gain <= 0:
                return
            for item, source, target in ((p, a, b), (q, b, a)):
                if item >= 0:
                    self._carry_over(item, source, target)

    def shake(self, swaps: int) -> None:
        """Swap so many pairs of partitions at random, of a topic and such as cost the same everywhere."""
        topic_of, here = self._rule.problem.topic_of, np.flatnonzero(self._free & (self.class_of >= 0))
        for p in self._rng.choice(here, min(swaps, len(here)), replace=False).tolist():
            alike = (topic_of[here] == topic_of[p]) & (self.class_of[here] != self.class_of[p])
            for each in self._costs:
                alike &= (each.costs[here] == each.costs[p]).all(axis=1)
            if alike.any():
                q = int(self._rng.choice(here[alike]))
                source, target = int(self.class_of[p]), int(self.class_of[q])
                self._carry_over(p, source, target)
                self._carry_over(q, target, source)

    def _carry_over(self, p: int, source: int, target: int) -> None:
        self._sums[:, source] -= self._values[:, p]
        self._sums[:, target] += self._values[:, p]
        topic = self._rule.problem.topic_of[p]
        self._counts[topic, source] -= 1
        self._counts[topic, target] += 1
        self._spent = [
            spent + int(each.costs[p, target] - each.costs[p, source])
            for spent, each in zip(self._spent, self._costs, strict=True)
        ]
        self.class_of[p] = target

    def _best(self, a: int, b: int) -> tuple[float, int, int, int, int]:
        """Return what the best exchange of two classes gains, and the exchange; -1 is no partition."""
        held = by_member(self.class_of.astype(np.int32), len(self._sizes), self._free)
        ours, theirs = (np.append(self._some(held[k], k), -1) for k in (a, b))
        fits = self._fits(a, b, ours, theirs)
        change: Floats = np.zeros(fits.shape)
        for each, spent in zip(self._costs, self._spent, strict=True):
            give = np.where(ours >= 0, each.costs[ours, b] - each.costs[ours, a], 0)
            take = np.where(theirs >= 0, each.costs[theirs, a] - each.costs[theirs, b], 0)
            more = np.add.outer(give, take)
            if each.budget is not None:
                fits &= more <= max(each.budget - spent, 0)
            change = change + each.price * more
        carried = np.where(theirs >= 0, self._values[:, theirs], 0)[:, None, :]
        carried = carried - np.where(ours >= 0, self._values[:, ours], 0)[:, :, None]
        means = self._sums / self._per
        pair = [
            (self._sums[:, k, None, None] + sign * carried) / self._per[:, k, None, None]
            for k, sign in ((a, 1), (b, -1))
        ]
        others = np.delete(means, [a, b], axis=1)
        now = self._judged([means[:, a, None, None], means[:, b, None, None]], others).item()
        gain = now - self._judged(pair, others) - change
        gain = np.where(fits, gain, -np.inf)
        i, j = divmod(int(gain.argmax()), len(theirs))
        return float(gain[i, j]) - 1e-9 * abs(now), a, b, int(ours[i]), int(theirs[j])

    def _some(self, held: Whole, k: int) -> Whole:
        """Return some of the partitions that a class holds, first those that cost less elsewhere."""
        held = self._rng.permutation(held)
        if len(held) <= MOST_EACH:
            return held
        saves = np.zeros(len(held), dtype=bool)
        for each in self._costs:
            saves |= each.costs[held, k] > each.costs[held].min(axis=1)
        return held[np.argsort(~saves, kind="stable")[:MOST_EACH]]

    def _judged(self, pair: Sequence[Floats], others: Floats) -> Floats:
        """Return what classes' sums by member come to, those of a pair changed, as scaled load.

        That is the difference of the extremes, and a bit for what is uneven between them.
        """
        low, high = self._window
        highest: Floats = np.full((1, 1), high)
        lowest: Floats = np.full((1, 1), low)
        uneven: Floats = np.zeros((1, 1))
        for column in (*pair, *(others[:, k, None, None] for k in range(others.shape[1]))):
            highest = np.maximum(highest, column[: self._highs].max(axis=0))
            bottom = column[self._highs :].min(axis=0, initial=np.inf) if len(column) > self._highs else column[0]
            lowest = np.minimum(lowest, bottom) if len(column) > self._highs else lowest
            uneven = uneven + (bottom / self._mean - 1) ** 2
        judged: Floats = highest - lowest + self._mean * uneven
        return judged

    def _fits(self, a: int, b: int, ours: Whole, theirs: Whole) -> Bools:
        """Return which exchanges keep subscriptions and counts."""
        rule, problem = self._rule, self._rule.problem
        give, take = problem.topic_of[ours], problem.topic_of[theirs]
        nothing, no_return = ours < 0, theirs < 0
        fits: Bools = np.logical_and.outer(nothing | problem.allowed[give, b], no_return | problem.allowed[take, a])
        counts = self._counts.sum(axis=0)
        fits[:, -1] &= bool(rule.may_shift(counts, a, b))
        fits[-1, :] &= bool(rule.may_shift(counts, b, a))
        fits[-1, -1] = False
        if rule.topic_bounds is not None:
            leave = nothing | rule.may_shift_of(give, self._counts, a, b)
            enter = no_return | rule.may_shift_of(take, self._counts, b, a)
            same = np.equal.outer(give, take) & ~nothing[:, None] & ~no_return
            fits &= same | np.logical_and.outer(leave, enter)
        return fits
