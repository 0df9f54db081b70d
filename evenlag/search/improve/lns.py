"""Large neighbourhood search: several members give up all they hold and share it out anew, nearer to the window.

Destroy and repair as Shaw 1998 and Pisinger and Ropke 2010 have it. *Destroy* takes the members farthest outside the
window and some others at random that make up for them. *Repair* depends on how much they hold. Few partitions: an
exact cover of all of them by patterns, solved by CP-SAT; the neighbourhood grows until chance alone would leave it
several covers. More: sequential number partitioning (Korf, Schreiber and Moffitt 2018) without its proof: the largest
partition that is left and others by a subset sum near the mean are one member's, and so on, with a few tries each.

What differs from the textbook: a repair is accepted if all loads come within a target distance from the window, at
first half the worst distance; where none does, the target gives way.
"""

from __future__ import annotations

from enum import Enum, auto
from math import lgamma, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Whole
from evenlag.model.balance import CountRule
from evenlag.model.plan import Plan
from evenlag.search.improve.state import SearchState
from evenlag.search.improve.subset_sum import subset_of_size
from evenlag.search.patterns import EnumerationLimitError, exact_cover, exact_cover_is_a_plan, patterns_within

MOST_HELD = 40  # partitions that a member may hold
DRAWS = 8  # neighbourhoods that are drawn, to take the one with the mean load nearest to the window

COVER_HELD = 6  # partitions that a member may hold for patterns of them to be listed
SMALLEST = 5  # members of the smallest neighbourhood that is repaired by a cover
MOST_PATTERNS = 1_200  # that a cover is chosen from
COVER_WORK = 0.05  # CP-SAT's deterministic time for one cover
SMALL_SLACK = 8  # messages that one member may take of what is over
COVERS_WANTED = 3.0  # log of the number of covers that a neighbourhood should have if lags were drawn at random
COVERS_MORE = 0.5  # by how much more is wanted after a neighbourhood that had none after all
COVER_PATIENCE = 4  # neighbourhoods without a cover before the target gives way

SEQUENCE = 4  # members of a neighbourhood that are served one after another
SEQUENCE_TRIES = (1, 8, 2)  # shares tried for the last member but one, but two and but more: few splits of two fit
SEQUENCE_SAMPLE = 26  # partitions that a member's share is chosen from
SEQUENCE_PATIENCE = 40  # neighbourhoods that could not be served in sequence before the target gives way

Column = NDArray[Any]


class _Repair(Enum):
    """What came of one repair."""

    DONE = auto()
    FAILED = auto()  # no way was found
    TOO_SMALL = auto()  # too few patterns for a cover to be likely
    TOO_LARGE = auto()  # too many patterns to try


def applies(rule: CountRule, plan: Plan) -> bool:
    """Whether repairs keep the rule: partitions interchangeable, members alike, not too many partitions each."""
    return exact_cover_is_a_plan(rule) and int(plan.counts.max()) <= MOST_HELD


class NeighbourhoodSearch:
    """Destroy and repair on one state, for which `applies` says yes; `step` repairs one neighbourhood.

    Parameters
    ----------
    state : SearchState

    Attributes
    ----------
    by_cover : bool
        Whether repairs are exact covers; otherwise they are made in sequence.
    """

    def __init__(self, state: SearchState) -> None:
        self.state, self.rng = state, state.rng
        self.by_cover = max((len(held) for held in state.held), default=0) <= COVER_HELD
        self.size = SMALLEST if self.by_cover else min(SEQUENCE, len(state.active))
        self.restart()

    def restart(self) -> None:
        """Take the state as it is for the one to better."""
        self.worst = int(self.state.badness().max(initial=0))
        self.target = self.worst // 2
        self.fails, self.covers_wanted = 0, COVERS_WANTED

    def step(self) -> bool:
        """Repair one neighbourhood; say whether to go on: not if all is done or nothing helps."""
        count = len(self.state.active)
        bad = self.state.badness()
        worst = int(bad.max(initial=0))
        if worst < self.worst and not (bad > self.target).any():
            self.worst, self.target = worst, worst // 2
        if worst == 0:
            return False
        members = self._destroy(bad)
        outcome = self._repair_by_cover(members) if self.by_cover else self._repair_in_sequence(members)
        if outcome is _Repair.TOO_SMALL:
            if self.size >= count:
                return self._relax_target()
            self.size = min(count, self.size + 1 + self.size // 8)
        elif outcome is _Repair.TOO_LARGE:
            self.size = max(SMALLEST, self.size - 1 - self.size // 8)
            return self._relax_target()
        elif outcome is _Repair.FAILED:
            self.fails += 1
            self.covers_wanted += COVERS_MORE
            if self.fails % (COVER_PATIENCE if self.by_cover else SEQUENCE_PATIENCE) == 0:
                return self._relax_target()
        else:
            self.fails, self.covers_wanted = 0, max(self.covers_wanted - 1, COVERS_WANTED)
        return True

    def _relax_target(self) -> bool:
        """Be content with less; say whether that still betters the worst."""
        if self.target >= self.worst - 1:
            self.target = self.worst // 2
            return False
        self.target = min(self.worst - 1, self.target + 1 + self.target // 8)
        return True

    def _destroy(self, bad: Column) -> Whole:
        """Choose the worst few, and others that make up for them."""
        state = self.state
        outside = np.flatnonzero(bad > self.target)
        outside = outside[np.lexsort((self.rng.random(len(outside)), -bad[outside]))][: max(1, self.size // 3)]
        others = np.setdiff1d(np.flatnonzero(~state.oversized[state.active]), outside)
        wanted = max(self.size - len(outside), 0)
        best, least = outside, None
        for _ in range(DRAWS):
            drawn = np.concatenate([outside, self.rng.permutation(others)[:wanted]])
            mean = state.scaled[state.active[drawn]].mean()
            off = max(state.low - mean, mean - state.high, 0)
            if least is None or off < least:
                best, least = drawn, off
        return state.active[best]

    # ---- few partitions: an exact cover --------------------------------------------------------------------------

    def _repair_by_cover(self, members: Whole) -> _Repair:
        state, most = self.state, MOST_PATTERNS
        everybody = len(members) == len(state.active)
        items = np.concatenate([state.held[m] for m in members])
        lags = state.lags[items]
        counts = np.array([len(state.held[m]) for m in members])
        low = state.low - self.target
        slack = int(lags.sum()) - low * len(members)
        if slack < 0:
            return _Repair.FAILED if everybody else _Repair.TOO_SMALL
        small = min(slack, SMALL_SLACK)
        high = min(state.high + self.target, low + max(2 * slack // len(members), small))
        sizes, repeats = np.unique(counts, return_counts=True)
        try:
            patterns = [patterns_within(lags, int(size), low, high, most) for size in sizes]
        except EnumerationLimitError:
            return _Repair.TOO_LARGE
        if sum(map(len, patterns)) > most:
            return _Repair.TOO_LARGE
        if _log_covers(len(items), sizes, repeats, patterns) < self.covers_wanted and not everybody:
            return _Repair.TOO_SMALL
        found = exact_cover(len(items), patterns, len(members), COVER_WORK, int(self.rng.integers(2**31)))
        if found is None:
            return _Repair.FAILED
        by_size = members[np.argsort(counts, kind="stable")].tolist()
        state.share_out(by_size, [items[row] for row in sorted(found, key=len)])
        return _Repair.DONE

    # ---- more: one member after another --------------------------------------------------------------------------

    def _repair_in_sequence(self, members: Whole) -> _Repair:
        state = self.state
        members = self.rng.permutation(members)
        shares = self._serve(members, np.concatenate([state.held[m] for m in members]))
        if shares is None:
            return _Repair.FAILED
        state.share_out(members.tolist(), shares)
        return _Repair.DONE

    def _serve(self, members: Whole, left: Whole) -> list[Whole] | None:
        """Shares within the target for members that get all that is left, the first of them served first."""
        state, others = self.state, members[1:]
        whole = int(state.lags[left].sum())
        low, high = state.low - self.target, state.high + self.target
        low, high = max(low, whole - len(others) * high), min(high, whole - len(others) * low)
        if low > high:
            return None
        if not len(others):
            return [left]
        wanted = min(max(whole // len(members), low), high)
        for _ in range(SEQUENCE_TRIES[min(len(others), 3) - 1]):
            share = self._share_of(left, len(state.held[members[0]]), wanted)
            if share is not None and low <= state.lags[share].sum() <= high:
                shares = self._serve(others, np.setdiff1d(left, share, assume_unique=True))
                if shares is not None:
                    return [share, *shares]
        return None

    def _share_of(self, left: Whole, count: int, wanted: int) -> Whole | None:
        """`count` partitions of those left with a load near the one wanted, the largest among them."""
        lags = self.state.lags[left]
        order = self.rng.permutation(len(left))
        largest = order == lags.argmax()
        order = np.concatenate([order[largest], order[~largest]])
        few = SEQUENCE_SAMPLE
        fixed = 1 + max(count - 1 - few // 2, 0)  # beyond what half a sample gives, any will do
        sample = order[fixed : fixed + few]
        aim = wanted - int(lags[order[:fixed]].sum())
        taken = subset_of_size(lags[sample], count - fixed, aim, int(lags.sum()), self.rng)
        return None if taken is None else left[np.concatenate([order[:fixed], sample[taken]])]


def _log_covers(items: int, sizes: Whole, repeats: Whole, patterns: list[Whole]) -> float:
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
