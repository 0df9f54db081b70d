"""Covers: the best plan of few partitions put together member by member, or the proof that none is better.

All that a member may hold in a better plan is listed (search/exact/patterns.py). Whoever holds the biggest partition
comes first, then whoever holds the biggest of those left, and so on: so no plan is met twice. Of the ways to hand out
the same partitions to the same number of members only those are kept that no other betters in both the smallest and
the largest load, and none that leaves too little for the members still to come. Where that gets too much, CP-SAT
chooses the patterns.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from evenlag.heuristics.arrays import undominated
from evenlag.model.backends.cp_sat import round_up
from evenlag.model.backends.outcome import Limits
from evenlag.model.balance import CountRule
from evenlag.model.plan import Number, Plan
from evenlag.model.problem import NOBODY
from evenlag.model.reduced_lags import max_reduced_load, reduced_lags
from evenlag.search.exact.patterns import TooManyError, coverable, listed, patterns_within

Whole = NDArray[np.int64]
Bits = NDArray[np.uint64]  # a set of partitions each, the biggest is the lowest bit

MOST_PARTITIONS = 64
MOST_HELD = 6  # partitions of a member whose patterns are listed
MOST_LISTED = 60_000  # patterns
MOST_TO_CHOOSE_FROM = 6_000  # patterns, for CP-SAT
MOST_STATES = 400_000  # ways to hand out partitions to some members
AT_ONCE = 1 << 19  # pairs looked at in one step of the clock
ONE = np.uint64(1)
FIRST = 1 / 64  # of the way from the bound to the best spread known, where the one asked for begins
GROWTH = 4


def provable(rule: CountRule) -> bool:
    """Whether all patterns of plans may be listed: few partitions, and members hold some but few each."""
    problem = rule.problem
    few = problem.active.sum() <= problem.assignable.sum() <= MOST_PARTITIONS
    return bool(few) and coverable(rule) and int(rule.total_boxes.hi[problem.active].max()) <= MOST_HELD


def best_cover(
    rule: CountRule,
    window: tuple[Number, Number],
    spread: int,
    limits: Limits | None,
    stop: Callable[[], bool],
    size: float = 1.0,
) -> tuple[Plan | None, int | None]:
    """Look for a plan with a smaller spread than the one known, or prove that there is none.

    Parameters
    ----------
    rule : CountRule
        `provable` says which ones.
    window : (low, high)
        The smallest load is at most `low`, the largest at least `high`, in any plan (model/bounds.py).
    spread : int
        Of the best plan known, in messages.
    limits : Limits or None
        CP-SAT's; None: it is not asked.
    stop : callable
        Asked before each step of putting together.
    size : float
        How much may be listed, as a share of the most there may ever be.

    Returns
    -------
    plan : Plan or None
        The best plan found, if it is better.
    bound : int or None
        A lower bound on the spread of any plan.
    """
    started = time.monotonic()
    case = _Case(rule, window)
    bound = max(case.ceiling - case.floor, 0)
    if bound >= spread:
        return None, None
    excess = (spread - 1 - bound) * FIRST
    try:
        while bound < spread:
            target = min(bound + int(excess), spread - 1)
            patterns = case.patterns(target, int(size * MOST_LISTED))
            found = _put_together(case, patterns, target, int(size * MOST_STATES), stop)
            if found is not None:
                best, chosen = found
                return case.plan([_partitions(int(patterns.bits[i])) for i in chosen]), best
            bound, excess = target + 1, excess * GROWTH
        return None, spread
    except TooManyError:
        if limits is None:
            return None, bound
        return _chosen(case, bound, spread, int(size * MOST_TO_CHOOSE_FROM), limits, started)


@dataclass(frozen=True)
class _Patterns:
    """What a member may hold, by their biggest partition: partitions, sums of lags and plain lags."""

    bits: Bits
    loads: Whole
    plain: Whole
    starts: Whole  # where those begin whose biggest partition is 0, 1, …


class _Case:
    """The partitions, biggest first, and what members may hold of them."""

    def __init__(self, rule: CountRule, window: tuple[Number, Number]) -> None:
        self.problem = rule.problem
        self.members = np.flatnonzero(rule.problem.active)
        items = np.flatnonzero(rule.problem.assignable)
        self.items = items[np.argsort(-rule.problem.lags[items], kind="stable")]
        self.lags: Whole = rule.problem.lags[self.items]
        self.floor, self.ceiling = int(window[0] // 1), -int(-window[1] // 1)
        self.plain = reduced_lags(rule, self.floor)[self.items]
        self.raised = int(np.maximum(self.plain - self.lags, 0).sum())
        first = self.members[0]
        self.fewest = max(int(rule.total_boxes.lo[first]), 1)  # no plan is better for a member that holds nothing
        self.most = int(rule.total_boxes.hi[first])

    def listed(self, spread: int, most: int) -> list[Whole]:
        """List what a member may hold in plans of at most this spread, by how many partitions that is."""
        least, greatest = self.ceiling - spread, self.floor + spread
        most_sum = max_reduced_load(int(self.plain.sum()), self.raised, len(self.members), least, greatest)
        sizes = range(self.fewest, self.most + 1)
        blocks = [patterns_within(self.plain, size, least, most_sum, most) for size in sizes]
        loads = [self.lags[block].sum(axis=1) for block in blocks]
        return [
            block[(sums >= least) & (sums <= greatest)] for block, sums in zip(blocks, loads, strict=True)
        ]  # fmt: skip

    def patterns(self, spread: int, most: int) -> _Patterns:
        """Return the same by the biggest partition; of equal lags only neighbours, since they may change places."""
        columns = []
        for block in self.listed(spread, most):
            apart = np.diff(block, axis=1) > 1
            block = block[~(apart & (np.diff(self.lags[block], axis=1) == 0)).any(axis=1)]
            bits = np.bitwise_or.reduce(ONE << block.astype(np.uint64), axis=1)
            columns.append((block[:, 0], bits, self.lags[block].sum(axis=1), self.plain[block].sum(axis=1)))
        first, bits, loads, plain = (np.concatenate(column) for column in zip(*columns, strict=True))
        order = np.argsort(first, kind="stable")
        starts = np.searchsorted(first[order], np.arange(len(self.lags) + 1))
        return _Patterns(bits[order], loads[order], plain[order], starts)

    def plan(self, patterns: list[Whole]) -> Plan:
        """Return the plan in which each member holds one of these."""
        member_of = np.full(len(self.problem.lags), NOBODY, dtype=np.int32)
        for member, row in zip(self.members.tolist(), patterns, strict=True):
            member_of[self.items[row]] = member
        return Plan(self.problem, member_of)


@dataclass
class _States:
    """Ways to hand out some of the partitions to the first members; all arrays have one entry for each.

    `low` and `high` are the smallest and the largest load, members still to come included as far as is known of them;
    `before` is the state of one member less that it came from, `by` the pattern that was added.
    """

    bits: Bits
    low: Whole
    high: Whole
    load: Whole
    plain: Whole
    before: Whole
    by: Whole

    def take(self, kept: NDArray[np.generic]) -> _States:
        return _States(*(column[kept] for column in vars(self).values()))

    def undominated(self) -> _States:
        """Drop states beside which there is one of the same partitions with no smaller low and no larger high."""
        return self.take(undominated(self.low, self.high, self.bits))

    @classmethod
    def together(cls, parts: list[_States]) -> _States:
        return cls(*(np.concatenate(columns) for columns in zip(*(vars(part).values() for part in parts), strict=True)))


def _put_together(
    case: _Case, patterns: _Patterns, spread: int, most: int, stop: Callable[[], bool]
) -> tuple[int, list[int]] | None:
    """Return the least spread up to this one and the patterns that make it, or None; with at most so many states."""
    count, members = len(case.lags), len(case.members)
    same = np.flatnonzero(np.diff(case.lags) == 0)
    follows = np.bitwise_or.reduce(np.concatenate([[np.uint64(0)], ONE << (same + 1).astype(np.uint64)]))
    total, plain = int(case.lags.sum()), int(case.plain.sum())

    def added(states: _States, i: Whole, j: Whole, rest: int) -> _States:
        """Add patterns j to states i, as far as that can lead to a plan."""
        bits = states.bits[i] | patterns.bits[j]
        left = count - np.bitwise_count(bits).astype(np.int64)
        kept = (((bits & follows) >> ONE) & ~bits) == 0  # of equal lags the first are handed out first
        kept &= (left >= rest * case.fewest) & (left <= rest * case.most)
        bits, i, j = bits[kept], i[kept], j[kept]
        loads = patterns.loads[j]
        low, high = np.minimum(states.low[i], loads), np.maximum(states.high[i], loads)
        load, used = states.load[i] + loads, states.plain[i] + patterns.plain[j]
        if rest:
            low, high = np.minimum(low, (plain - used) // rest), np.maximum(high, -((load - total) // rest))
        return _States(bits, low, high, load, used, i, j).take(high - low <= spread)

    start = np.zeros(1, dtype=np.int64)
    states = _States(start.astype(np.uint64), start + case.floor, start + case.ceiling, start, start, start, start)
    history = []
    for rest in reversed(range(members)):
        biggest = np.bitwise_count((~states.bits & (states.bits + ONE)) - ONE)  # of those left
        found, size = [states.take(start[:0])], 0
        for item in np.unique(biggest).tolist():
            mine = np.flatnonzero(biggest == item)
            begin, end = patterns.starts[item : item + 2].tolist()
            step = max(AT_ONCE // max(end - begin, 1), 1)
            for at in range(0, len(mine), step):
                if stop():
                    raise TooManyError
                some = mine[at : at + step]
                i, j = np.nonzero((states.bits[some][:, None] & patterns.bits[None, begin:end]) == 0)
                found.append(added(states, some[i], j + begin, rest))
                size += len(found[-1].bits)
                if size > 2 * most:
                    found = [_States.together(found).undominated()]
                    if (size := len(found[0].bits)) > most:
                        raise TooManyError
        states = _States.together(found).undominated()
        history.append(states)
        if not len(states.bits):
            return None
    cost = states.high - states.low
    at, chosen = int(cost.argmin()), []
    for states in reversed(history):
        chosen.append(int(states.by[at]))
        at = int(states.before[at])
    return int(cost.min()), chosen


def _partitions(bits: int) -> Whole:
    return np.flatnonzero([bits >> item & 1 for item in range(MOST_PARTITIONS)])


def _chosen(
    case: _Case, bound: int, spread: int, most: int, limits: Limits, started: float
) -> tuple[Plan | None, int | None]:
    """Let CP-SAT choose the patterns of a plan better than `spread`, out of at most so many; `bound` is proven."""
    try:
        rows, held_by = listed(len(case.lags), case.listed(spread - 1, most))
    except TooManyError:
        return None, bound
    if len(rows) > most:
        return None, bound
    if not all(held_by):
        return None, spread
    least, greatest = case.ceiling - spread + 1, case.floor + spread - 1
    loads = [int(case.lags[row].sum()) - least for row in rows]
    model = cp_model.CpModel()
    chosen = [model.new_bool_var("") for _ in rows]
    high = model.new_int_var(max(case.ceiling - least, 0), greatest - least, "")
    low = model.new_int_var(0, min(case.floor, greatest) - least, "")
    for holders in held_by:
        mine = [chosen[i] for i in holders]
        model.add_exactly_one(mine)
        load = cp_model.LinearExpr.weighted_sum(mine, [loads[i] for i in holders])
        model.add(load <= high)
        model.add(load >= low)
    model.add(cp_model.LinearExpr.sum(chosen) == len(case.members))
    model.add(high - low <= spread - 1)
    model.add(high - low >= bound)
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
    reached = round_up(solver.best_objective_bound) if status != cp_model.UNKNOWN else None
    bound = bound if reached is None else max(bound, reached)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, bound
    return case.plan([row for row, variable in zip(rows, chosen, strict=True) if solver.boolean_value(variable)]), bound
