"""First plans of a task's ordinary groups, made and returned by operations on whole columns (no Spark import)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evenlag.compare.strategies import OPTIMAL, AuditRow
from evenlag.heuristics import HEURISTICS
from evenlag.heuristics.by_columns import BY_COLUMNS
from evenlag.model.arrays import NOBODY, Bools, Whole
from evenlag.model.balance import Balance, count_rule
from evenlag.model.check import violation
from evenlag.model.group_columns import GroupColumns, rows_of_parts
from evenlag.model.objective import FEWEST_MOVES, ObjectiveKind
from evenlag.model.parse import UNKNOWN_MEMBER
from evenlag.model.plan import Plan
from evenlag.model.problem import Problem
from evenlag.model.result import Status
from evenlag.model.values import amount
from evenlag.search.columns.group_bounds import column_bounds
from evenlag.search.columns.group_rules import CountRules
from evenlag.search.exact.relaxations import Bounds
from evenlag.search.first_plans import METHODS, first_plans
from evenlag.search.options import AUTO, SolveOptions
from evenlag.spark.worker.packed_plans import MOVE_WORDS, named
from evenlag.tables.fleet_data import FleetData
from evenlag.tables.group_table import GroupTable
from evenlag.tables.ordinary_groups import OrdinaryGroups
from evenlag.tables.outputs import audit_fields

MOST_PRICED = 2.0**61  # messages of all moves of a group: objectives fit 64 bits
BASELINE = "swap-balance"  # most often the best of the heuristics without a column version
NOT_COMPARED = "the published strategies were not compared before the call's time limit"


def apply_to(options: SolveOptions, data: FleetData) -> bool:
    """Return whether plans can be made by columns: loads, counts and a price of moves are all that is asked for."""
    plain = options.max_moves is None and not options.slack and options.only_if_better is None
    terms = any((options.rack_price, options.first, options.prices, options.budgets))
    limits = (options.max_crossings, options.max_moved, options.max_load)
    priced = options.stickiness != FEWEST_MOVES and _price(options.stickiness)[0] is not None
    known = options.method in (AUTO, *BY_COLUMNS)
    return plain and not terms and limits == (None,) * 3 and priced and known and not data and data.draining is None


def _price(stickiness: float | str) -> tuple[int | None, int]:
    """Return the price of a move as messages and a divisor of the mean load; None for a fraction of a message."""
    number, percent = amount(stickiness)
    if number is None or (not percent and number.denominator != 1):
        return None, 0
    return (number.numerator, 100 * number.denominator) if percent else (int(number), 0)


@dataclass(frozen=True, eq=False)
class FirstResults:
    """The first plans of K ordinary groups of a task, made at once.

    Attributes
    ----------
    groups : int64 array (K,)
        Their numbers in the table.
    starts : int64 array (K + 1,)
        The rows of each in `member_of`.
    member_of : int64 array
        Place of each partition's member among the members of its group.
    objective, bound : int64 arrays (K,)
        In messages.
    means : float64 array (K,)
        Mean load, in messages.
    prices : int64 array (K,)
        Price of a move, in messages.
    methods : sequence of str (K,)
        The stage that found each plan.
    heuristic : bool
        True if a published heuristic's plans were asked for, unchanged.
    keeps : bool array (K,)
        True if the plan keeps the balance.
    seconds : float
        Time for all of them.
    """

    table: GroupTable
    ordinary: OrdinaryGroups
    groups: Whole
    starts: Whole
    member_of: Whole
    objective: Whole
    bound: Whole
    means: NDArray[np.float64]
    prices: Whole
    methods: Sequence[str]
    heuristic: bool
    keeps: Bools
    balance: str
    seconds: float

    @classmethod
    def of(
        cls, table: GroupTable, options: SolveOptions, *, moves: bool = True, deadline: float | None = None,
        without: Bools | None = None,
    ) -> FirstResults:  # fmt: skip
        """Make a plan for every ordinary group.

        Parameters
        ----------
        options : SolveOptions
            As `apply_to` accepts.
        moves : bool
            False if moves are free, as in audits.
        deadline : float, optional
            Time by `time.monotonic()` after which plans are not improved any more.
        without : bool array (G,), optional
            True for groups that are left out.
        """
        started = time.monotonic()
        ordinary = OrdinaryGroups(table)
        groups = np.flatnonzero(ordinary.chosen if without is None else ordinary.chosen & ~without)
        columns = ordinary.columns(groups)
        prices = np.zeros(len(groups), dtype=np.int64) if not moves else prices_of(columns, options.stickiness)
        fits = prices.astype(np.float64) * columns.sizes < MOST_PRICED
        if not fits.all():
            groups, prices = groups[fits], prices[fits]
            columns = ordinary.columns(groups)
        heuristic, keeps = options.method != AUTO, np.ones(len(groups), dtype=bool)
        if heuristic:
            member_of = BY_COLUMNS[options.method](columns)
            measure = columns.spread if options.objective == ObjectiveKind.SPREAD else columns.makespan
            objective = measure(member_of) + prices * columns.moves(member_of)
            keeps, methods = columns.keeps(member_of, options.balance), [options.method] * len(groups)
            bound = column_bounds(CountRules(columns, options.balance)).of(options.objective)
        else:
            found = first_plans(
                columns, balance=options.balance, kind=options.objective, price=prices, deadline=deadline
            )
            member_of, objective, bound = found.member_of, found.objective, found.bound
            methods = [METHODS[code] for code in found.method.tolist()]
        return cls(
            table, ordinary, groups, columns.starts, member_of, objective, bound,
            columns.totals / columns.members, prices, methods, heuristic, keeps, options.balance,
            time.monotonic() - started,
        )  # fmt: skip

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.groups)

    @cached_property
    def gaps(self) -> Any:
        """Objective − bound, as a share of the mean load (of one message if that is less), shape (K,)."""
        return (self.objective - self.bound) / np.maximum(self.means, 1)

    def compared(self, options: SolveOptions, deadline: float) -> FirstResults:
        """Return the plans, each replaced by a published heuristic's plan if that is better and keeps the balance.

        Those of `BY_COLUMNS` are made at once. `swap-balance` takes 2 ms for a group of 40 partitions: it is called for
        one group after the other, small ones first, until a time by `time.monotonic()`.
        """
        if self.heuristic:
            return self
        started = time.monotonic()
        member_of, objective, methods = self.member_of.copy(), self.objective.copy(), list(self.methods)
        columns = self.ordinary.columns(self.groups)
        spread = options.objective == ObjectiveKind.SPREAD
        for name, heuristic in BY_COLUMNS.items():
            made = heuristic(columns)
            costs = (columns.spread if spread else columns.makespan)(made) + self.prices * columns.moves(made)
            better = columns.keeps(made, self.balance) & (costs < objective)
            member_of = np.where(better[columns.group_of], made, member_of)
            objective[better] = costs[better]
            for k in np.flatnonzero(better).tolist():
                methods[k] = name
        for k in np.lexsort((-self.gaps, columns.sizes)).tolist():
            if time.monotonic() >= deadline:
                break
            if objective[k] == self.bound[k]:
                continue
            problem = self.table.group(int(self.groups[k])).problem()
            plan = HEURISTICS[BASELINE](problem)
            cost = (plan.spread if spread else plan.makespan) + int(self.prices[k]) * plan.moves
            if cost < objective[k] and violation(plan, count_rule(problem, self.balance)) is None:
                member_of[self.starts[k] : self.starts[k + 1]] = plan.member_of
                objective[k], methods[k] = cost, BASELINE
        seconds = self.seconds + time.monotonic() - started
        return replace(self, member_of=member_of, objective=objective, methods=methods, seconds=seconds)

    @property
    def proven(self) -> Bools:
        """True for plans that are proven to be the best, shape (K,)."""
        return np.asarray(self.objective == self.bound)

    def unproven(self, gap: float) -> Whole:
        """Return what a better plan may save at most, in messages, where the gap is above `gap`; shape (K,)."""
        return np.where(self.gaps > gap, self.objective - self.bound, 0)

    def start(self, k: int, problem: Problem) -> Plan:
        """Return the plan of a group, for its problem."""
        return Plan(problem, self.member_of[self.starts[k] : self.starts[k + 1]].astype(np.int32))

    def batch(self, chosen: Whole, schema: Any, *, audits: bool, notes: Sequence[str] = (), **common: Any) -> Any:
        """Return the results of some groups as a batch (`outputs.SOLVED`), one row each.

        Parameters
        ----------
        chosen : int64 array
            Places of the groups here.
        audits : bool
            Return an audit, with a row for the plan alone.
        notes : sequence of str
            Further warnings of each group.
        **common
            Columns with the same value for all: `late`, `attempt`, `task`.
        """
        table, groups = self.table, self.groups[chosen]
        notes = [*notes, *([NOT_COMPARED] if audits else [])]
        counts = {name: values[groups] for name, values in table.counts.items()}
        warnings = [
            [*table.notes(g), *([f"{lost} {UNKNOWN_MEMBER}"] if lost else []), *notes]
            for g, lost in zip(groups.tolist(), self.ordinary.strangers[groups].tolist(), strict=True)
        ]
        values: dict[str, Any] = {
            "snapshot_ts": [table.keys[g][0] for g in groups.tolist()],
            "group": [table.keys[g][1] for g in groups.tolist()],
            "status": [self._status(proven) for proven in self.proven[chosen].tolist()],
            "method": [self.methods[k] for k in chosen.tolist()],
            "objective": self.objective[chosen].astype(np.float64),
            "bound": self.bound[chosen].astype(np.float64),
            "bound_by": [Bounds.name] * len(chosen),
            "gap": pa.array(self.gaps[chosen], mask=~self.keeps[chosen]),
            "crossings": self.ordinary.crossings(groups, self.member_of[self._rows(chosen)]),
            "seconds": np.full(len(chosen), self.seconds / max(len(self), 1)),
            "warnings": warnings,
            "audit": self._audits(chosen) if audits else [[]] * len(chosen),
            **counts,
            **{name: [value] * len(chosen) for name, value in common.items()},
        }
        arrays = [
            pa.array(values[field.name], field.type) if field.name in values else pa.nulls(len(chosen), field.type)
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _status(self, proven: bool) -> str:
        return Status.HEURISTIC if self.heuristic else Status.OPTIMAL if proven else Status.FEASIBLE

    def _rows(self, chosen: Whole) -> Whole:
        return rows_of_parts(self.starts, chosen)

    def _audits(self, chosen: Whole) -> list[list[dict[str, Any]]]:
        """Return an audit of each group that has the row of the optimum alone; moves are free there."""
        columns = self.ordinary.columns(self.groups[chosen])
        member_of = self.member_of[self._rows(chosen)]
        figures = (columns.spread(member_of), columns.makespan(member_of), columns.moves(member_of))
        counts = np.bincount(columns.numbers(member_of), minlength=int(columns.member_starts[-1]))
        fewest, most = (of.reduceat(counts, columns.member_starts[:-1]) for of in (np.minimum, np.maximum))
        bounds = column_bounds(CountRules(columns, self.balance)).of(ObjectiveKind.SPREAD)
        crossed = self.ordinary.crossings(self.groups[chosen], member_of)
        found = []
        for k, crossings, spread, makespan, moves, unowned, low, high, bound in zip(
            chosen.tolist(),
            crossed,
            *(figure.tolist() for figure in (*figures, columns.forced_moves(), fewest, most, bounds)),
            strict=True,
        ):
            row = AuditRow(
                OPTIMAL, Balance(self.balance), Status(self._status(spread == bound)), self.methods[k],
                objective=spread, bound=bound, gap=(spread - bound) / max(float(self.means[k]), 1.0), spread=spread,
                excess=0, bound_excess=spread - bound, makespan=makespan, moves=moves, crossings=crossings,
                forced_moves=unowned,
                count_min=low, count_max=high, valid=True,
            )  # fmt: skip
            rejected = int(self.table.counts["rejected_rows"][self.groups[k]])
            found.append([audit_fields(row, rejected)])
        return found

    def plans(self, chosen: Whole) -> list[Any]:
        """Return the columns of the plans of some groups (`outputs.PLANS`)."""
        table, groups = self.table, self.groups[chosen]
        at, member_of = self.ordinary.rows_of(groups), self.member_of[self._rows(chosen)]
        owner = self.ordinary.owner_places(groups)
        moves = np.where(owner == NOBODY, MOVE_WORDS.index("forced"), member_of != owner)
        keys, sizes = [table.keys[g] for g in groups.tolist()], table.sizes[groups]
        names, stamps = pa.array(table.names, pa.string()), list(dict.fromkeys(ts for ts, _ in keys))
        number_of = {ts: number for number, ts in enumerate(stamps)}
        return [
            named(np.repeat([number_of[ts] for ts, _ in keys], sizes), pa.array(stamps, pa.string())),
            named(np.repeat(np.arange(len(keys)), sizes), pa.array([group for _, group in keys], pa.string())),
            named(table.topic_of[at], pa.array(table.topics, pa.string())),
            pa.array(table.partition_ids[at].astype(np.int32)),
            pa.array(table.lags[at]),
            named(table.owner_of[at], names),
            named(self.ordinary.member_codes(groups, member_of), names),
            named(moves, pa.array(MOVE_WORDS)),
        ]


def prices_of(columns: GroupColumns, stickiness: float | str) -> Whole:
    """Return the price of a move in each group, in messages; a share of the mean load is rounded up."""
    number, divisor = _price(stickiness)
    assert number is not None
    if not divisor or not number:
        return np.full(len(columns), number)
    totals, members = columns.totals.tolist(), columns.members.tolist()
    return np.array([-(-number * lag // (divisor * count)) for lag, count in zip(totals, members, strict=True)])
