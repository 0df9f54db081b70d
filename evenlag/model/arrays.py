"""Array types, the values for no owner and no limit, and exact sums."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

NO_CAP = np.iinfo(np.int64).max
NOBODY = -1

Ints = NDArray[Any]  # int64, or Python integers (dtype object) if sums could exceed int64
Index = NDArray[np.int32]
Whole = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def summable(values: NDArray[np.int64]) -> Ints:
    """Return the values, which are >= 0, in a dtype in which they can be added up: object if int64 could overflow."""
    large = len(values) > 0 and len(values) * int(values.max()) >= 2**62
    return values.astype(object) if large and sum(values.tolist()) >= 2**62 else values


def stacked(rows: Sequence[Ints]) -> Ints:
    """Return the lags of several scenarios as one array (S, P), of dtype object if one of them is."""
    wide = any(row.dtype == object for row in rows)
    return np.array([row.astype(object) if wide else row for row in rows]) if rows else np.empty((0, 0), np.int64)


def held_loads(lags: Ints, member_of: Index, members: int) -> Ints:
    """Return the exact lag of each member's partitions in messages, shape (M,)."""
    loads = np.zeros(members, dtype=lags.dtype)
    held = member_of != NOBODY
    np.add.at(loads, member_of[held], lags[held])
    return loads


def numbered(keys: Iterable[Hashable]) -> Whole:
    """Return the number of each key, in the order in which they first appear: "b", "a", "b" → [0, 1, 0]."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def stable_order(keys: NDArray[Any]) -> Whole:
    """Return `argsort(keys, kind="stable")`, about ten times faster if all keys fit in 16 bits (radix sort)."""
    if len(keys) and keys.min() >= -(2**15) and keys.max() < 2**15:
        keys = keys.astype(np.int16)
    return np.argsort(keys, kind="stable")


def spans(starts: Whole, sizes: Whole) -> tuple[Whole, Whole]:
    """Return the numbers starts[k] … starts[k] + sizes[k] - 1 for each k in turn, and the k of each number."""
    which = np.repeat(np.arange(len(sizes)), sizes)
    return np.arange(len(which)) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes), which


def rank_within(groups: NDArray[Any]) -> Whole:
    """Return each entry's rank among the entries of its group, in the given order: [7, 3, 7, 7] → [0, 0, 1, 2]."""
    order = stable_order(groups)
    ordered = groups[order]
    firsts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))[: len(groups)]
    ranks = np.empty(len(groups), dtype=np.int64)
    ranks[order] = np.arange(len(groups)) - np.repeat(firsts, np.diff(firsts, append=len(groups)))
    return ranks
