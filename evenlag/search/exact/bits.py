"""Sets of partitions as bits of 64-bit words, many sets side by side, and which partial plans of them to keep."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Bools, Whole

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
