"""Subsets of partitions: listed by meeting in the middle, or as bits of 64-bit words, many side by side.

Listed: all with a sum in a range, or one with a sum nearest to a target. Half a subset is looked up for every other
half, so n numbers cost about 2^(n/2) sums instead of 2^n (Horowitz and Sahni 1974, "Computing partitions with
applications to the knapsack problem").

Patterns, the columns of set partitioning, are what one member could hold with a load in a given range: subsets of one
size. An exact cover by as many patterns as there are members is a plan with every load in the range, and where there is
none, no plan has all loads there: the set partitioning formulation of Balas and Padberg 1976, with all columns listed
beforehand instead of generated.

What differs from the textbook where one subset is asked for: the nearest sum is wanted and not an equal one, sums may
be negative, and ties are broken at random.
"""

from __future__ import annotations

from functools import cache, lru_cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Bools, Whole
from evenlag.model.backends.integer_program import IntegerProgram
from evenlag.model.balance import CountRule
from evenlag.model.problem import NOBODY

Column = NDArray[Any]

MOST_HALVES = 400_000  # subsets of one half that are listed: some tens of MB, some hundredths of a second


class EnumerationLimitError(Exception):
    """There is more to list than asked for."""


def patterns_within(lags: Column, size: int, low: Any, high: Any, most: int) -> Whole:
    """List the subsets of `size` of the lags with a sum in [low, high]; shape (N, size), each row ascending.

    Raises
    ------
    EnumerationLimitError
        There are more than `most`, or too many halves of them.
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
    left, at = runs(hits, start)
    right = order[at]
    if front:  # every subset once: its first half before its second
        once = first[left, -1] < second[right, 0]
        left, right = left[once], right[once]
    if len(left) > most:
        raise EnumerationLimitError
    return np.concatenate([first[left], second[right]], axis=1)


def runs(lengths: Whole, begin: Whole) -> tuple[Whole, Whole]:
    """Return each i `lengths[i]` times, and beside it begin[i], begin[i] + 1, …."""
    left = np.repeat(np.arange(len(lengths)), lengths)
    return left, np.arange(len(left)) - np.repeat(np.cumsum(lengths) - lengths - begin, lengths)


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
    """Choose `count` patterns that hold every item once; None if there are none or `work` was too little.

    Parameters
    ----------
    items : int
    patterns : list of int64 arrays (N, size)
    count : int
    work : float
        CP-SAT's deterministic time; no wall clock ends it.
    seed : int
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
    """Whether any exact cover by patterns of allowed sizes is a plan: partitions interchangeable, members alike."""
    problem, totals, active = rule.problem, rule.total_bounds, rule.problem.active
    if not rule.interchangeable or not problem.equal_weights or problem.lags.dtype == object or not active.any():
        return False
    same = np.ptp(totals.lo[active]) == 0 == np.ptp(totals.hi[active])
    return bool(same and rule.ranks is None and not (problem.pins != NOBODY).any())


# ---- one subset with a sum nearest to a target -----------------------------------------------------------------------


def nearest_subset(values: Column, target: Any, within: Any, rng: np.random.Generator) -> NDArray[np.bool_] | None:
    """Choose a subset with a sum nearest to `target`.

    Parameters
    ----------
    values : int64 or object array (N,)
        At most some 25; sums of them, and their distance to `target`, must not overflow the type.
    target : int
    within : int
        How far the sum may be from `target`.
    rng : numpy.random.Generator
        Breaks ties.

    Returns
    -------
    bool array (N,) or None
        Which values are in; None where no sum is near enough, and where the nearest is that of the empty subset.
    """
    half = len(values) // 2
    first, second = _subset_sums(values[:half]), _subset_sums(values[half:])
    ascending, wanted = np.sort(second), np.sort(target - first)  # both, because what ascends is looked up quicker
    right = ascending.searchsorted(wanted)
    # Below the smallest and above the largest comes the sum at the other end, which is a sum like any other.
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
    values: Column, size: int, target: Any, within: Any, rng: np.random.Generator
) -> NDArray[np.bool_] | None:
    """Choose `size` of the values with a sum nearest to `target`.

    To every value the same large number is added, so that the sum tells how many there are: a subset sum with a
    cardinality constraint becomes one without.

    Parameters
    ----------
    values : int64 or object array (N,)
        All >= 0, at most some 25.
    size : int
    target : int
    within : int
        How far the sum may be from `target`.
    rng : numpy.random.Generator

    Returns
    -------
    bool array (N,) or None
        Which values are in; None where no sum is near enough, and where `size` is 0.
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
    """One of the positions that are true."""
    chosen = among.nonzero()[0]
    return int(chosen[rng.integers(len(chosen)) if len(chosen) > 1 else 0])


def _subset_sums(values: Column) -> Column:
    """Sums of all subsets; subset i holds item j if bit j of i is set."""
    if len(values) <= 5:
        sums: Column = _membership(len(values)) @ values
        return sums
    half = len(values) // 2
    return np.add.outer(_subset_sums(values[half:]), _subset_sums(values[:half])).ravel()


@cache
def _membership(count: int) -> NDArray[np.bool_]:
    """Which items each subset of `count` holds; shape (2^count, count)."""
    return (np.arange(2**count)[:, None] >> np.arange(count) & 1).astype(bool)


# ---- subsets as bits, and which partial plans of them to keep --------------------------------------------------------

Bits = NDArray[np.uint64]  # (W, N): N sets of partitions, W words of 64 each

WORD = 64
OCTET = 8


def bits_of(rows: Whole, words: int) -> Bits:
    """Write sets, given as rows of numbers (N, K), as bits (words, N)."""
    numbers = np.arange(WORD * words)
    table = np.where(
        numbers // WORD == np.arange(words)[:, None], np.uint64(1) << (numbers % WORD).astype(np.uint64), np.uint64(0)
    )
    bits = np.zeros((words, len(rows)), dtype=np.uint64)
    for column in rows.T:
        bits |= table[:, column]
    return bits


def packed(held: Bools, words: int) -> Bits:
    """Write one set, given as a mask, as bits (words,)."""
    octets = np.zeros(words * WORD // OCTET, dtype=np.uint8)
    few = np.packbits(held, bitorder="little")
    octets[: len(few)] = few
    return octets.view("<u8").astype(np.uint64)


def sizes_of(bits: Bits) -> Whole:
    """Return how many partitions each set holds, shape (N,)."""
    sizes: Whole = np.zeros(bits.shape[1], dtype=np.int64)
    for word in bits:
        sizes += np.bitwise_count(word)
    return sizes


def holds(bits: Bits, item: int) -> Bools:
    """Say which sets hold this one, shape (N,)."""
    held: Bools = (bits[item // WORD] >> np.uint64(item % WORD) & np.uint64(1)) != 0
    return held


def weighed(bits: Bits, weights: Whole) -> Whole:
    """Return the sum of each set's weights, given by number, shape (N,).

    Where more than a few have weight, eight numbers at a time are looked up in a table of what all sets of them weigh.
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
    """Say of each of `count` numbers whether one set, its words in order, holds it, shape (count,)."""
    numbers = np.arange(count, dtype=np.uint64)
    held: Bools = (words[numbers // np.uint64(WORD)] >> numbers % np.uint64(WORD) & np.uint64(1)) != 0
    return held


def undominated(low: Whole, high: Whole, *alike: NDArray[Any]) -> Whole:
    """Return the entries beside which there is none with the same `alike`, no smaller low and no larger high."""
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
