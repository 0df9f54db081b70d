"""The order in which a Java HashMap goes through its keys, which decides some of Kafka's ties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

TABLE_SIZES = 16 << np.arange(27)  # a table doubles as soon as it is more than three quarters full

Hashes = NDArray[np.uint32]


def hash_codes(names: Sequence[str]) -> Hashes:
    """Return `String.hashCode` of each name: Σ c_i · 31^(n − 1 − i) over its UTF-16 units, modulo 2^32."""
    units = [np.frombuffer(name.encode("utf-16-le"), dtype=np.uint16) for name in names]
    longest = max(map(len, units), default=0)
    table = np.zeros((len(names), longest), dtype=np.uint32)
    for row, line in zip(table, units, strict=True):
        row[longest - len(line) :] = line  # leading zeros add nothing
    powers = np.array([pow(31, longest - 1 - i, 2**32) for i in range(longest)], dtype=np.uint32)
    codes: Hashes = (table * powers).sum(axis=1, dtype=np.uint32)
    return codes


def table_size(keys: Any) -> Any:
    """Return how many buckets a table has after so many keys (an integer or an array) were put into it one by one."""
    return TABLE_SIZES[np.searchsorted(TABLE_SIZES * 3 // 4, keys)]


def buckets(codes: Hashes, size: int) -> NDArray[np.int64]:
    """Return the bucket of each hash code in a table of `size` buckets; a table is gone through bucket by bucket."""
    return ((codes ^ (codes >> np.uint32(16))) & np.uint32(size - 1)).astype(np.int64)


def map_order(names: Sequence[str]) -> NDArray[np.int64]:
    """Return the indices of names in the order of a map that has them as keys; in a bucket they stay in their order."""
    return np.argsort(buckets(hash_codes(names), table_size(len(names))), kind="stable")
