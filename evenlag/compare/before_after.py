"""What-if analysis: the best plan of a group, compared with the best plan after a change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from evenlag.compare.catch_up import UNKNOWN_PACE, Pace, pace_of
from evenlag.compare.change import Change, NewPartitions, carried_out
from evenlag.compare.history import Snapshot
from evenlag.errors import EvenlagError, InvalidProblemError
from evenlag.figures import duration, messages, number, quantity
from evenlag.model.drain_time import in_messages
from evenlag.model.explanation.reasons import outcome_of
from evenlag.model.figure_tables import GROUP, Figure, FigureTable
from evenlag.model.objective import CROSSINGS, MOVED_SIZE
from evenlag.model.pair_costs import costs_of
from evenlag.model.plan import Number, Plan, current_plan, plain, whole
from evenlag.model.problem import NOBODY, Problem
from evenlag.model.result import Result
from evenlag.model.values import amount
from evenlag.search.clock import LEAST_SECONDS, Clock
from evenlag.search.entry import with_payoff
from evenlag.search.options import SolveKeywords, SolveOptions, solving_options
from evenlag.search.solver import search

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

WHATIF_FIGURES = (
    GROUP,
    Figure("side", "string", "`today` (the current assignment), `before` or `after` (the best plans)."),
    Figure("status", "string", "Status of the plan; null: today."),
    Figure("balance", "string", "Balance of the plan; null: today."),
    Figure("partitions", "integer", "Number of partitions."),
    Figure("members", "integer", "Number of active members."),
    Figure("count_min", "integer", "Fewest partitions of an active member."),
    Figure("count_max", "integer", "Most partitions of an active member."),
    Figure("spread", "number", "Largest − smallest load per weight by current lags, in messages."),
    Figure("makespan", "number", "Largest load per weight by current lags, in messages."),
    Figure("moves", "integer", "Partitions that leave their owner; null: today."),
    Figure("forced_moves", "integer", "Partitions without an owner that get one; null: today."),
    Figure("unassigned", "integer", "Partitions without a member."),
    Figure("moved_size", "integer", "Total size of the partitions that leave their owner; null: today or unknown."),
    Figure("crossings", "integer", "Traffic (without it: partitions) read across racks; null: racks unknown."),
    Figure("objective", "number", "Objective of the plan, in messages; null: today."),
    Figure("bound", "number", "Proven lower bound of the objective, in messages; null: today."),
    Figure("gap", "number", "Objective − bound, as a share of the mean load; null: today."),
    Figure("binding", "string", "Rules that limit the objective, joined by `;`; null: none, or today."),
)
"""Columns of `WhatIf.to_pandas`; loads per weight are in the unit of the group before the change."""


@dataclass(frozen=True, eq=False)
class WhatIf:
    """A group before and after a change.

    Attributes
    ----------
    change : Change
    before, after : Result
        Results for the group today and for the changed group, whose problem is `after.plan.problem`. Each is in its own
        unit: loads per weight refer to the mean weight of its members. Multiply loads of `after` by `unit` to compare.
    notes : tuple of str
        Assumptions made for the user: names of new members, lags of new partitions.
    pace : Pace
        Known rates of messages in, and the members' capacity if known.
    """

    change: Change
    before: Result
    after: Result
    notes: tuple[str, ...]
    pace: Pace = UNKNOWN_PACE

    def __repr__(self) -> str:
        spreads = f"spread before={self.before.spread}, after={self.in_unit(self.after.spread)}"
        return f"<WhatIf {self.before.plan.problem.group!r}: {spreads}, moves={self.after.moves}>"

    @property
    def unit(self) -> Fraction:
        """Factor that converts loads per weight of `after` to the unit of `before`: the ratio of the mean weights."""
        return _unit(self.before.plan.problem, self.after.plan.problem)

    def in_unit(self, messages: Number) -> Number:
        """Return messages per weight of `after` in the unit of `before`."""
        return whole(messages * self.unit)

    @cached_property
    def compared(self) -> Result:
        """`after` with prices, ceiling, objective, bound and payoff in the unit of `before`, without its proof.

        Its spread and makespan follow from its plan, so they stay in its own unit.
        """
        after, scaled = self.after, self.in_unit
        worth = after.payoff
        return replace(
            after,
            objective=scaled(after.objective),
            bound=scaled(after.bound),
            stickiness=after.stickiness if isinstance(after.stickiness, str) else scaled(after.stickiness),
            max_load=None if after.max_load is None else scaled(after.max_load),
            prices={name: scaled(price) for name, price in after.prices.items()},
            payoff=worth and replace(
                worth, today=scaled(worth.today), planned=scaled(worth.planned), move_cost=scaled(worth.move_cost)
            ),
            proof=None,
        )  # fmt: skip

    @property
    def today(self) -> Plan | None:
        """Today's assignment; None if no partition has an owner."""
        problem = self.before.plan.problem
        return current_plan(problem) if (problem.owner != NOBODY).any() else None

    @property
    def costs_today(self) -> dict[str, int]:
        """Each known cost of today's assignment; empty if no owner is known."""
        today = self.today
        return {} if today is None else costs_of(today.problem, today.member_of)

    @property
    def drain_seconds(self) -> dict[str, Fraction | None] | None:
        """Seconds until all lag is read: `today` (if owners are known), `before` and `after`; None for never.

        The whole is None if the members' capacity or the rates of rehashed partitions are unknown.
        """
        change, rates = self.change, self.pace.rates or {}
        rehashed = {topic for topic, _ in rates} & set(
            change.partitions if change.new_partitions == NewPartitions.REHASHED else ()
        )
        if self.pace.capacity is None or rehashed:
            return None
        sides = {"today": self.today, "before": self.before.plan, "after": self.after.plan}
        return {side: self.pace.seconds(plan) for side, plan in sides.items() if plan is not None}

    @property
    def verdict(self) -> str:
        """One sentence: the largest load, and the time to read all lag, before and after the change."""
        before, after, today = self.before.plan, self.after.plan, self.today
        load, now = before.makespan, self.in_unit(after.makespan)
        weighted = not (before.problem.equal_weights and after.problem.equal_weights)
        text = f"{_changed(before.problem, after.problem)}, the busiest member has {messages(now)}"
        text += f"{' for its weight' if weighted else ''} under evenlag's plan"
        if not before.problem.active.any():
            text += " (before, no member reads)"
        else:
            text += ", as before" if number(load) == number(now) else f" instead of {number(load)}"
        text += "" if today is None else f" (today {number(today.makespan)})"
        times = self.drain_seconds
        return f"{text}." if times is None else f"{text}, and {_drained(times['before'], times['after'])}."

    def to_pandas(self) -> pd.DataFrame:
        """Return the figures as a pandas DataFrame with a row for `today` (if owners are known), `before` and `after`.

        Columns: group; side; status; balance; partitions; members (active ones); count_min, count_max (partitions);
        spread, makespan (messages per weight, by current lags); moves, forced_moves, unassigned (partitions);
        moved_size (units of `move_sizes`); crossings (traffic, or partitions if none is given); objective, bound
        (messages); gap (share of the mean load); binding (the rules, joined by `;`). Figures of a search are null for
        `today`, and costs are null if unknown. Messages per weight, and what is compared with them, are in the unit of
        the group before the change. The plans themselves: `before.to_pandas()` and `after.to_pandas()`.

        Raises
        ------
        ModuleNotFoundError
            pandas is not installed.
        """
        return self._table().to_pandas()

    def to_arrow(self) -> pa.Table:
        """Return the figures as a pyarrow Table with the columns of `to_pandas`."""
        return self._table().to_arrow()

    def _table(self) -> FigureTable:
        today = self.today
        rows = [] if today is None else [_side("today", today, self.costs_today | {MOVED_SIZE: None})]
        for side, result in (("before", self.before), ("after", self.compared)):
            searched = ("status", "balance", "moves", "forced_moves", "objective", "bound", "gap", "binding")
            figures = {name: getattr(result, name) for name in searched}
            rows.append(_side(side, result.plan, result.costs) | figures)
        rows[-1] |= {name: self.in_unit(rows[-1][name]) for name in ("spread", "makespan")}
        return FigureTable(WHATIF_FIGURES, rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `evenlag whatif --json` prints (docs/formats.md)."""
        today, times = self.today, self.drain_seconds
        costs = {"costs": self.costs_today} if self.costs_today else {}
        document: dict[str, Any] = {
            "group": self.before.plan.problem.group,
            "verdict": self.verdict,
            "today": None if today is None else _figures(today) | costs,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "drain_seconds": None if times is None else {side: plain(time) for side, time in times.items()},
            "notes": list(self.notes),
        }
        if self.unit == 1:
            return document
        return document | {"after": self._compared_document(), "after_in_own_unit": document["after"]}

    def _compared_document(self) -> dict[str, Any]:
        """Return the document of `compared`, with all its loads per weight in the unit of `before`."""
        document = replace(self.compared, proof=self.after.proof).to_dict()
        document |= {"certificate": None, "verdict": self.compared.objection or outcome_of(self.after, self.unit)}
        document |= {name: plain(self.in_unit(getattr(self.after, name))) for name in ("spread", "makespan")}
        if spreads := self.after.scenario_spreads:
            document["scenario_spreads"] = [plain(self.in_unit(spread)) for spread in spreads]
        return document


def whatif(
    problem: Problem,
    change: Change,
    *,
    record: Sequence[Snapshot] = (),
    capacity: float | Fraction | None = None,
    time_limit: float = 10.0,
    threads: int | None = None,
    **solving: Unpack[SolveKeywords],
) -> WhatIf:
    """Solve a group as it is today and as it would be after a change.

    `after` is the result of `evenlag.solve` for `changed(problem, change)`, with the plan before the change as
    `start`. It is therefore never worse than that plan, if that plan is still valid. Moves are counted from today's
    owners. Prices and `max_load` in messages hold for the mean weight before the change, on both sides.

    Parameters
    ----------
    problem : Problem
    change : Change
    record : sequence of Snapshot, optional
        The group's snapshots in order of time, from which rates and a capacity follow.
    capacity : number, optional
        Messages per second that a member of weight 1 reads; default: estimated from the record.
    time_limit : float
        Seconds for the whole call. Today's group gets half of them, the changed group the rest.
    threads
        As in `solve`.
    **solving
        Parameters of `solve`, for both. `balance` applies before the change, and after it unless the change sets one.

    Raises
    ------
    InvalidProblemError
        A parameter has an invalid value, or the change does not apply to the group (see `changed`).
    InfeasibleError, InvalidPlanError
        As in `solve`; the message says "before the change" or "after the change".
    """
    options = solving_options("whatif", solving, whatif, own_costs=True, time_limit=time_limit, threads=threads)
    if options.only_if_better is not None:
        raise InvalidProblemError("only_if_better applies to one plan, but whatif compares two: leave it out")
    clock, pace = Clock(time_limit), pace_of(record, capacity)
    after_problem, notes = carried_out(problem, change)
    with _named("before the change"):
        before = with_payoff(
            search(problem, _within(options, clock.left() / (1 if options.deterministic else 2))), options
        )
    rule = options.balance if change.balance is None else change.balance
    with _named("after the change"):
        within = replace(_priced(_within(options, clock.left()), _unit(problem, after_problem)), balance=rule)
        after = with_payoff(search(after_problem, within, start=_carried_over(before.plan, after_problem)), options)
    return WhatIf(change, before, after, notes, pace)


def _changed(before: Problem, after: Problem) -> str:
    """Describe the changed numbers of members and partitions."""
    counts = {"member": (len(before.members), len(after.members)), "partition": (len(before.lags), len(after.lags))}
    parts = [f"{quantity(now, noun)} instead of {then:,}" for noun, (then, now) in counts.items() if now != then]
    return f"With {' and '.join(parts)}" if parts else "With this change"


def _drained(before: Fraction | None, after: Fraction | None) -> str:
    """Return the words on the times to read all lag; None is never."""
    then, now = (
        "some lag is never read" if time is None else f"all lag is read in {duration(time)}" for time in (before, after)
    )
    if then == now:
        return f"{now}, as before"
    return f"{now} (before, {then})" if before is None or after is None else f"{now} instead of {duration(before)}"


def _carried_over(plan: Plan, problem: Problem) -> Plan | None:
    """Return the plan for a changed group with the same partitions. Partitions of members that left have no owner."""
    if len(problem.lags) != len(plan.problem.lags):
        return None
    place = {name: m for m, name in enumerate(problem.members)}
    places = np.array([*(place.get(name, NOBODY) for name in plan.problem.members), NOBODY], dtype=np.int32)
    return Plan(problem, places[plan.member_of])  # NOBODY is -1, the last place


def _unit(before: Problem, after: Problem) -> Fraction:
    return before.mean_weight / after.mean_weight


def _priced(options: SolveOptions, unit: Fraction) -> SolveOptions:
    """Return the options with their messages in the unit of the changed group; shares do not change."""

    def own(price: Any) -> Any:
        of, percent = amount(price)
        return price if of is None or percent else of / unit

    if unit == 1:
        return options
    return replace(
        options,
        stickiness=own(options.stickiness),
        rack_price=own(options.rack_price),
        max_load=None if options.max_load is None else own(in_messages(options.max_load)),
        prices=options.prices and {name: own(price) for name, price in options.prices.items()},
    )


def _within(options: SolveOptions, seconds: float) -> SolveOptions:
    """Return the options for one of the two solves; a work limit is halved, and the clock is then only a safety net."""
    return options.within(max(seconds, LEAST_SECONDS), options.time_limit / 2 if options.deterministic else None)


@contextmanager
def _named(when: str) -> Iterator[None]:
    """Prefix an error of the solver with the group that it concerns."""
    try:
        yield
    except EvenlagError as error:
        raise type(error)(f"{when}: {error}") from error


def _side(side: str, plan: Plan, costs: Mapping[str, int | None]) -> dict[str, Any]:
    """Return the figures of `WHATIF_FIGURES` that follow from a plan."""
    counts = plan.counts[plan.problem.active].tolist()
    return {
        "group": plan.problem.group,
        "side": side,
        "partitions": len(plan.problem.lags),
        "members": len(counts),
        "count_min": min(counts, default=None),
        "count_max": max(counts, default=None),
        "spread": plan.spread,
        "makespan": plan.makespan,
        "unassigned": int((plan.member_of == NOBODY).sum()),
        **{name: costs.get(name) for name in (MOVED_SIZE, CROSSINGS)},
    }


def _figures(plan: Plan) -> dict[str, Any]:
    members = plan.problem.members
    return {
        "spread": plain(plan.spread),
        "makespan": plain(plan.makespan),
        "counts": dict(zip(members, plan.counts.tolist(), strict=True)),
        "loads": {name: int(load) for name, load in zip(members, plan.loads, strict=True)},
        "without_owner": int((plan.member_of == NOBODY).sum()),
    }
