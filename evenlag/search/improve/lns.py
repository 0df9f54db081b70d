"""Pools: several members at a time share out anew what they hold, all with loads nearer to the window.

A pool is the members farthest outside the window and some others at random. Members that hold few partitions share
by an exact cover with patterns: the pool grows until chance alone would leave it several covers with all loads half
as far outside as the worst. Those that hold more are served one after another, each by a subset sum near the mean of
what is left, until the last two have to split what remains. Where neither is found, the target gives way.

Source of the second: sequential number partitioning (Korf, Schreiber and Moffitt 2018), without its proof.
"""

from __future__ import annotations

from math import lgamma, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.balance import CountRule
from evenlag.model.plan import Plan
from evenlag.search.exact.patterns import Whole, exact_cover, exact_cover_is_a_plan, patterns_within
from evenlag.search.exact.proof import TooManyError
from evenlag.search.improve.state import Levelling, subset_of_size

FEW_HELD = 6  # partitions a member may hold for its patterns to be listed
MOST_HELD = 40
SMALLEST_POOL = 5
IN_SEQUENCE = 4  # members of a pool that is served one after another
SAMPLE = 22  # partitions that a member's share is chosen from
MOST_PATTERNS = 1_200
PATIENCE = 4  # pools without a cover before the target gives way
COVER_WORK = 0.05  # CP-SAT's deterministic time for one cover
SMALL_SLACK = 8  # messages that one member of a pool may take of what is over
MORE_HOPE = 0.5  # after a pool that had none after all
HOPE = 3.0  # log of the number of covers that a pool should have if lags were drawn at random

Column = NDArray[Any]


def applies(rule: CountRule, plan: Plan) -> bool:
    """Whether pools can be shared out: one class of partitions, members alike, not too many partitions each."""
    return exact_cover_is_a_plan(rule) and int(plan.counts.max()) <= MOST_HELD


class Pools:
    """The search over pools of one state; `step` shares out one pool."""

    def __init__(self, state: Levelling) -> None:
        self.state, self.rng = state, state.rng
        self.few = max((len(held) for held in state.held), default=0) <= FEW_HELD
        self.size = SMALLEST_POOL if self.few else min(IN_SEQUENCE, len(state.active))
        self.start_over()

    def start_over(self) -> None:
        """Take the state as it is for the one to better."""
        self.worst = int(self.state.badness().max(initial=0))
        self.target = self.worst // 2
        self.fails, self.hope = 0, HOPE

    def step(self) -> bool:
        """Share out one pool; say whether to go on: not if all is done or nothing helps."""
        bad = self.state.badness()
        worst = int(bad.max(initial=0))
        if worst < self.worst and not (bad > self.target).any():
            self.worst, self.target = worst, worst // 2
        if worst == 0:
            return False
        pool = self._pool(bad)
        outcome = self._share(pool) if self.few else self._in_sequence(pool)
        count = len(self.state.active)
        if outcome == "few":
            if self.size >= count:
                return self._give_way()
            self.size = min(count, self.size + 1 + self.size // 8)
        elif outcome == "many":
            self.size = max(SMALLEST_POOL, self.size - 1 - self.size // 8)
            return self._give_way()
        elif outcome == "none":
            self.fails += 1
            self.hope += MORE_HOPE
            if self.fails % (PATIENCE if self.few else 40) == 0:
                return self._give_way()
        else:
            self.fails, self.hope = 0, max(self.hope - 1, HOPE)
        return True

    def _give_way(self) -> bool:
        if self.target >= self.worst - 1:
            self.target = self.worst // 2
            return False
        self.target = min(self.worst - 1, self.target + 1 + self.target // 8)
        return True

    def _pool(self, bad: Column) -> Whole:
        """The worst few, and others that make up for them."""
        state = self.state
        outside = np.flatnonzero(bad > self.target)
        outside = outside[np.lexsort((self.rng.random(len(outside)), -bad[outside]))][: max(1, self.size // 3)]
        others = np.setdiff1d(np.flatnonzero(~state.giant[state.active]), outside)
        wanted = max(self.size - len(outside), 0)
        best, least = outside, None
        for _ in range(8):
            pool = np.concatenate([outside, self.rng.permutation(others)[:wanted]])
            mean = state.scaled[state.active[pool]].mean()
            off = max(state.low - mean, mean - state.high, 0)
            if least is None or off < least:
                best, least = pool, off
        return state.active[best]

    def _share(self, pool: Whole) -> str:
        """Say "done", "none" (no cover found), or that there are too "few" or too "many" patterns to try."""
        state = self.state
        items = np.concatenate([state.held[m] for m in pool])
        lags = state.lags[items]
        counts = np.array([len(state.held[m]) for m in pool])
        low = state.low - self.target
        slack = int(lags.sum()) - low * len(pool)
        if slack < 0:
            return "few" if len(pool) < len(state.active) else "none"
        high = min(state.high + self.target, low + max(2 * slack // len(pool), min(slack, SMALL_SLACK)))
        sizes, repeats = np.unique(counts, return_counts=True)
        try:
            patterns = [patterns_within(lags, int(size), low, high, MOST_PATTERNS) for size in sizes]
        except TooManyError:
            return "many"
        if sum(map(len, patterns)) > MOST_PATTERNS:
            return "many"
        if _hope(len(items), sizes, repeats, patterns) < self.hope and len(pool) < len(state.active):
            return "few"
        found = exact_cover(len(items), patterns, len(pool), COVER_WORK, int(self.rng.integers(2**31)))
        if found is None:
            return "none"
        by_size = pool[np.argsort(counts, kind="stable")].tolist()
        for m, row in zip(by_size, sorted(found, key=len), strict=True):
            state.give(m, items[row])
        return "done"

    def _in_sequence(self, pool: Whole) -> str:
        """Say "done" or "none"."""
        state = self.state
        pool = self.rng.permutation(pool)
        left = np.concatenate([state.held[m] for m in pool])
        shares = []
        for position, m in enumerate(pool[:-1].tolist()):
            count = len(state.held[m])
            mean = int(state.lags[left].sum()) // (len(pool) - position)
            wanted = min(max(mean, state.low - self.target), state.high + self.target)
            sample = self.rng.permutation(len(left))[: max(SAMPLE, 2)]
            spare = count - len(sample) // 2  # beyond what half a sample gives, any will do
            fixed = np.zeros(0, dtype=np.int64)
            if spare > 0:
                rest = np.setdiff1d(np.arange(len(left)), sample)
                fixed = self.rng.permutation(rest)[:spare]
            base = int(state.lags[left[fixed]].sum())
            taken = subset_of_size(
                state.lags[left[sample]], count - len(fixed), wanted - base, int(state.lags[left].sum()), self.rng
            )
            if taken is None:
                return "none"
            share = np.concatenate([left[fixed], left[sample[taken]]])
            load = int(state.lags[share].sum())
            if not state.low - self.target <= load <= state.high + self.target:
                return "none"
            shares.append(share)
            left = np.setdiff1d(left, share, assume_unique=True)
        if not state.low - self.target <= int(state.lags[left].sum()) <= state.high + self.target:
            return "none"
        for m, share in zip(pool.tolist(), [*shares, left], strict=True):
            state.give(m, share)
        return "done"


def _hope(items: int, sizes: Whole, repeats: Whole, patterns: list[Whole]) -> float:
    """Log of how many covers there would be if each subset were a pattern by chance alone."""
    ways = lgamma(items + 1)
    chance = 0.0
    for size, repeat, block in zip(sizes.tolist(), repeats.tolist(), patterns, strict=True):
        if not len(block):
            return -1.0
        ways -= repeat * lgamma(size + 1) + lgamma(repeat + 1)
        subsets = lgamma(items + 1) - lgamma(size + 1) - lgamma(items - size + 1)
        chance += repeat * (log(len(block)) - subsets)
    return ways + chance * (1 - 1 / max(int(repeats.sum()), 1))  # the last load follows from the others
