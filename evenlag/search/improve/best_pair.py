"""Best pair: the member farthest outside the window repartitions with whoever serves it best.

For members that hold few partitions: every way to split what a pair holds, for all pairs of one member at once, as
one matrix product. It is pairwise interchange (Kernighan and Lin 1970) with the whole neighbourhood of a pair looked
at, best improvement first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.model.problem import NOBODY
from evenlag.search.clock import in_steps_of
from evenlag.search.improve.state import SearchState, Stagnation

MOST_SLOTS = 7  # partitions that a member may hold
MOST_SPLITS = 600_000  # of one member with all others
SPLITS_OF_A_STEP = 20_000  # that take as long as one pair does elsewhere


def applies(state: SearchState) -> bool:
    """Whether all splits of a member's pairs can be listed.

    Of a state of interchangeable partitions, with members alike.
    """
    counts = state.counts[state.active]
    slots = int(counts.max(initial=0))
    even = slots - int(counts.min(initial=slots)) <= 1  # nobody has more than one slot empty
    return even and slots <= MOST_SLOTS and len(state.active) * comb(2 * slots, slots) // 2 <= MOST_SPLITS


def best_pair_search(state: SearchState, stop: Callable[[], bool], *, briefly: bool = False) -> None:
    """Let the worst member repartition with its best partner until no member outside the window gains by that.

    Parameters
    ----------
    state : SearchState
        For which `applies` says yes.
    stop : callable
        Asked before each repartition, several times where it takes longer than a pair elsewhere.
    briefly : bool
        Go on only as long as every round of as many steps as there are members brings a quarter of the way.
    """
    members = len(state.active)
    slots = max((len(state.held[m]) for m in state.active), default=0)
    if slots == 0 or members < 2:
        return
    search = _BestPair(state, slots)
    stop = in_steps_of(1 + members * search.splits.shape[1] // SPLITS_OF_A_STEP, stop)
    stuck = np.zeros(members, dtype=bool)
    stagnant = Stagnation()
    for number in itertools.count():
        if stop():
            break
        bad = state.distance(search.loads)
        if briefly and number % members == 0 and stagnant(int(bad.sum())):
            break
        ready = np.where(stuck, 0, bad)
        a = int(ready.argmax())
        if ready[a] <= 0:
            break
        found = search.best_split(a, bad[a])
        if found is None:
            stuck[a] = True
        else:
            search.carry_out(a, *found)
            stuck[:] = False
    search.give_back()


class _BestPair:
    """What each active member holds, as a row of slots; an empty slot is the last of its row."""

    def __init__(self, state: SearchState, slots: int) -> None:
        self.state, self.slots = state, slots
        self.held = np.full((len(state.active), slots), NOBODY)
        for row, m in enumerate(state.active.tolist()):
            self.held[row, : len(state.held[m])] = state.held[m]
        self.lags = np.append(state.lags, 0)  # the last stands for an empty slot: held is NOBODY there
        self.worth = self.lags[self.held]
        self.empty = self.held[:, -1] == NOBODY
        self.loads = self.worth.sum(axis=1)
        self.splits = _splits(slots)
        self.together = self.splits[slots - 1] == self.splits[2 * slots - 1]  # both last slots with the same member

    def best_split(self, a: int, bad: Any) -> tuple[int, int] | None:
        """The partner and split that bring the farther of the two nearest to the window; None if none is nearer.

        Where several bring both inside, the most even of them with the partner found.
        """
        state, splits, worth, loads = self.state, self.splits, self.worth, self.loads
        ours = worth[a] @ splits[: self.slots] + worth @ splits[self.slots :]  # (A, S): what `a` would hold
        theirs = (loads[a] + loads)[:, None] - ours
        score = np.maximum(np.maximum(state.low - ours, state.low - theirs), np.maximum(ours, theirs) - state.high)
        if self.empty[a]:
            score[np.ix_(self.empty, self.together)] = bad
        score[a] = bad
        score[state.has_its_companions(worth.max(axis=1), loads) | state.tabu] = bad
        b, split = divmod(int(score.argmin()), score.shape[1])
        least = max(int(score[b, split]), 0)
        if least >= bad:
            return None
        as_good = np.flatnonzero(score[b] <= least)
        return b, int(as_good[np.abs(ours[b, as_good] - theirs[b, as_good]).argmin()])

    def carry_out(self, a: int, b: int, split: int) -> None:
        """Split what the two rows hold."""
        both, goes = np.concatenate([self.held[a], self.held[b]]), self.splits[:, split].astype(bool)
        for row, items in ((a, both[goes]), (b, both[~goes])):
            items = np.concatenate([items[items != NOBODY], items[items == NOBODY]])
            self.held[row], self.worth[row] = items, self.lags[items]
            self.loads[row], self.empty[row] = self.worth[row].sum(), items[-1] == NOBODY

    def give_back(self) -> None:
        """Tell the state who holds what."""
        member_of = self.state.member_of.copy()
        for held, m in zip(self.held, self.state.active.tolist(), strict=True):
            member_of[held[held != NOBODY]] = m
        self.state.start_from(member_of)


@lru_cache(maxsize=8)
def _splits(slots: int) -> Whole:
    """Every way to give `slots` of twice as many to the first member, but for its mirror image; shape (2·slots, S)."""
    chosen = [(0, *subset) for subset in combinations(range(1, 2 * slots), slots - 1)]
    splits = np.zeros((2 * slots, len(chosen)), dtype=np.int64)
    splits[np.array(chosen).T, np.arange(len(chosen))] = 1
    return splits
