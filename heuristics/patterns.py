"""Patterns: what one member could hold within a window of loads, and how to cover all partitions with patterns.

For members that hold few partitions each, all subsets with a load in a narrow window can be listed, half a subset
looked up for every other half; an exact cover by as many patterns as there are members is a plan with every load in
the window, and where there is none, no plan has one.
"""

from __future__ import annotations

import time
from functools import lru_cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from evenlag.model.backends.cp_sat import round_up
from evenlag.model.backends.outcome import Limits
from evenlag.model.balance import CountRule
from evenlag.model.plan import Number, Plan
from evenlag.model.problem import NOBODY

Column = NDArray[Any]
Whole = NDArray[np.int64]

MOST_HALVES = 400_000  # subsets of one half that are listed
MOST_HELD = 6  # partitions of a member whose patterns are listed for a proof
MOST_TO_PROVE = 6_000  # patterns of a whole problem


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


def _listed(items: int, patterns: list[Whole]) -> tuple[list[Whole], list[list[int]]]:
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
    rows, held_by = _listed(items, patterns)
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
    if not rule.one_class or not problem.equal_weights or problem.lags.dtype == object or not active.any():
        return False
    same = np.ptp(boxes.lo[active]) == 0 == np.ptp(boxes.hi[active])
    return bool(same and rule.ranks is None and not (problem.pins != NOBODY).any())


def provable(rule: CountRule) -> bool:
    """Whether all patterns of plans may be listed: members hold few partitions each."""
    return coverable(rule) and int(rule.total_boxes.hi[rule.problem.active].max()) <= MOST_HELD


def best_cover(
    rule: CountRule, window: tuple[Number, Number], spread: int, limits: Limits
) -> tuple[Plan | None, int | None]:
    """Look for a plan with a smaller spread than the one known, or prove that there is none.

    A better plan has its largest load at least at the window's high end and its smallest at most at the low end, so
    all its loads lie less than `spread` from both.

    Parameters
    ----------
    rule : CountRule
        `provable` says which ones.
    window : (low, high)
        The smallest load is at most `low`, the largest at least `high`, in any plan (model/bounds.py).
    spread : int
        Of the best plan known, in messages.
    limits : Limits

    Returns
    -------
    plan : Plan or None
        The best plan found, if it is better.
    bound : int or None
        A lower bound on the spread of any plan.

    Raises
    ------
    TooManyError
        There are more than `MOST_TO_PROVE` patterns.
    """
    started = time.monotonic()
    problem = rule.problem
    items, active = np.flatnonzero(problem.assignable), np.flatnonzero(problem.active)
    lags = problem.lags[items]
    lo, hi = (int(box[active[0]]) for box in (rule.total_boxes.lo, rule.total_boxes.hi))
    floor, ceiling = int(window[0] // 1), -int(-window[1] // 1)
    least, greatest = ceiling - spread + 1, floor + spread - 1
    blocks = [patterns_within(lags, size, least, greatest, MOST_TO_PROVE) for size in range(lo, hi + 1)]
    rows, held_by = _listed(len(lags), blocks)
    if len(rows) > MOST_TO_PROVE:
        raise TooManyError
    loads = [int(lags[row].sum()) - least for row in rows]
    if not all(held_by):
        return None, spread
    model = cp_model.CpModel()
    chosen = [model.new_bool_var("") for _ in rows]
    high = model.new_int_var(max(ceiling - least, 0), greatest - least, "")
    low = model.new_int_var(0, min(floor, greatest) - least, "")
    for holders in held_by:
        mine = [chosen[i] for i in holders]
        model.add_exactly_one(mine)
        load = cp_model.LinearExpr.weighted_sum(mine, [loads[i] for i in holders])
        model.add(load <= high)
        model.add(load >= low)
    model.add(cp_model.LinearExpr.sum(chosen) == len(active))
    model.add(high - low <= spread - 1)
    model.minimize(high - low)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = limits.threads if limits.work is None else 1
    solver.parameters.random_seed = limits.seed
    if limits.work is not None:
        solver.parameters.max_deterministic_time = limits.work
    solver.parameters.max_time_in_seconds = limits.solver_seconds(started)
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None, spread
    bound = round_up(solver.best_objective_bound) if status != cp_model.UNKNOWN else None
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, bound
    member_of = np.full(len(problem.lags), NOBODY, dtype=np.int32)
    used = [i for i, variable in enumerate(chosen) if solver.boolean_value(variable)]
    for member, i in zip(active.tolist(), used, strict=True):
        member_of[items[rows[i]]] = member
    return Plan(problem, member_of), bound
