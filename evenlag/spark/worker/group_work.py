"""Planning and auditing of one group on an executor (no Spark import); a failure is a result, not an exception."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.compare.case import Case
from evenlag.compare.catch_up import Pace
from evenlag.compare.diagnosis import Summary, diagnosis_of
from evenlag.compare.strategies import OPTIMAL, Audit, AuditRow, audit_with
from evenlag.errors import EvenlagError, InfeasibleError, NoPlanFoundError
from evenlag.heuristics import HEURISTICS
from evenlag.model.balance import Balance
from evenlag.model.names import Name
from evenlag.model.payoff import Rates
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Problem
from evenlag.model.result import Result, Status
from evenlag.search.cache import Caches, SolveCache
from evenlag.search.clock import LEAST_SECONDS, Clock
from evenlag.search.entry import with_payoff
from evenlag.search.options import AUTO, NET, SolveOptions
from evenlag.search.portfolio import FIRST, FIRST_TERMS, LEAST, LEAST_TERMS, WITHOUT_MOVES, Haste
from evenlag.search.solver import Steps, search
from evenlag.spark.worker.packed_plans import MOVE_WORDS
from evenlag.tables.fleet_data import NO_FLEET_DATA, FleetData
from evenlag.tables.group import GroupRows
from evenlag.tables.outputs import audit_fields
from evenlag.tables.past import Past

LATE = "the call's time limit was reached: solved with the least effort"
CLOCK = "the time limit stopped the search before its work limit: another run may differ"

MEANS = "spreads and makespans of the audit are means over the scenarios of horizon auto"

COARSE = 0.01  # gap at which a quick turn ends, as a share of the mean load


class Want(Name):
    """The requested result for every group."""

    PLAN = "plan"
    AUDIT = "audit"
    BOTH = "both"


class Effort(Name):
    """The effort of a turn."""

    LEAST = "least"  # a plan no worse than the current one and the published lag-aware assignor's, and a bound
    FIRST = "first"  # in addition, no worse than a plan made from scratch
    QUICK = "quick"  # a plan within `COARSE` of its bound, not necessarily evened out by the tie rule
    FULL = "full"


Start = Callable[[Problem], Plan]
"""A function that returns a plan of a problem."""

_HASTE = {Effort.LEAST: Haste(LEAST, LEAST_TERMS), Effort.FIRST: Haste(FIRST, FIRST_TERMS)}


@dataclass(frozen=True, eq=False)
class GroupResult:
    """The result of a group, for the columns of `outputs.GROUPS`.

    Attributes
    ----------
    balance : str
        Balance of the plan.
    seconds : float
        Total time of all turns.
    late : bool
        True if the call's time limit had passed before its turn.
    stuck : bool
        True if a later turn failed, so that the earlier result is kept.
    looked_at : bool
        True after its first turn that was longer than that of a first plan.
    seeking : bool
        True if no plan within the limits was found yet, but more time may find one.
    result : Result or None
        Result of the plan.
    diagnosis : Summary or None
        Cause of the group's state, and what to change; only with an audit.
    error : str or None
        Reason why the plan or the audit is missing.
    notes : tuple of str
        Further notes.
    rates : mapping of (topic, partition) to messages per second, or None
        Produce rates, if the snapshots show them and `only_if_better` is set.
    cache : SolveCache or None
        Data reused by later turns; None without a valid problem.
    """

    rows: GroupRows
    want: Want
    balance: str
    seconds: float = 0.0
    late: bool = False
    stuck: bool = False
    looked_at: bool = False
    seeking: bool = False
    result: Result | None = None
    audited: Audit | None = None
    diagnosis: Summary | None = None
    error: str | None = None
    notes: tuple[str, ...] = ()
    rates: Rates | None = None
    cache: SolveCache | None = None

    @property
    def answers(self) -> list[Result]:
        """The existing results of the plan and of the audit's optima."""
        optima = [] if self.audited is None else list(self.audited.optima.values())
        return optima if self.result is None else [self.result, *optima]

    @property
    def main(self) -> Result | None:
        """The plan's result, or for an audit alone the optimum under the requested balance."""
        if self.want != Want.AUDIT:
            return self.result
        return None if self.audited is None else self.audited.optima.get(self.balance)

    @property
    def status(self) -> Status:
        """The status of the main result."""
        return Status.ERROR if self.main is None else self.main.status

    @property
    def may_gain(self) -> bool:
        """True if another turn may improve the result, because the search ran out of time."""
        if self.seeking:
            return True
        searched = any(answer.status in (Status.OPTIMAL, Status.FEASIBLE) for answer in self.answers)
        return searched and self.error is None and not self.stuck

    def unproven(self, gap: float) -> float:
        """Return the upper limit of what more time may save, in messages, in results farther than `gap` from the bound.

        It is infinite for a group without a plan. A unit of a criterion that comes first counts as a message.
        """
        if self.seeking:
            return math.inf
        open_ = [answer for answer in self.answers if answer.status == Status.FEASIBLE and (answer.gap or 0.0) > gap]
        return sum(float(answer.objective - answer.bound) for answer in open_) + self._open_units

    @property
    def _open_units(self) -> int:
        """The sum of the unproven units of the criteria that come first."""
        if self.result is None:
            return 0
        units = self.result.units_of
        return sum(max(units(name) - bound, 0) for name, bound in self.result.cost_bounds.items())

    def failed(self, failure: Exception | str) -> GroupResult:
        """Return the result after a failed turn: an earlier complete result with a note, or else an error."""
        error = failure if isinstance(failure, str) else _named(failure)
        if not self.complete:
            return replace(self, error=error, seeking=isinstance(failure, NoPlanFoundError))
        return replace(
            self, stuck=True, notes=(*self.notes, f"a later turn failed, so the earlier plan is kept: {error}")
        )

    @property
    def complete(self) -> bool:
        """True if all requested results exist."""
        planned = self.want == Want.AUDIT or self.result is not None
        return planned and (self.want == Want.PLAN or self.audited is not None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The notes on the input, on failures and on limits reached, each once."""
        own = [*self.rows.notes, *([LATE] if self.late else []), *self.notes]
        return tuple(dict.fromkeys([*own, *(warning for answer in self.answers for warning in answer.warnings)]))

    @property
    def consumers(self) -> Sequence[str | None]:
        """The member of each partition in the plan; None for all without a plan."""
        if self.result is None:
            return [None] * len(self.rows.lags)
        names = np.array([*self.result.plan.problem.members, None], dtype=object)  # index -1, NOBODY, is the last entry
        return list(names[self.result.plan.member_of])

    @property
    def moves(self) -> NDArray[np.int64]:
        """The index in `MOVE_WORDS` for each partition; −1 for all without a plan."""
        if self.result is None:
            return np.full(len(self.rows.lags), -1)
        to, owner = self.result.plan.member_of, self.result.plan.problem.owner
        moved = np.where(owner == NOBODY, MOVE_WORDS.index("forced"), to != owner)
        return np.where(to == NOBODY, MOVE_WORDS.index("unassigned"), moved)

    @property
    def audit(self) -> list[dict[str, Any]]:
        """The rows of the audit, or one row with the error if it failed."""
        if self.want == Want.PLAN:
            return []
        rows = [AuditRow(OPTIMAL, Balance(self.balance), Status.ERROR, error=self.error, seconds=self.seconds)]
        if self.audited is not None:
            errors = self.audited.errors
            rows = [
                replace(row, error=_named(errors[row.balance])) if row.strategy == OPTIMAL and row.error else row
                for row in self.audited.rows
            ]
        return [audit_fields(row, self.rows.rejected_rows) for row in rows]


def _named(failure: Exception) -> str:
    """Return the class and message of an error, as in the tables of a fleet."""
    return f"{type(failure).__name__}: {failure}"


@dataclass(frozen=True, eq=False)
class Turn:
    """A turn of a group.

    Attributes
    ----------
    time_limit : float
        Seconds for plan and audit together; the audit gets the time left by the plan, but at least half. With
        `deterministic`, each gets half the work, and the clock stops neither before `NET` times the limit.
    late : bool
        True if the call's time limit has passed, which a warning states.
    earlier : GroupResult, optional
        Result of the group's previous turn. This turn starts from it, and its result is at least as good.
    start : callable, optional
        Returns a plan for the group's problem, from which the first turn starts.
    """

    rows: GroupRows
    time_limit: float
    effort: Effort = Effort.FULL
    late: bool = False
    earlier: GroupResult | None = None
    start: Start | None = None

    def begun(self, want: Want, balance: str) -> GroupResult:
        """Return the earlier result, or one without any plan."""
        return self.earlier or GroupResult(self.rows, want, balance, late=self.late)


def solve_group(
    turn: Turn,
    options: SolveOptions,
    want: Want,
    *,
    past: Past | None = None,
    foresee: bool = False,
    caches: Caches | None = None,
    data: FleetData = NO_FLEET_DATA,
) -> GroupResult:
    """Plan a group, audit it, or both; an error becomes a result with status ERROR.

    Parameters
    ----------
    want : Want
        For an audit alone, `status` is that of the optimum under the requested balance.
    past : Past, optional
        Earlier snapshots of the group, for forecasts and for rates with `only_if_better`.
    foresee : bool
        Plan for the forecast from `past` (horizon `auto`), unless the turn is late.
    caches : Caches, optional
        Caches shared by the groups of a task.
    data : FleetData
        Sizes, traffic and units in addition to those in the rows, and the drain time.
    """
    started = time.monotonic()
    rows, time_limit, effort, start = turn.rows, turn.time_limit, turn.effort, turn.start
    done = replace(turn.begun(want, options.balance), error=None, seeking=False)
    part = time_limit / 2 if want == Want.BOTH else time_limit
    wall = NET * time_limit if options.deterministic else part
    try:
        cache = done.cache
        if cache is None:
            problem, assumed = rows.problem(), list[str]()
            if past is not None and foresee and not turn.late:
                problem, assumed = past.foreseen(problem, rows.snapshot_ts)
                assumed += [MEANS] if want != Want.PLAN and problem.scenario_weights else []
            problem, of_data = data.added(problem)
            cache = SolveCache(problem) if caches is None else caches.of(problem)
            weighing = past if options.only_if_better is not None else None
            rates = None if weighing is None else weighing.rates(rows.snapshot_ts)
            done = replace(done, notes=(*problem.warnings, *assumed, *of_data), rates=rates, cache=cache)
        problem = cache.problem
        if data.draining is not None:
            ceiling, of_ceiling = data.draining.ceiling(
                problem, past, rows.snapshot_ts, data.past.capacity_of(problem.group)
            )
            options = replace(options, max_load=ceiling)
            done = replace(done, notes=tuple(dict.fromkeys([*done.notes, *of_ceiling])))
        if want != Want.AUDIT:
            try:
                done = replace(done, result=_plan(done, options.within(wall, part), effort, start))
            except InfeasibleError as failure:  # the audit may find a plan under another balance
                done = done.failed(failure)
        if want != Want.PLAN:
            left = wall if options.deterministic else max(time_limit - (time.monotonic() - started), part)
            known = None if done.audited is None else done.audited.optima
            limited = _within_coarse(options.within(left, part), effort)
            begin = start and start(problem)
            if done.result is not None and done.result.status != Status.EMPTY:
                begin = done.result.plan
            audited = audit_with(problem, limited, known=known, cache=cache, start=begin)
            done = replace(done, audited=audited)
            if effort not in _HASTE:
                left = max(time_limit - (time.monotonic() - started), LEAST_SECONDS)
                done = _diagnosed(done, options.within(left, part), past)
            if want == Want.AUDIT and done.balance in audited.errors:
                done = replace(done, error=_named(audited.errors[done.balance]))
    except Exception as failure:  # an error of one group must not affect the others
        done = done.failed(failure)
    cut = options.deterministic and any(answer.stopped_by == "time" for answer in done.answers)
    seconds = (turn.earlier.seconds if turn.earlier else 0.0) + time.monotonic() - started
    return replace(done, notes=(*done.notes, *([CLOCK] if cut else [])), seconds=seconds)


def _diagnosed(done: GroupResult, options: SolveOptions, past: Past | None) -> GroupResult:
    """Add the diagnosis of an audited group; of a group with scenarios, at its current lags."""
    cache, audited, best = done.cache, done.audited, done.main
    if cache is None or audited is None or best is None:
        return done
    ts = done.rows.snapshot_ts
    pace = Pace(None, None) if past is None else past.pace(ts)
    unasked = replace(options, only_if_better=None)
    plain = not cache.problem.scenario_weights
    case = Case(
        cache.problem.now,
        () if past is None else tuple(past.until(ts)),
        pace,
        None,
        unasked,
        Clock(options.time_limit),
        known=with_payoff(best, unasked, pace.rates) if plain else None,
        free=audited.optima.get(Balance.NONE) if plain else None,
        cache=cache if plain else None,
    )
    try:
        return replace(done, diagnosis=diagnosis_of(case).summary)
    except EvenlagError as failure:
        return replace(done, notes=(*done.notes, f"no diagnosis: {_named(failure)}"))


def _plan(done: GroupResult, options: SolveOptions, effort: Effort, start: Start | None = None) -> Result:
    """Search for a plan, starting from the existing result or another start."""
    cache = done.cache
    assert cache is not None
    steps: Steps | None = (
        WITHOUT_MOVES if options.method in HEURISTICS else None
    )  # the heuristic's own plan is requested
    if options.method == AUTO and effort in _HASTE and not cache.problem.scenario_weights:
        steps = _HASTE[effort]
    return search(
        cache.problem, _within_coarse(options, effort), known=done.result, cache=cache, steps=steps,
        tie_break=effort == Effort.FULL, explain=False,
        start=None if start is None or done.result is not None else start(cache.problem),
    )  # fmt: skip


def _within_coarse(options: SolveOptions, effort: Effort) -> SolveOptions:
    """Return the options, with the gap `COARSE` unless the effort is full."""
    return options if effort == Effort.FULL else options.within(options.time_limit, options.work, COARSE)


def decided(done: GroupResult, options: SolveOptions) -> GroupResult:
    """Keep the current assignment if the plan, after the last turn, saves less than `only_if_better` requires."""
    if done.result is None or options.only_if_better is None:
        return done
    try:
        return replace(done, result=with_payoff(done.result, options, done.rates))
    except Exception as failure:  # as above
        return done.failed(failure)
