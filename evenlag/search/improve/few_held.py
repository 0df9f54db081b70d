"""Searches for members that hold few partitions: best pair, and three members at once.

Best pair: the member farthest outside the window repartitions with its best partner. One matrix product evaluates every
split of the partitions of a pair, for all pairs of one member at once. This is pairwise interchange (Kernighan and Lin
1970) over the whole neighbourhood of a pair, by best improvement.

Three-way search: a member outside the window repartitions with two others; all pairs of others are searched at once.
Pairs alone soon find no improvement. Three members have many more ways to share, and one of them nearly always helps,
but there are too many to enumerate. So a share for the member is composed of three subsets: one of its own partitions,
one of another member's, and one of a third member's, found in the sorted sums of all members. Only if this share fits
the window are the splits of the rest between the two others tried. This is a cyclic exchange among three (Ahuja,
Orlin and Sharma 2000, very large-scale neighbourhoods) with sets of partitions instead of single ones. The look-up is
meeting in the middle (Horowitz and Sahni 1974).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Ints, Whole
from evenlag.model.problem import NOBODY
from evenlag.search.clock import in_steps_of
from evenlag.search.improve.state import SearchState, Stagnation

EXACT = 2.0**50  # loads below this are exact as doubles

Sizes = tuple[int, int, int]


@dataclass(frozen=True)
class BestPairParams:
    """Parameters of best pair."""

    most_slots: int = 7  # most partitions of a member
    most_splits: int = 600_000  # most splits between one member and all others
    splits_of_a_step: int = 20_000  # splits that count as one step of the clock


@dataclass(frozen=True)
class ThreeWayParams:
    """Parameters of the three-way search."""

    most_members: int = 2_000  # for more members, the sums of one look-up take too long
    most_held: int = 8  # most partitions of a member; with more, pairs have enough splits
    members_of_a_step: int = 40  # members whose look-up counts as one step of the clock
    slots: int = 5  # partitions of each member that may change hands at a time
    most_tried: int = 1_500  # most shares of one kind for which the rest is split
    partners: int = 80  # members in the first look-up
    more_partners: int = 6  # factor of the members in each further look-up
    nearer: float = 0.6  # target of a round for all members, as a share of the worst distance
    patience: int = 150  # perturbations without progress


def best_pair_applies(state: SearchState, params: BestPairParams = BestPairParams()) -> bool:
    """Return True if all splits of a member's pairs can be enumerated.

    The partitions of the state must be interchangeable and its members alike.
    """
    counts = state.counts[state.active]
    slots = int(counts.max(initial=0))
    even = slots - int(counts.min(initial=slots)) <= 1  # each member has at most one empty slot
    return even and slots <= params.most_slots and len(state.active) * comb(2 * slots, slots) // 2 <= params.most_splits


def best_pair_search(
    state: SearchState, stop: Callable[[], bool], params: BestPairParams = BestPairParams(), *, briefly: bool = False
) -> None:
    """Repartition the worst member with its best partner until no member outside the window improves.

    Parameters
    ----------
    state : SearchState
        A state for which `best_pair_applies` holds.
    stop : callable
        Stop criterion, called before each repartition; a large one counts as several steps.
    briefly : bool
        Stop after a round that reduces the total distance by less than a quarter. A round has one step per member.
    """
    members = len(state.active)
    if members < 2 or not any(len(state.held[m]) for m in state.active):
        return
    search = _BestPair(state)
    stop = in_steps_of(1 + members * search.splits.shape[1] // params.splits_of_a_step, stop)
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


class _Slots:
    """Partitions of some members, one row of slots per member; empty slots come last in a row."""

    def __init__(self, state: SearchState, members: Whole) -> None:
        self.state, self.members = state, members
        slots = max((len(state.held[m]) for m in state.active), default=0)
        self.held = np.full((len(members), slots), NOBODY)
        for row, m in enumerate(members.tolist()):
            self.held[row, : len(state.held[m])] = state.held[m]

    def give_back(self) -> None:
        """Write the assignment back to the state."""
        member_of = self.state.member_of.copy()
        for held, m in zip(self.held, self.members.tolist(), strict=True):
            member_of[held[held != NOBODY]] = m
        self.state.start_from(member_of)


class _BestPair(_Slots):
    """Evaluate all splits of two members' partitions, for one active member and any other."""

    def __init__(self, state: SearchState) -> None:
        super().__init__(state, state.active)
        self.slots = slots = self.held.shape[1]
        self.lags = np.append(state.lags, 0)  # the last entry is for empty slots, which hold NOBODY
        self.worth = self.lags[self.held]
        self.empty = self.held[:, -1] == NOBODY
        self.loads = self.worth.sum(axis=1)
        self.splits = _splits(slots)
        self.together = self.splits[slots - 1] == self.splits[2 * slots - 1]  # both last slots go to the same member

    def best_split(self, a: int, bad: Any) -> tuple[int, int] | None:
        """Return the partner and split with the least larger distance of the two; None if no split reduces it.

        If several splits with that partner bring both inside the window, return the most even one.
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
        """Apply a split to two rows."""
        both, goes = np.concatenate([self.held[a], self.held[b]]), self.splits[:, split].astype(bool)
        for row, items in ((a, both[goes]), (b, both[~goes])):
            items = np.concatenate([items[items != NOBODY], items[items == NOBODY]])
            self.held[row], self.worth[row] = items, self.lags[items]
            self.loads[row], self.empty[row] = self.worth[row].sum(), items[-1] == NOBODY


@lru_cache(maxsize=8)
def _splits(slots: int) -> Whole:
    """Return all splits of 2·slots slots into two halves, omitting mirror images; shape (2·slots, S)."""
    chosen = [(0, *subset) for subset in combinations(range(1, 2 * slots), slots - 1)]
    splits = np.zeros((2 * slots, len(chosen)), dtype=np.int64)
    splits[np.array(chosen).T, np.arange(len(chosen))] = 1
    return splits


# ---- three members at once -------------------------------------------------------------------------------------------


def three_way_applies(state: SearchState, params: ThreeWayParams = ThreeWayParams()) -> bool:
    """Return True if the three-way search can run on a state of interchangeable partitions and members that are alike.

    Counts must be even and small, and loads exact as doubles. The number of members must lie between 3 and
    `most_members`.
    """
    counts = state.counts[state.active]
    members = int((~state.oversized[state.active]).sum())
    fits = state.dtype is np.int64 and 3 <= members <= params.most_members and float(state.scaled.sum()) < EXACT
    return bool(fits and np.ptp(counts) <= 1 and 1 < counts.max() <= params.most_held)


def three_way_search(state: SearchState, stop: Callable[[], bool], params: ThreeWayParams = ThreeWayParams()) -> None:
    """Reduce the worst distance from the window, round by round, until nothing helps.

    A round aims to bring all members within `reach` of the window. If some stay outside, the reach is relaxed. At last,
    members inside are perturbed to give the others new partners.

    Parameters
    ----------
    state : SearchState
        A state for which `three_way_applies` holds.
    stop : callable
        Stop criterion, called before each look-up; a large one counts as several steps.
    """
    search = _ThreeWay(state, params)
    stop = in_steps_of(1 + len(search.loads) // params.members_of_a_step, stop)
    idle, best = 0, search.score()
    stuck = np.zeros(len(search.loads), dtype=bool)
    reach = params.nearer * best[0] // 1
    while idle < params.patience and best[0] > 0 and not stop():
        bad = search.violations()
        outside = np.flatnonzero((bad > reach) & ~stuck)
        if len(outside):
            a = int(search.rng.choice(outside))
            stuck[a] = not search.bring_within(a, reach, stop)
            continue
        score = search.score()
        if score < best:
            best, idle = score, 0
        stuck[:] = False
        if not (bad > reach).any():
            reach = params.nearer * best[0] // 1
        elif reach < best[0] - 1:
            reach = min(best[0] - 1, reach + 1 + (best[0] - reach) // 3)
        else:
            idle += 1
            search.perturb(reach, stop)
        search.draw()
    search.give_back()


class _ThreeWay(_Slots):
    """Search in which the first slots of each member may change hands; holders of oversized partitions are left out."""

    def __init__(self, state: SearchState, params: ThreeWayParams) -> None:
        super().__init__(state, state.active[~state.oversized[state.active]])
        self.params, self.rng = params, state.rng
        self.slots = min(self.held.shape[1], params.slots)
        self.lags = np.append(state.lags, 0).astype(np.float64)  # the last entry is for empty slots
        self.loads = state.scaled[self.members].astype(np.float64)
        self.low, self.high = float(state.low), float(state.high)
        self.draw()

    def violations(self) -> Ints:
        """Return the distance of each load outside the window."""
        return np.maximum(np.maximum(self.low - self.loads, self.loads - self.high), 0)

    def score(self) -> tuple[float, int]:
        """Return the worst distance and the number of members outside."""
        bad = self.violations()
        return float(bad.max()), int((bad > 0).sum())

    def draw(self) -> None:
        """Draw the slots that may change hands."""
        if self.held.shape[1] > self.slots:
            order = self.rng.random(self.held.shape).argsort(axis=1)
            self.held = np.take_along_axis(self.held, order, axis=1)
        self._sum_subsets()

    def _sum_subsets(self) -> None:
        """Compute the sums of all subsets of the drawn slots by size, and sort the sums of all members."""
        chosen = self.held[:, : self.slots]
        worth = self.lags[chosen]
        self.fixed = self.loads - worth.sum(axis=1)
        self.room = 1 - (self.held[:, self.slots :] == NOBODY).sum(axis=1)  # empty slots allowed among searched ones
        self.sums = [worth @ _subsets(self.slots, size).T for size in range(self.slots + 1)]
        self.order = [np.argsort(sums, axis=None) for sums in self.sums]
        self.ascending = [sums.ravel()[order] for sums, order in zip(self.sums, self.order, strict=True)]

    def perturb(self, reach: float, stop: Callable[[], bool]) -> None:
        """Repartition some members whose violation is at most `reach`.

        The other members then have new partners to exchange with.
        """
        within = np.flatnonzero(self.violations() <= reach)
        for a in self.rng.permutation(within)[: 1 + len(self.loads) // 2].tolist():
            if stop():
                return
            self._repartition(a, reach, self.params.partners)

    def bring_within(self, a: int, reach: float, stop: Callable[[], bool]) -> bool:
        """Repartition `a` and two others so that all three end within `reach` of the window.

        More and more members are tried. Return True on success.
        """
        partners = self.params.partners
        while not self._repartition(a, reach, partners):
            if partners >= len(self.loads) or stop():
                return False
            partners *= self.params.more_partners
        return True

    def _repartition(self, a: int, reach: float, partners: int) -> bool:
        """Repartition `a` and two others if all three then end within `reach` of the window; return True on success."""
        low, high = self.low - reach, self.high + reach
        spare = max(float(self.loads.mean()) - low, 0)
        window = (low, high, min(high, low + 2 * spare + 1))
        first = self.rng.permutation(len(self.loads))[:partners]
        kinds = [sizes for sizes in product(range(1, self.slots + 1), repeat=2) if sizes[0] <= sizes[1]]
        for j, n in self.rng.permutation(kinds).tolist():
            i = self.slots - j - n
            if i >= 0 and self._try_sizes(a, first, (i, j, n), window):
                return True
        return False

    def _try_sizes(self, a: int, first: Ints, sizes: Sizes, window: tuple[float, float, float]) -> bool:
        """Try all shares of `a` with i of its own slots, j of a member in `first` and n of a third one."""
        low, high, most = window
        i, j, n = sizes
        have = self.fixed[a] + self.sums[i][a][:, None, None] + self.sums[j][first][None]
        pair, entry = self._look_up(n, low - have.ravel(), most - low)
        if not len(pair):
            return False
        x, b, y = np.unravel_index(pair, have.shape)
        b = first[b]
        c, z = np.divmod(entry, self.sums[n].shape[1])
        rest = self.loads[a] + self.loads[b] + self.loads[c] - have.ravel()[pair] - self.sums[n][c, z]
        fine = np.flatnonzero((b != a) & (c != a) & (b != c) & (rest >= 2 * low) & (rest <= 2 * high))
        if not len(fine):
            return False
        b, c = b[fine], c[fine]
        inside, outside = zip(*(_parts(self.slots, size) for size in sizes), strict=True)
        places = list(zip((np.full(len(fine), a), b, c), (x[fine], y[fine], z[fine]), strict=True))
        ours = [self.held[m[:, None], inside[s][pick]] for s, (m, pick) in enumerate(places)]
        others = [self.held[m[:, None], outside[s][pick]] for s, (m, pick) in enumerate(places)]
        return self._split(a, b, c, np.concatenate(ours, axis=1), np.concatenate(others, axis=1), rest[fine], low, high)

    def _look_up(self, size: int, wanted: Ints, width: float) -> tuple[Ints, Ints]:
        """Find for each entry of `wanted` the subsets of `size` slots with a sum in [wanted, wanted + width].

        Returns
        -------
        pair, entry : int64 arrays (N,)
            Positions in `wanted` and in the flattened sums of that size; a random sample if there are too many.
        """
        known = self.ascending[size]
        start = np.searchsorted(known, wanted)
        near = np.flatnonzero(known[np.minimum(start, len(known) - 1)] <= wanted + width)
        start = start[near]
        ends = np.cumsum(np.searchsorted(known, wanted[near] + width, side="right") - start)
        if not len(ends) or not ends[-1]:
            return near[:0], near[:0]
        total, most = int(ends[-1]), self.params.most_tried
        at = np.arange(total) if total <= most else self.rng.integers(total, size=most)
        which = np.searchsorted(ends, at, side="right")
        return near[which], self.order[size][start[which] + at - np.append(0, ends)[which]]

    def _split(self, a: int, b: Ints, c: Ints, ours: Ints, others: Ints, rest: Ints, low: float, high: float) -> bool:
        """Split the rest between the two others and apply one split that fits; return False if none does."""
        splits = _subsets(2 * self.slots, self.slots)
        if self.slots == self.held.shape[1]:
            splits = splits[: len(splits) // 2]  # the second half holds the mirror images
        lowest, highest = np.maximum(low, rest - high), np.minimum(high, rest - low)
        theirs = self.lags[others] @ splits.T
        theirs -= ((lowest + highest) / 2 - self.fixed[b])[:, None]
        np.abs(theirs, out=theirs)
        hits, ways = np.nonzero(theirs <= ((highest - lowest) / 2)[:, None])
        if not len(hits):
            return False
        gone = others[hits] == NOBODY
        first = (gone * splits[ways]).sum(axis=1)
        fits = (ours[hits] == NOBODY).sum(axis=1) <= self.room[a]
        fits &= (first <= self.room[b[hits]]) & (gone.sum(axis=1) - first <= self.room[c[hits]])
        found = np.flatnonzero(fits)
        if not len(found):
            return False
        one = int(self.rng.choice(found))
        hit, goes = hits[one], splits[ways[one]] > 0
        shares = (ours[hit], others[hit, goes], others[hit, ~goes])
        for row, items in zip((a, b[hit], c[hit]), shares, strict=True):
            self.held[row, : self.slots] = items
            self.loads[row] = self.lags[self.held[row]].sum()
        self._sum_subsets()
        return True


@lru_cache(maxsize=32)
def _parts(slots: int, size: int) -> tuple[Ints, Ints]:
    """Return the positions in each subset of `size` slots, and those outside it."""
    inside = list(combinations(range(slots), size))
    outside = [[s for s in range(slots) if s not in subset] for subset in inside]
    return (
        np.array(inside, dtype=np.int64).reshape(len(inside), size),
        np.array(outside, dtype=np.int64).reshape(len(inside), slots - size),
    )


@lru_cache(maxsize=32)
def _subsets(slots: int, size: int) -> NDArray[np.float64]:
    """Return the membership of slots in each subset of that size as 0 and 1; shape (N, slots)."""
    inside, _ = _parts(slots, size)
    subsets = np.zeros((len(inside), slots))
    np.put_along_axis(subsets, inside, 1.0, axis=1)
    return subsets
