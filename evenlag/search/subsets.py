"""Subsets of partitions: enumerated by meeting in the middle, or stored as bits of 64-bit words.

The enumeration finds all subsets with a sum in a range, or one with a sum nearest to a target. It looks up the second
half of a subset for every first half, so n numbers cost about 2^(n/2) sums instead of 2^n (Horowitz and Sahni 1974,
"Computing partitions with applications to the knapsack problem").

Patterns are the columns of set partitioning: the subsets of one size that give one member a load in a given range. An
exact cover with one pattern for each member is a plan with every load in the range. If no cover exists, no plan has all
loads there. This is the set partitioning formulation of Balas and Padberg 1976, with all columns enumerated beforehand
instead of generated.

The search for one subset differs from the textbook: it returns the nearest sum rather than an equal one, sums may be
negative, and ties are broken at random.
"""

from __future__ import annotations

from functools import cache, lru_cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Bools, Ints, Whole, spans
from evenlag.model.backends.integer_program import IntegerProgram
from evenlag.model.balance import CountRule
from evenlag.model.problem import NOBODY

MOST_HALVES = 400_000  # most subsets of one half: some tens of MB, some hundredths of a second


class EnumerationLimitError(Exception):
    """An enumeration exceeds its limit."""


def patterns_within(lags: Ints, size: int, low: Any, high: Any, most: int) -> Whole:
    """List the subsets of `size` of the lags with a sum in [low, high]; shape (N, size), each row ascending.

    Raises
    ------
    EnumerationLimitError
        There are more than `most` subsets, or too many halves to enumerate.
    """
    count = len(lags)
    if size == 0 or size > count:
        return np.zeros((int(size == 0 and low <= 0 <= high), size), dtype=np.int64)
    front = size // 2
    if comb(count, size - front) > MOST_HALVES:
        raise EnumerationLimitError
    first, second = subsets(count, front), subsets(count, size - front)
    sums = lags[second].sum(axis=1)
    order = np.argsort(sums, kind="stable")
    ascending = sums[order]
    base = lags[first].sum(axis=1) if front else np.zeros(1, dtype=lags.dtype)
    start = np.searchsorted(ascending, low - base, side="left")
    stop = np.searchsorted(ascending, high - base, side="right")
    hits = np.maximum(stop - start, 0)
    if hits.sum() > most * 4 * comb(size, front):
        raise EnumerationLimitError
    at, left = spans(start, hits)
    right = order[at]
    if front:  # keep each subset once: its first half precedes its second
        once = first[left, -1] < second[right, 0]
        left, right = left[once], right[once]
    if len(left) > most:
        raise EnumerationLimitError
    return np.concatenate([first[left], second[right]], axis=1)


@lru_cache(maxsize=64)
def subsets(count: int, size: int) -> Whole:
    """List the subsets of `size` of the numbers below `count`, in order; shape (N, size), each row ascending."""
    rows, last = np.zeros((1, 0), dtype=np.int64), np.array([-1])
    for left in range(size, 0, -1):
        more = np.maximum(count - left - last, 0)
        first = np.cumsum(more) - more
        last = np.arange(int(more.sum())) - np.repeat(first - last - 1, more)
        rows = np.concatenate([np.repeat(rows, more, axis=0), last[:, None]], axis=1)
    return rows


def exact_cover(items: int, patterns: list[Whole], count: int, work: float, seed: int) -> list[Whole] | None:
    """Choose `count` patterns that hold every item once; None if no choice exists or `work` was too little.

    Parameters
    ----------
    patterns : list of int64 arrays (N, size)
    work : float
        Limit in CP-SAT's deterministic time; no wall clock ends the solve.
    """
    rows = [row for block in patterns for row in block]
    held_by: list[list[int]] = [[] for _ in range(items)]
    for i, row in enumerate(rows):
        for item in row.tolist():
            held_by[item].append(i)
    if len(rows) < count or not all(held_by):
        return None
    program = IntegerProgram()
    chosen = [program.variable() for _ in rows]
    for holders in held_by:
        program.require_one(holders)
    if len(patterns) > 1:
        program.require(chosen, [1] * len(chosen), count, count)
    answer = program.solve(seed=seed, work=work)
    return [row for row, value in zip(rows, answer.values, strict=True) if value] if answer.found else None


def exact_cover_is_a_plan(rule: CountRule) -> bool:
    """Return True if every exact cover by patterns of allowed sizes is a plan: members have the same limits too."""
    totals, active = rule.total_bounds, rule.problem.active
    return any_partition_fits(rule) and bool(np.ptp(totals.lo[active]) == 0 == np.ptp(totals.hi[active]))


def any_partition_fits(rule: CountRule) -> bool:
    """Return True if plans are all exact covers by patterns of the sizes that each member's limits allow.

    Partitions must be interchangeable, and members alike except in these limits.
    """
    problem = rule.problem
    if not rule.interchangeable or not problem.equal_weights or problem.lags.dtype == object:
        return False
    return bool(problem.active.any() and rule.ranks is None and not (problem.pins != NOBODY).any())


# ---- one subset with a sum nearest to a target -----------------------------------------------------------------------


def nearest_subset(values: Ints, target: Any, within: Any, rng: np.random.Generator) -> NDArray[np.bool_] | None:
    """Choose a subset with a sum nearest to `target`.

    Parameters
    ----------
    values : int64 or object array (N,)
        At most some 25 values. Their sums and the distances to `target` must not overflow the type.
    within : int
        Largest distance of the sum from `target`.
    rng : numpy.random.Generator
        Breaks ties.

    Returns
    -------
    bool array (N,) or None
        Mask of the chosen values; None if no sum is near enough or the nearest one is that of the empty subset.
    """
    half = len(values) // 2
    first, second = _subset_sums(values[:half]), _subset_sums(values[half:])
    ascending, wanted = np.sort(second), np.sort(target - first)  # sort both: ascending look-ups are quicker
    right = ascending.searchsorted(wanted)
    # Beyond either end, the look-up wraps to the sum at the other end: a valid candidate too.
    above, below = ascending.take(right, mode="wrap"), ascending[right - 1]
    miss_above, miss_below = np.abs(above - wanted), np.abs(below - wanted)
    miss = np.minimum(miss_above, miss_below)
    least = miss.min()
    if least > within:
        return None
    one = _any(rng, miss == least)
    nearest = above[one] if miss_above[one] <= miss_below[one] else below[one]
    i, j = _any(rng, first == target - wanted[one]), _any(rng, second == nearest)
    if i == 0 and j == 0:
        return None
    return np.concatenate([_membership(half)[i], _membership(len(values) - half)[j]])


def subset_of_size(
    values: Ints, size: int, target: Any, within: Any, rng: np.random.Generator
) -> NDArray[np.bool_] | None:
    """Choose `size` of the values with a sum nearest to `target`.

    The same large number is added to every value, so that a sum also encodes the size of its subset. This turns a
    subset sum with a cardinality constraint into one without.

    Parameters
    ----------
    values : int64 or object array (N,)
        At most some 25 values, all >= 0.
    within : int
        Largest distance of the sum from `target`.

    Returns
    -------
    bool array (N,) or None
        Mask of the chosen values; None if no sum is near enough or `size` is 0.
    """
    unit = 2 * int(values.sum()) + 2 * abs(int(target)) + 1
    if unit * (len(values) + 1) >= 2**62:
        values = values.astype(object)
    order = rng.permutation(len(values))
    within = min(int(within), unit // 2)
    chosen = nearest_subset((values + unit)[order], int(target) + unit * size, within, rng)
    if chosen is None:
        return None
    taken = np.zeros(len(values), dtype=bool)
    taken[order[chosen]] = True
    return taken


def _any(rng: np.random.Generator, among: NDArray[np.bool_]) -> int:
    """Return one of the true positions, drawn at random."""
    chosen = among.nonzero()[0]
    return int(chosen[rng.integers(len(chosen)) if len(chosen) > 1 else 0])


def _subset_sums(values: Ints) -> Ints:
    """Return the sums of all subsets; subset i holds item j if bit j of i is set."""
    if len(values) <= 5:
        return _membership(len(values)) @ values
    half = len(values) // 2
    return np.add.outer(_subset_sums(values[half:]), _subset_sums(values[:half])).ravel()


@cache
def _membership(count: int) -> NDArray[np.bool_]:
    """Return the membership mask of every subset of `count` items; shape (2^count, count)."""
    return (np.arange(2**count)[:, None] >> np.arange(count) & 1).astype(bool)


# ---- subsets as bits, and dominance of labels ------------------------------------------------------------------------

Bits = NDArray[np.uint64]  # (W, N): N sets of partitions, W words of 64 each

WORD = 64
OCTET = 8


def bits_of(rows: Whole, words: int) -> Bits:
    """Return sets, given as rows of numbers (N, K), as bits (words, N)."""
    numbers = np.arange(WORD * words)
    table = np.where(
        numbers // WORD == np.arange(words)[:, None], np.uint64(1) << (numbers % WORD).astype(np.uint64), np.uint64(0)
    )
    bits = np.zeros((words, len(rows)), dtype=np.uint64)
    for column in rows.T:
        bits |= table[:, column]
    return bits


def packed(held: Bools, words: int) -> Bits:
    """Return one set, given as a mask, as bits (words,)."""
    octets = np.zeros(words * WORD // OCTET, dtype=np.uint8)
    few = np.packbits(held, bitorder="little")
    octets[: len(few)] = few
    return octets.view("<u8").astype(np.uint64)


def sizes_of(bits: Bits) -> Whole:
    """Return the size of each set, shape (N,)."""
    sizes: Whole = np.zeros(bits.shape[1], dtype=np.int64)
    for word in bits:
        sizes += np.bitwise_count(word)
    return sizes


def holds(bits: Bits, item: int) -> Bools:
    """Return a mask of the sets that hold an item, shape (N,)."""
    held: Bools = (bits[item // WORD] >> np.uint64(item % WORD) & np.uint64(1)) != 0
    return held


def weights_of(bits: Bits, weights: Whole) -> Whole:
    """Return the total weight of each set, shape (N,); `weights` are per item.

    With more than eight weighted items, a table gives the weight of each subset of eight consecutive items.
    """
    sums = np.zeros(bits.shape[1], dtype=np.int64)
    items = np.flatnonzero(weights)
    if len(items) <= OCTET:
        for item in items.tolist():
            sums += weights[item] * holds(bits, item)
        return sums
    of_octets = np.zeros((len(bits), WORD // OCTET, OCTET), dtype=np.int64)
    of_octets.ravel()[: len(weights)] = weights
    for word, of_word in zip(bits, of_octets, strict=True):
        tables = np.zeros((len(of_word), 1), dtype=np.int64)
        for weight in of_word.T:
            tables = np.concatenate([tables, tables + weight[:, None]], axis=1)
        octets = word.astype("<u8").view(np.uint8).reshape(len(word), len(of_word))
        for octet in np.flatnonzero(of_word.any(axis=1)).tolist():
            sums += tables[octet][octets[:, octet]]
    return sums


def unpacked(words: Bits, count: int) -> Bools:
    """Return a mask of the `count` items that one set, given by its words, holds; shape (count,)."""
    numbers = np.arange(count, dtype=np.uint64)
    held: Bools = (words[numbers // np.uint64(WORD)] >> numbers % np.uint64(WORD) & np.uint64(1)) != 0
    return held


def undominated(low: Whole, high: Whole, *alike: NDArray[Any]) -> Whole:
    """Return the undominated entries: no other has the same `alike`, no smaller low and no larger high."""
    order = np.lexsort((-low, high, *alike))
    if len(order) < 2:
        return order
    other = np.zeros(len(order) - 1, dtype=bool)
    for column in alike:
        other |= np.diff(column[order]) != 0
    _, rank = np.unique(low[order], return_inverse=True)
    lifted = rank + np.concatenate([[0], np.cumsum(other)]) * (len(order) + 1)
    best: Whole = order[np.concatenate([[True], lifted[1:] > np.maximum.accumulate(lifted)[:-1]])]
    return best
