"""The iteration order of a Java HashMap, which decides some of Kafka's ties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

TABLE_SIZES = 16 << np.arange(27)  # a table doubles once it is more than three quarters full

Hashes = NDArray[np.uint32]
_FIBONACCI = -7046029254386353131 & (1 << 64) - 1  # org.apache.kafka.timeline.BaseHashTable


def hash_codes(names: Sequence[str]) -> Hashes:
    """Return `String.hashCode` of each name: Σ c_i · 31^(n − 1 − i) over its UTF-16 units, modulo 2^32."""
    encoded = [name.encode("utf-16-le", "surrogatepass") for name in names]
    lengths = np.array([len(name) // 2 for name in encoded], dtype=np.int64)
    units = np.frombuffer(b"".join(encoded), dtype="<u2").astype(np.uint32)
    powers = np.full(lengths.max(initial=1), 31, dtype=np.uint32)
    powers[0] = 1
    powers = np.multiply.accumulate(powers, dtype=np.uint32)
    ends = np.cumsum(lengths)
    units *= powers[np.repeat(ends, lengths) - 1 - np.arange(len(units))]
    sums = np.concatenate([np.zeros(1, dtype=np.uint32), np.cumsum(units, dtype=np.uint32)])
    codes: Hashes = sums[ends] - sums[ends - lengths]  # sums wrap around, and so do differences
    return codes


def table_size(keys: Any) -> Any:
    """Return the number of buckets after the given number of keys (an integer or an array) were added one by one."""
    return TABLE_SIZES[np.searchsorted(TABLE_SIZES * 3 // 4, keys)]


def buckets(codes: Hashes, size: int) -> NDArray[np.int64]:
    """Return the bucket of each hash code in a table of `size` buckets; iteration goes bucket by bucket."""
    return ((codes ^ (codes >> np.uint32(16))) & np.uint32(size - 1)).astype(np.int64)


def map_order(names: Sequence[str]) -> NDArray[np.int64]:
    """Return the indices of names in a HashMap's iteration order; within a bucket, names keep their order."""
    return np.argsort(buckets(hash_codes(names), table_size(len(names))), kind="stable")


def timeline_order(codes: Hashes, most: int = 0) -> NDArray[np.int64]:
    """Return the iteration order of Kafka's TimelineHashMap, as far as the names of its keys decide it.

    A slot is the top bits of the hash code times a constant. The table starts with two slots and doubles once it has
    more than four keys for three slots. It never shrinks: `most` is the most keys that it had. Keys in one slot keep
    their order.
    """
    bits = 1
    while max(len(codes), most) * 3 > 4 << bits:
        bits += 1
    spread = codes.astype(np.int32).astype(np.int64).astype(np.uint64) * np.uint64(_FIBONACCI)
    return np.argsort(spread >> np.uint64(64 - bits), kind="stable")
