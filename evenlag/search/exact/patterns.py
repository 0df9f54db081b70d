"""Patterns: what one member could hold within a window of loads, and how to cover all partitions with patterns.

For members that hold few partitions each, all subsets with a load in a narrow window can be listed, half a subset
looked up for every other half; an exact cover by as many patterns as there are members is a plan with every load in
the window, and where there is none, no plan has one.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from evenlag.model.balance import CountRule
from evenlag.model.problem import NOBODY

Column = NDArray[Any]
Whole = NDArray[np.int64]

MOST_HALVES = 400_000  # subsets of one half that are listed


class TooManyError(Exception):
    """There are more patterns than asked for."""


def patterns_within(lags: Column, size: int, low: Any, high: Any, most: int) -> Whole:
    """List the subsets of `size` of the lags with a sum in [low, high]; shape (N, size), each row ascending.

    Raises
    ------
    TooManyError
        There are more than `most`, or too many halves of them.
    """
    count = len(lags)
    if size == 0 or size > count:
        return np.zeros((int(size == 0 and low <= 0 <= high), size), dtype=np.int64)
    front = size // 2
    if comb(count, size - front) > MOST_HALVES:
        raise TooManyError
    first, second = subsets(count, front), subsets(count, size - front)
    sums = lags[second].sum(axis=1)
    order = np.argsort(sums, kind="stable")
    ascending = sums[order]
    base = lags[first].sum(axis=1) if front else np.zeros(1, dtype=lags.dtype)
    start = np.searchsorted(ascending, low - base, side="left")
    stop = np.searchsorted(ascending, high - base, side="right")
    hits = np.maximum(stop - start, 0)
    if hits.sum() > most * 4 * comb(size, front):
        raise TooManyError
    left = np.repeat(np.arange(len(base)), hits)
    at = np.arange(len(left)) - np.repeat(np.cumsum(hits) - hits, hits) + np.repeat(start, hits)
    right = order[at]
    if front:  # every subset once: its first half before its second
        once = first[left, -1] < second[right, 0]
        left, right = left[once], right[once]
    if len(left) > most:
        raise TooManyError
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


def listed(items: int, patterns: list[Whole]) -> tuple[list[Whole], list[list[int]]]:
    """Return all patterns in one list, and for every item which of them hold it."""
    rows = [row for block in patterns for row in block]
    held_by: list[list[int]] = [[] for _ in range(items)]
    for i, row in enumerate(rows):
        for item in row.tolist():
            held_by[item].append(i)
    return rows, held_by


def cover(items: int, patterns: list[Whole], count: int, work: float, seed: int) -> list[Whole] | None:
    """Choose `count` patterns that hold every item once; None if there are none or `work` was too little.

    Parameters
    ----------
    items : int
    patterns : list of int64 arrays (N, size)
    count : int
    work : float
        CP-SAT's deterministic time.
    seed : int
    """
    rows, held_by = listed(items, patterns)
    if len(rows) < count or not all(held_by):
        return None
    model = cp_model.CpModel()
    chosen = [model.new_bool_var("") for _ in rows]
    for holders in held_by:
        model.add_exactly_one([chosen[i] for i in holders])
    if len(patterns) > 1:
        model.add(cp_model.LinearExpr.sum(chosen) == count)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = work
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return [row for row, variable in zip(rows, chosen, strict=True) if solver.boolean_value(variable)]


def coverable(rule: CountRule) -> bool:
    """Whether any exact cover by patterns of allowed sizes is a plan: one class of partitions, members alike."""
    problem, boxes, active = rule.problem, rule.total_boxes, rule.problem.active
    if not rule.interchangeable or not problem.equal_weights or problem.lags.dtype == object or not active.any():
        return False
    same = np.ptp(boxes.lo[active]) == 0 == np.ptp(boxes.hi[active])
    return bool(same and rule.ranks is None and not (problem.pins != NOBODY).any())
