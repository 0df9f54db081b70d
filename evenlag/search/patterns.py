"""Patterns, the columns of set partitioning: what one member could hold with a load in a given range.

For members that hold few partitions each, all subsets with a load in a narrow range can be listed. Half a subset is
looked up for every other half, as in the meet-in-the-middle of Horowitz and Sahni 1974, here for subsets of one size.
An exact cover by as many patterns as there are members is a plan with every load in the range, and where there is none,
no plan has all loads there: the set partitioning formulation of Balas and Padberg 1976, with all columns listed
beforehand instead of generated.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Whole
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
