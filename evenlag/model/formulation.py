"""The MIP (docs/formulation.md), built once as arrays for all backends and for export.

Columns, in order: one boolean x[p, m] for each partition with a choice and each member it may go to; `high` and `low`
(largest and smallest load per weight, in `unit` messages), one pair per scenario if there are any; `worst`, if the
worst scenario counts; `moves`; one for each pair cost; then the auxiliary columns of the count rule. All coefficients
are integers, so that integer solvers need no scaling and floating-point solvers lose little.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Ints
from evenlag.model.balance import CountRule
from evenlag.model.objective import Across, Objective, ObjectiveKind, PairCost
from evenlag.model.plan import Number, common_divisor, whole
from evenlag.model.problem import NOBODY, Index, Problem


@dataclass
class _Rows:
    """Rows `lo <= Σ coefficient · column <= hi`, collected in coordinate form."""

    row: list[Ints] = field(default_factory=list)
    column: list[Ints] = field(default_factory=list)
    coefficient: list[Ints] = field(default_factory=list)
    lo: list[int | None] = field(default_factory=list)
    hi: list[int | None] = field(default_factory=list)

    def add(self, columns: Ints, coefficients: Ints | int, lo: int | None, hi: int | None) -> None:
        columns = np.asarray(columns, dtype=np.int64)
        self.row.append(np.full(len(columns), len(self.lo), dtype=np.int64))
        self.column.append(columns)
        self.coefficient.append(np.broadcast_to(np.asarray(coefficients), columns.shape))
        self.lo.append(lo)
        self.hi.append(hi)


@dataclass(frozen=True, eq=False)
class _Choices:
    """The booleans x[p, m]: the partition and the member of each, int32 arrays (X,); column i is boolean i.

    `fixed` has the member of each partition without a choice, or `NOBODY`.
    """

    partition: Index
    member: Index
    fixed: Index

    @cached_property
    def _of_member(self) -> dict[int, Ints]:
        return dict(zip(*_grouped(self.member), strict=True))

    def of(self, member: int) -> Ints:
        """Return the columns of a member."""
        return self._of_member.get(member, np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Mip:
    """A mixed-integer program with integer data; minimize Σ cost · column.

    Attributes
    ----------
    x_partition, x_member : int32 arrays (X,)
        Partition and member of each boolean; column i is boolean i.
    fixed : int32 array (P,)
        Member of each partition without a choice, or `NOBODY`.
    lower, upper : lists of int
        Bounds of each column.
    names : list of str
        Name of each column in `evenlag export`.
    rows : list of (columns, coefficients, lo, hi)
        None for lo or hi means no limit.
    step : Fraction
        Messages per unit of the objective, of which every objective is a multiple.
    unit : Fraction
        Messages per unit of `high`, `low` and `worst`.
    levels : range
        The columns `high`, `low` and `worst`.
    moves : int
        Index of the column.
    pairs : range
        The columns of the pair costs.
    """

    problem: Problem
    x_partition: Index
    x_member: Index
    fixed: Index
    lower: list[int]
    upper: list[int]
    names: list[str]
    rows: list[tuple[Ints, Ints, int | None, int | None]]
    costs: dict[int, int]
    step: Fraction
    unit: Fraction
    levels: range
    moves: int
    pairs: range

    @property
    def booleans(self) -> int:
        """Number of booleans x[p, m]."""
        return len(self.x_partition)

    def decode(self, x: NDArray[Any]) -> Index | None:
        """Return the member of every partition for values of the booleans; None if they are not an assignment."""
        if len(x) != self.booleans:
            return None
        chosen = np.asarray(x) > 0.5
        member_of = self.fixed.copy()
        member_of[self.x_partition[chosen]] = self.x_member[chosen]
        once = np.bincount(self.x_partition[chosen], minlength=len(member_of)) <= 1
        complete = (member_of != NOBODY) | ~self.problem.assignable
        return member_of if once.all() and complete.all() else None

    def encode(self, member_of: Index) -> NDArray[np.int64]:
        """Return the booleans of an assignment."""
        chosen: NDArray[np.int64] = (member_of[self.x_partition] == self.x_member).astype(np.int64)
        return chosen

    def in_messages(self, units: Number) -> Number:
        """Convert an objective value of this program to messages."""
        return whole(Fraction(units) * self.step)


def boolean_count(problem: Problem) -> int:
    """Return the number of booleans in the program of a problem, without building it."""
    choices = problem.allowed.sum(axis=1)
    free = np.bincount(problem.topic_of[problem.pins == NOBODY], minlength=len(choices))
    return int((free * choices)[choices > 1].sum())


def formulate(problem: Problem, rule: CountRule, objective: Objective) -> Mip:
    """Formulate the problem as a mixed-integer program."""
    x = _choices(problem)
    booleans = len(x.partition)
    futures = problem.judged_by
    common = problem.lag_unit
    unit = problem.load_unit * common
    factor = max((int(f) for f in problem.load_factors), default=1)
    most = max(int((future.lags // common)[problem.assignable].sum()) for future in futures) * factor
    owned = int(((problem.owner != NOBODY) & problem.assignable).sum())
    budget = owned if objective.max_moves is None else min(owned, objective.max_moves)
    levels = _level_names(problem, objective)
    highs, lows, worst = (
        [booleans + i for i, name in enumerate(levels) if name.startswith(kind)] for kind in ("high", "low", "worst")
    )
    moves = booleans + len(levels)
    lower = [0] * (moves + 1)
    upper = [1] * booleans + [most] * len(levels) + [budget]
    if objective.ceiling is not None:
        for column in highs:
            upper[column] = min(most, floor(objective.ceiling / unit))
    names = [f"x_{p}_{m}" for p, m in zip(x.partition.tolist(), x.member.tolist(), strict=True)] + [*levels, "moves"]
    rows = _Rows()
    for columns in _grouped(x.partition)[1]:
        rows.add(columns, 1, 1, 1)
    for s, future in enumerate(futures):
        if highs:
            _load_rows(rows, future, x, future.lags // common, highs[s], lows[s : s + 1])
        for column in worst:
            below = [*lows[s : s + 1], column]
            rows.add(np.array([highs[s], *below]), np.array([1, *(-1 for _ in below)]), None, 0)
    _move_row(rows, problem, x, moves)
    for k, pair in enumerate(objective.pairs):
        _pair_row(rows, pair, x, moves + 1 + k)
        names.append(f"cost_{pair.name}")
        lower.append(0)
        upper.append(_most(pair))
    helpers = _count_rows(rows, rule, x, len(names))
    for name, most_of_it in helpers:
        lower.append(0)
        upper.append(most_of_it)
        names.append(name)
    shares = [Fraction(weight) / sum(problem.scenario_weights) for weight in problem.scenario_weights] or [Fraction(1)]
    counted = objective.kind is not None
    in_messages = (
        dict.fromkeys(worst if counted else (), unit)
        | ({} if worst or not counted else {column: unit * share for column, share in zip(highs, shares, strict=True)})
        | {moves: Fraction(objective.stickiness)}
        | {moves + 1 + k: Fraction(pair.price) for k, pair in enumerate(objective.pairs)}
        | ({} if worst else {column: -unit * share for column, share in zip(lows, shares, strict=False)})
    )
    step = common_divisor(in_messages.values())
    costs = {column: int(cost / step) for column, cost in in_messages.items() if cost}
    starts = np.searchsorted(np.concatenate(rows.row), np.arange(len(rows.lo) + 1))
    every_column, every_coefficient = np.concatenate(rows.column), np.concatenate(rows.coefficient)
    spans = zip(starts[:-1].tolist(), starts[1:].tolist(), rows.lo, rows.hi, strict=True)
    table = [(every_column[a:b], every_coefficient[a:b], lo, hi) for a, b, lo, hi in spans]
    return Mip(
        problem, x.partition, x.member, x.fixed, lower, upper, names, table, costs, step, unit, range(booleans, moves),
        moves, range(moves + 1, moves + 1 + len(objective.pairs)),
    )  # fmt: skip


def _level_names(problem: Problem, objective: Objective) -> list[str]:
    """Return the names of the load-level columns."""
    if objective.kind is None and objective.ceiling is None:
        return []
    kinds = ("high", "low") if objective.kind == ObjectiveKind.SPREAD else ("high",)
    if not problem.futures:
        return list(kinds)
    names = [f"{kind}_{s}" for s in range(len(problem.futures)) for kind in kinds]
    return [*names, "worst"] if objective.across == Across.WORST and objective.kind is not None else names


def _choices(problem: Problem) -> _Choices:
    fixed = problem.pins.copy()
    choices = problem.allowed.sum(axis=1)
    topics, members = np.nonzero(problem.allowed & (choices == 1)[:, None])
    only = np.full(len(choices), NOBODY)
    only[topics] = members
    fixed = np.where(fixed == NOBODY, only[problem.topic_of], fixed).astype(np.int32)
    free = np.flatnonzero((fixed == NOBODY) & (choices[problem.topic_of] > 1))
    repeat = choices[problem.topic_of[free]]
    x_partition = np.repeat(free, repeat).astype(np.int32)
    members_of_topic = [np.flatnonzero(row) for row in problem.allowed]
    lists = [members_of_topic[t] for t in problem.topic_of[free].tolist()]
    x_member = np.concatenate(lists).astype(np.int32) if lists else np.zeros(0, dtype=np.int32)
    return _Choices(x_partition, x_member, fixed)


def _grouped(keys: Index) -> tuple[list[int], list[Ints]]:
    order = np.argsort(keys, kind="stable")
    values, starts = np.unique(keys[order], return_index=True)
    return values.tolist(), np.split(order, starts[1:]) if len(values) else []


def _load_rows(rows: _Rows, problem: Problem, x: _Choices, sizes: Ints, high: int, low: list[int]) -> None:
    """Add two rows for each member: its load is at most the column `high`, and at least `low` if there is one."""
    for m in np.flatnonzero(problem.active).tolist():
        columns = x.of(m)
        factor = int(problem.load_factors[m])
        coefficients = (sizes[x.partition[columns]].astype(object) * factor).tolist()
        base = int(sizes[x.fixed == m].sum()) * factor
        for bound, lo, hi in ((high, None, -base), *((column, -base, None) for column in low)):
            rows.add(np.append(columns, bound), _integers([*coefficients, -1]), lo, hi)


def _move_row(rows: _Rows, problem: Problem, x: _Choices, moves: int) -> None:
    owned = (problem.owner != NOBODY) & problem.assignable
    kept = np.flatnonzero(problem.owner[x.partition] == x.member)
    count = int(owned.sum()) - int((owned & (x.fixed == problem.owner)).sum())
    rows.add(np.append(kept, moves), 1, count, count)


def _pair_row(rows: _Rows, pair: PairCost, x: _Choices, column: int) -> None:
    costs = pair.costs.at(x.partition, x.member)
    used = np.flatnonzero(costs)
    rows.add(np.append(used, column), _integers([*costs[used].tolist(), -1]), -pair.of(x.fixed), -pair.of(x.fixed))


def _most(pair: PairCost) -> int:
    """Return the upper limit on a plan's units of the cost: its budget, or the most that any plan can have."""
    most = sum(pair.costs.largest.tolist())
    return int(most if pair.budget is None else min(most, pair.budget))


def _count_rows(rows: _Rows, rule: CountRule, x: _Choices, helper: int) -> list[tuple[str, int]]:
    """Add the count rule; return name and upper bound of its auxiliary columns, numbered from `helper`."""
    problem, helpers = rule.problem, list[tuple[str, int]]()
    held = x.fixed != NOBODY
    fixed_counts = np.bincount(x.fixed[held], minlength=len(problem.members)).tolist()
    rank_columns: list[int] = []
    rank_costs: list[int] = []
    for m in np.flatnonzero(problem.active).tolist():
        columns, base = x.of(m), fixed_counts[m]
        lo, hi = int(rule.member_bounds.lo[m]) - base, int(rule.member_bounds.hi[m]) - base
        if lo > 0 or hi < len(columns):
            rows.add(columns, 1, lo, hi)
        if rule.ranks is not None:
            first = helper + len(helpers)
            helpers += [(f"rank_{m}_{k}", 1) for k in range(2)]
            rank_columns += [first, first + 1]
            rank_costs += rule.ranks.steps[:, m].tolist()
            coefficients = np.append(np.ones(len(columns), dtype=np.int64), [-1, -1])
            above = int(rule.ranks.base[m]) - base
            rows.add(np.append(columns, [first, first + 1]), coefficients, above, above)
    if rule.ranks is not None:
        rows.add(np.array(rank_columns), np.array(rank_costs), None, rule.ranks.total)
    if rule.topic_bounds is None:
        return helpers
    cells = problem.topic_of[x.partition].astype(np.int64) * len(problem.members) + x.member
    of_cell = dict(zip(*_grouped(cells), strict=True))
    fixed_cells = problem.topic_of[held].astype(np.int64) * len(problem.members) + x.fixed[held]
    base_of_cell = np.bincount(fixed_cells, minlength=problem.subscribed.size)
    distances: list[int] = []
    for t, m in zip(rule.network.topics.tolist(), rule.network.members.tolist(), strict=True):
        cell = t * len(problem.members) + m
        columns, base = of_cell.get(cell, np.zeros(0, dtype=np.int64)), int(base_of_cell[cell])
        lo, hi = int(rule.topic_bounds.lo[t, m]) - base, int(rule.topic_bounds.hi[t, m]) - base
        if rule.topic_distance == 0:
            if lo > 0 or hi < len(columns):
                rows.add(columns, 1, lo, hi)
            continue
        distance = helper + len(helpers)
        helpers.append((f"off_{t}_{m}", rule.topic_distance))
        distances.append(distance)
        ones = np.ones(len(columns), dtype=np.int64)
        rows.add(np.append(columns, distance), np.append(ones, 1), lo, None)
        rows.add(np.append(columns, distance), np.append(ones, -1), None, hi)
    if distances:
        rows.add(np.array(distances), 1, None, rule.topic_distance)
    return helpers


def _integers(values: list[int]) -> Ints:
    fits = all(abs(value) < 2**62 for value in values)
    return np.array(values, dtype=np.int64 if fits else object)
