"""The subset of a few numbers with a sum nearest to a target: meet in the middle.

The numbers are cut into two halves. All sums of the one half are sorted, and for every sum of the other the one that
completes it best is looked up, so n numbers cost about 2^(n/2) sums instead of 2^n. What differs from the textbook:
the nearest sum is wanted and not an equal one, sums may be negative, and ties are broken at random.

Source: Horowitz and Sahni 1974, "Computing partitions with applications to the knapsack problem".
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]


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
