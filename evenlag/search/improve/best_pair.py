"""One against all: the member farthest outside the window shares out anew with whom it serves best.

For members that hold few partitions: every way to split what a pair holds, for all pairs of one member at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.problem import NOBODY
from evenlag.search.clock import in_steps_of
from evenlag.search.improve.state import Levelling

MOST_SPLITS = 600_000  # of one member with all others
SPLITS_OF_A_STEP = 20_000  # that take as long as one pair does elsewhere

Column = NDArray[Any]
Whole = NDArray[np.int64]


def applies(state: Levelling) -> bool:
    """Whether all splits of a member's pairs can be listed; the state must be of one class, its members alike."""
    counts = state.counts[state.active]
    slots = int(counts.max(initial=0))
    even = slots - int(counts.min(initial=slots)) <= 1  # nobody has more than one slot empty
    return even and slots <= 7 and len(state.active) * comb(2 * slots, slots) // 2 <= MOST_SPLITS


def against_all(state: Levelling, stop: Callable[[], bool], *, briefly: bool = False) -> None:
    """Let the worst member share out with its best partner until no member outside the window gains by that.

    `briefly`: only as long as every round of as many steps as there are members brings a quarter of the way.
    """
    active = state.active
    slots = max((len(state.held[m]) for m in active), default=0)
    if slots == 0 or len(active) < 2:
        return
    held = np.full((len(active), slots), NOBODY)
    for row, m in enumerate(active.tolist()):
        held[row, : len(state.held[m])] = state.held[m]
    lags = np.append(state.lags, 0)  # the last stands for an empty slot: held is NOBODY there
    worth = lags[held]
    empty = held[:, -1] == NOBODY
    splits = _splits(slots)
    stop = in_steps_of(1 + len(active) * splits.shape[1] // SPLITS_OF_A_STEP, stop)
    together = splits[slots - 1] == splits[2 * slots - 1]  # the two last slots with the same member
    loads = worth.sum(axis=1)
    stuck = np.zeros(len(active), dtype=bool)
    before = None
    for number in itertools.count():
        if stop():
            break
        bad = state.outside(loads)
        if briefly and number % len(active) == 0:
            left = int(bad.sum())
            if before is not None and 4 * left > 3 * before:
                break
            before = left
        ready = np.where(stuck, 0, bad)
        a = int(ready.argmax())
        if ready[a] <= 0:
            break
        ours = worth[a] @ splits[:slots] + worth @ splits[slots:]  # (M, S): what `a` would hold
        theirs = (loads[a] + loads)[:, None] - ours
        score = np.maximum(np.maximum(state.low - ours, state.low - theirs), np.maximum(ours, theirs) - state.high)
        if empty[a]:
            score[np.ix_(empty, together)] = bad[a]
        score[a] = bad[a]
        score[state.filled(worth.max(axis=1), loads) | state.spared] = bad[a]
        best = int(score.argmin())
        b, split = divmod(best, score.shape[1])
        if max(int(score[b, split]), 0) >= bad[a]:
            stuck[a] = True
            continue
        inside = np.flatnonzero(score[b] <= max(int(score[b, split]), 0))
        split = int(inside[np.abs(ours[b, inside] - theirs[b, inside]).argmin()])
        pool, goes = np.concatenate([held[a], held[b]]), splits[:, split].astype(bool)
        for row, items in ((a, pool[goes]), (b, pool[~goes])):
            items = np.concatenate([items[items != NOBODY], items[items == NOBODY]])
            held[row], worth[row] = items, lags[items]
            loads[row], empty[row] = worth[row].sum(), items[-1] == NOBODY
        stuck[:] = False
    for row, m in enumerate(active.tolist()):
        state.give(m, held[row][held[row] != NOBODY])


@lru_cache(maxsize=8)
def _splits(slots: int) -> Whole:
    """Every way to give `slots` of twice as many to the first member, but for its mirror image; shape (2·slots, S)."""
    chosen = [(0, *subset) for subset in combinations(range(1, 2 * slots), slots - 1)]
    splits = np.zeros((2 * slots, len(chosen)), dtype=np.int64)
    splits[np.array(chosen).T, np.arange(len(chosen))] = 1
    return splits
