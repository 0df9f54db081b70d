"""One group: its plan, found within a share of the interval, and the figures that follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from evenlag.compare.case import Case
from evenlag.compare.catch_up import Pace, pace_of
from evenlag.compare.diagnosis import Summary, diagnosis_of
from evenlag.compare.drain import Course
from evenlag.compare.foresight import lags_ahead
from evenlag.compare.history import BACKLOG, GIVEN, Capacity, Snapshot
from evenlag.compare.members_needed import Size, SizeOptions, run, solving_of
from evenlag.compare.unlike_members import Weighing
from evenlag.errors import InvalidProblemError
from evenlag.model.defaults import PAUSE
from evenlag.model.payoff import Rates, parse_share
from evenlag.model.plan import Plan, current_plan
from evenlag.model.problem import NOBODY, Index, Problem
from evenlag.model.rates import SECOND
from evenlag.model.result import Result, Status
from evenlag.search.clock import LEAST_SECONDS, Clock
from evenlag.search.entry import solve
from evenlag.search.options import SolveOptions
from evenlag.tables.every_group import GroupNow
from evenlag.tables.measured import NOTHING_MEASURED, Measured
from evenlag.watch.group_figures import Figures

NOISE = Fraction(1, 1000)  # share of the mean load; a proven plan outlives smaller changes of the lags
RATE_NOISE = Fraction(1, 100)  # share of the capacity; the same for the rates used to find the fewest members
DIAGNOSIS_SHARE = 0.2  # further seconds for the diagnosis, as a share of a group's time
SIZE_SHARE = 0.5  # share of a group's time for the fewest members, if there is a deadline


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Parameters of the plans.

    Attributes
    ----------
    solving : mapping
        Keywords of `evenlag.solve`.
    only_if_better : str
        Share of today's spread that a plan must save to pay.
    capacity : Fraction or None
        Messages per second that a member of weight 1 reads; None to estimate it from the snapshots.
    drain_seconds : Fraction or None
        Deadline for the fewest members; None to leave them out.
    past : Measured
        Pauses and capacities of groups, for what is not given.
    pause : float or None
        Seconds for which a moved partition is not read, if given.
    weighing : Weighing or None
        Weights of members, if they are not those of the input.
    horizon : Fraction
        Seconds: plans are for the lags predicted for this far ahead, at today's rates.
    """

    solving: Mapping[str, Any] = field(default_factory=dict)
    only_if_better: str = "0%"
    capacity: Fraction | None = None
    drain_seconds: Fraction | None = None
    past: Measured = NOTHING_MEASURED
    pause: float | None = None
    weighing: Weighing | None = None
    horizon: Fraction = Fraction(0)

    def pause_of(self, group: str) -> float:
        """Return the seconds for which a moved partition of a group is not read."""
        return float(self.past.pause_of(group)[0]) if self.pause is None else self.pause

    def check(self) -> None:
        """Check the parameters before the first group.

        Raises
        ------
        InvalidProblemError
            A value is invalid; the message names the parameter.
        """
        parse_share(self.only_if_better)
        SolveOptions(**self.solving, pause=PAUSE if self.pause is None else self.pause)
        Capacity.of_user(self.capacity)


@dataclass(frozen=True, eq=False)
class Standing:
    """A group's figures, and the data that the next reading of it needs.

    Attributes
    ----------
    record : tuple of Snapshot
        The latest snapshot and the one before.
    planned : Problem
        The group as it was when it was planned, with the lags that it was planned for.
    member_of : int32 array (P,)
        The best plan found.
    capacity : Capacity or None
        Capacity of the members, as last known.
    sized : tuple of (capacity, rates, Size) or None
        The last sizing, and the rates in messages per second for which it was done.
    diagnosis : Summary or None
        Cause of the group's state, and what to change.
    """

    figures: Figures
    record: tuple[Snapshot, ...]
    planned: Problem
    member_of: Index
    capacity: Capacity | None
    sized: tuple[Fraction, list[Fraction], Size] | None = None
    diagnosis: Summary | None = None

    @property
    def problem(self) -> Problem:
        """The group at the latest snapshot, with the lags of that time."""
        return self.record[-1].problem

    def document(self) -> dict[str, Any]:
        """Return figures, facts and diagnosis for JSON."""
        diagnosis = None if self.diagnosis is None else self.diagnosis.to_dict()
        return self.figures.document() | {"facts": self.problem.facts.to_dict(), "diagnosis": diagnosis}


def standing_of(
    now: GroupNow, before: Standing | None, asked: Asked, seconds: float, stopped: int | None = None
) -> Standing:
    """Plan a group and return its figures.

    A proven plan is kept as long as the group is the same and its lags have changed by no more than `NOISE`.

    Parameters
    ----------
    before : Standing or None
        The group as it was at an earlier reading.
    seconds : float
        Time for the plan and the fewest members.
    stopped : int or None
        Members that have stopped and are left out of `now`; None if unknown.

    Raises
    ------
    EvenlagError
        The group cannot be planned.
    """
    problem, record = now.problem, _record(now, before)
    if asked.weighing:
        problem, weighed = asked.weighing.of(problem, record)
        record = tuple(weighed)
    pace, capacity = _pace(record, before, asked)
    rates = [] if capacity is None else pace.rates_in(problem)
    aim = _ahead(problem, pace, asked.horizon)
    kept = before if before is not None and _unchanged(before, aim) else None
    if kept is not None:
        figures, planned, member_of, diagnosis = kept.figures, kept.planned, kept.member_of, kept.diagnosis
    else:
        share = 1 - SIZE_SHARE if asked.drain_seconds is not None and capacity is not None else 1.0
        result = _solved(aim, before, asked, max(seconds * share, LEAST_SECONDS), pace.rates)
        figures, planned, member_of = _figures(result), aim, result.found.member_of
        known = Pace(pace.rates, capacity)
        options = SolveOptions(**asked.solving, time_limit=seconds)
        best = result if aim is problem else None
        case = Case(problem, record, known, asked.drain_seconds, options, Clock(seconds * DIAGNOSIS_SHARE), best)
        diagnosis = diagnosis_of(case).summary
    sized = today_seconds = best_seconds = None
    if capacity is not None and problem.members:  # without members nothing is read
        course = Course(problem, rates, capacity.rate, max(problem.weights))
        if figures.spread_messages is not None:
            today_seconds = course.of_plan(current_plan(problem))
        best_seconds = course.of_plan(Plan(problem, member_of.copy()))
        if asked.drain_seconds is not None:
            sized = _sized(problem, kept, asked, max(seconds * SIZE_SHARE, LEAST_SECONDS), capacity.rate, rates)
    size = None if sized is None else sized[2]
    figures = replace(
        figures,
        lag_messages=_lag(problem),
        stopped_members=stopped,
        capacity_messages_per_second=None if capacity is None else capacity.rate,
        drain_seconds=today_seconds,
        best_drain_seconds=best_seconds,
        fewest_members=None if size is None else size.fewest,
        fewest_members_proven=None if size is None else size.proven,
        members_wanted=None if size is None else size.fewest or size.binding_from or size.most,
    )
    return Standing(figures, record, planned, member_of, capacity, sized, diagnosis)


def _record(now: GroupNow, before: Standing | None) -> tuple[Snapshot, ...]:
    """Return the latest snapshot and the one before, which may come from an earlier reading."""
    if len(now.record) > 1 or before is None:
        return now.record
    earlier = [each for each in before.record if each.micros < now.record[-1].micros]
    return (*earlier[-1:], now.record[-1])


def _pace(record: tuple[Snapshot, ...], before: Standing | None, asked: Asked) -> tuple[Pace, Capacity | None]:
    """Return the rates, and the capacity: as given, else of members that had a backlog, now or when last seen."""
    if asked.capacity is not None:
        given = Capacity(asked.capacity, GIVEN)
        return replace(pace_of(record), capacity=given), given
    pace = pace_of(record, measured=asked.past.capacity_of(record[-1].problem.group))
    seen = pace.capacity if pace.capacity is not None and pace.capacity.source == BACKLOG else None
    return pace, seen or (None if before is None else before.capacity)


def _ahead(problem: Problem, pace: Pace, horizon: Fraction) -> Problem:
    """Return the group with the lags predicted for `horizon` seconds ahead; the group itself if no rate is known."""
    if not horizon or pace.rates is None:
        return problem
    return problem.at(lags_ahead(problem, pace.rates, int(horizon * SECOND)), problem.owner)


def _unchanged(before: Standing, problem: Problem) -> bool:
    """Return whether the plan is proven and still that of the group but for noise in the lags."""
    planned = before.planned
    if not (before.figures.plan_proven and problem.same_structure(planned)):
        return False
    if not np.array_equal(problem.owner, planned.owner):
        return False
    changed = int(np.abs(problem.lags - planned.lags).sum())
    return changed * len(problem.members) <= NOISE * planned.total_lag


def _solved(problem: Problem, before: Standing | None, asked: Asked, seconds: float, rates: Rates | None) -> Result:
    start = None
    if before is not None and problem.same_structure(before.planned):
        start = Plan(problem, before.member_of)
    return solve(
        problem, **asked.solving, only_if_better=asked.only_if_better, pause=asked.pause_of(problem.group), rates=rates,
        time_limit=seconds, start=start,
    )  # fmt: skip


def _figures(result: Result) -> Figures:
    """Return the figures of a solved group and its best plan found, whether or not that pays."""
    plan, problem = result.found, result.found.problem
    today = current_plan(problem)
    owned = bool((problem.owner != NOBODY).any()) or not problem.active.any()
    worth = result.payoff
    objective = result.objective if worth is None else worth.planned + worth.move_cost
    proven = result.status in (Status.OPTIMAL, Status.EMPTY) or objective == result.bound
    pays = worth is not None and worth.pays is True
    gained = max(today.spread - plan.spread, 0) if pays else 0
    read = bool(problem.members)  # without members nothing is read, so nothing is even or proven best
    return Figures(
        lag_messages=_lag(problem),
        partitions=len(problem.lags),
        members=len(problem.members),
        unowned_partitions=int(((problem.owner == NOBODY) & problem.assignable).sum()),
        spread_messages=today.spread if read and owned else None,
        best_spread_messages=plan.spread if read else None,
        objective_messages=objective if read else None,
        objective_bound_messages=result.bound if read else None,
        plan_proven=proven if read else None,
        plan_moves=plan.moves,
        rebalance_pays=pays if read and owned else None,
        recoverable_messages=gained if read and owned else None,
    )


def _lag(problem: Problem) -> int:
    """Return the total lag, including that of partitions without a subscriber."""
    return sum(problem.lags.tolist())


def _sized(
    problem: Problem, kept: Standing | None, asked: Asked, seconds: float, capacity: Fraction, rates: list[Fraction]
) -> tuple[Fraction, list[Fraction], Size] | None:
    """Return the sizing of the group; that of `kept`, whose plan still holds, if the rates changed only by noise."""
    if kept is not None and kept.sized is not None:
        old_capacity, old_rates, _ = kept.sized
        changed = sum((abs(rate - old) for rate, old in zip(rates, old_rates, strict=True)), Fraction(0))
        if old_capacity == capacity and changed <= RATE_NOISE * capacity:
            return kept.sized
    known = {name: asked.solving[name] for name in ("balance", "slack") if name in asked.solving}
    options = SizeOptions(drain_seconds=asked.drain_seconds or 0, solving=solving_of(time_limit=seconds, **known))
    try:
        return capacity, rates, run(problem, options, capacity, rates)
    except InvalidProblemError:  # the topics of new members are unknown
        return None
