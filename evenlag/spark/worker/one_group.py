"""What an executor does with one group: plan and audit it, without Spark. A failure is a result, not an exception."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenlag.compare.strategies import OPTIMAL, Audit, AuditRow, audit_with
from evenlag.errors import InfeasibleError, NoPlanFoundError
from evenlag.heuristics import HEURISTICS
from evenlag.model.balance import Balance
from evenlag.model.names import Name
from evenlag.model.objective import MOVES
from evenlag.model.payoff import Rates
from evenlag.model.problem import NOBODY
from evenlag.model.result import Result, Status
from evenlag.search.cache import Caches, SolveCache
from evenlag.search.leave import weighed
from evenlag.search.options import AUTO, NET, SolveOptions
from evenlag.search.portfolio import (
    FIRST,
    FIRST_TERMS,
    LEAST,
    LEAST_TERMS,
    QUICK,
    QUICK_TERMS,
    WITHOUT_MOVES,
    Haste,
)
from evenlag.search.solver import Steps, search
from evenlag.tables.fleet_data import NO_FLEET_DATA, FleetData
from evenlag.tables.group import GroupRows
from evenlag.tables.outputs import AUDIT_FIELDS, with_doubles
from evenlag.tables.past import Past

LATE = "the time limit of the whole call was reached: done with the least effort"
CLOCK = "the wall clock stopped the search before its work limit: another run may differ"

MEANS = "spreads and makespans of the audit are means over what horizon auto expects"

# By whether the owner changes, there was none, and there is none now.
MOVE_WORDS = np.array(["kept", "moved", "forced", "forced", *["unassigned"] * 4], dtype=object)

COARSE = 0.01  # of the mean load: the gap at which a quick turn ends


class Want(Name):
    """What is wanted of every group."""

    PLAN = "plan"
    AUDIT = "audit"
    BOTH = "both"


class Effort(Name):
    """How much a turn is for."""

    LEAST = "least"  # a plan no worse than today's and the published lag-aware assignor's, and a bound
    FIRST = "first"  # and than a fresh one
    QUICK = "quick"  # a plan within `COARSE` of its bound, which need not be evened out by the tie rule
    FULL = "full"


_HASTE = {
    Effort.LEAST: Haste(LEAST, LEAST_TERMS),
    Effort.FIRST: Haste(FIRST, FIRST_TERMS),
    Effort.QUICK: Haste(QUICK, QUICK_TERMS),
}


@dataclass(frozen=True)
class PlanColumns:
    """A group's plan as columns, a value for each of its rows; see `outputs.PLANS`."""

    topic: Sequence[str]
    partition: Sequence[int]
    lag: Sequence[int]
    previous_consumer_id: Sequence[str | None]
    consumer_id: Sequence[str | None]
    move: Sequence[str | None]


@dataclass(frozen=True, eq=False)
class GroupResult:
    """What became of a group; its columns are those of `outputs.GROUPS`.

    Attributes
    ----------
    rows : GroupRows
    want : Want
    balance : str
        That of the plan.
    seconds : float
        Over all turns that it had.
    late : bool
        The time of the whole call was up when its turn came.
    stuck : bool
        A later turn failed, and what there was before stands.
    seeking : bool
        No plan within the limits was found yet; more time may find one.
    result : Result or None
        What the plan is made of.
    audited : Audit or None
    error : str or None
        Why the plan or the audit is not there.
    notes : tuple of str
        What else its owner should know.
    rates : mapping of (topic, partition) to messages per second, or None
        What comes in, where a record tells it and it is asked for.
    cache : SolveCache or None
        What another turn need not work out again; None where there is no problem to solve.
    """

    rows: GroupRows
    want: Want
    balance: str
    seconds: float = 0.0
    late: bool = False
    stuck: bool = False
    seeking: bool = False
    result: Result | None = None
    audited: Audit | None = None
    error: str | None = None
    notes: tuple[str, ...] = ()
    rates: Rates | None = None
    cache: SolveCache | None = None

    @property
    def answers(self) -> list[Result]:
        """The plan's result and the audit's optima, as far as they are there."""
        optima = [] if self.audited is None else list(self.audited.optima.values())
        return optima if self.result is None else [self.result, *optima]

    @property
    def main(self) -> Result | None:
        """The plan's result; of an audit alone the optimum under the balance asked for."""
        if self.want != Want.AUDIT:
            return self.result
        return None if self.audited is None else self.audited.optima.get(self.balance)

    @property
    def status(self) -> Status:
        """How good the plan is known to be."""
        return Status.ERROR if self.main is None else self.main.status

    @property
    def may_gain(self) -> bool:
        """Return True if another turn may improve it: it was searched for, and only time was lacking."""
        if self.seeking:
            return True
        searched = any(answer.status in (Status.OPTIMAL, Status.FEASIBLE) for answer in self.answers)
        return searched and self.error is None and not self.stuck

    def unproven(self, gap: float) -> float:
        """Return what more time may save at most, in messages, of what is farther than `gap` from its bound.

        A group without a plan comes first. A unit by which a criterion may be less counts as a message.
        """
        if self.seeking:
            return math.inf
        open_ = [answer for answer in self.answers if answer.status == Status.FEASIBLE and (answer.gap or 0.0) > gap]
        return sum(float(answer.objective - answer.bound) for answer in open_) + self._open_units

    @property
    def _open_units(self) -> int:
        """Units by which the criteria that come first may be less, as far as is proven."""
        if self.result is None:
            return 0
        costs = {MOVES: self.result.moves, **self.result.costs}
        return sum(max(costs[name] - bound, 0) for name, bound in self.result.cost_bounds.items())

    def failed(self, failure: Exception | str) -> GroupResult:
        """Say what went wrong; where there is all that was wanted from an earlier turn, that stands."""
        error = failure if isinstance(failure, str) else _named(failure)
        if not self.complete:
            return replace(self, error=error, seeking=isinstance(failure, NoPlanFoundError))
        return replace(
            self, stuck=True, notes=(*self.notes, f"a later turn failed, and an earlier plan stands: {error}")
        )

    @property
    def complete(self) -> bool:
        """Whether there is all that was wanted."""
        planned = self.want == Want.AUDIT or self.result is not None
        return planned and (self.want == Want.PLAN or self.audited is not None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was done to the input, what failed, what was cut short; each once."""
        said = [*self.rows.notes, *([LATE] if self.late else []), *self.notes]
        return tuple(dict.fromkeys([*said, *(warning for answer in self.answers for warning in answer.warnings)]))

    @property
    def plan(self) -> PlanColumns:
        """The rows of the plan; without one nobody gets anything and `move` is null. An audit has no rows."""
        if self.want == Want.AUDIT:
            return PlanColumns((), (), (), (), (), ())
        rows, size = self.rows, len(self.rows.lags)
        consumers: Sequence[str | None] = [None] * size
        moves: Sequence[str | None] = [None] * size
        if self.result is not None:
            plan = self.result.plan
            to, owner = plan.member_of, plan.problem.owner
            names = np.array([*plan.problem.members, None], dtype=object)  # NOBODY, -1, is the last
            consumers = names[to].tolist()
            kind = np.where(to == owner, 0, 1) + 2 * (owner == NOBODY) + 4 * (to == NOBODY)
            moves = MOVE_WORDS[kind].tolist()
        return PlanColumns(
            topic=np.array(rows.topics, dtype=object)[rows.topic_of].tolist(),
            partition=rows.partition_ids.tolist(),
            lag=rows.lags.tolist(),
            previous_consumer_id=rows.owners,
            consumer_id=consumers,
            move=moves,
        )

    @property
    def audit(self) -> list[dict[str, Any]]:
        """The rows of the audit; one with the error where it failed."""
        if self.want == Want.PLAN:
            return []
        rows = [AuditRow(OPTIMAL, Balance(self.balance), Status.ERROR, error=self.error, seconds=self.seconds)]
        if self.audited is not None:
            errors = self.audited.errors
            rows = [
                replace(row, error=_named(errors[row.balance])) if row.strategy == OPTIMAL and row.error else row
                for row in self.audited.rows
            ]
        return [
            {
                **with_doubles(vars(row), AUDIT_FIELDS),
                "binding": ";".join(row.binding) or None,
                "rejected_rows": self.rows.rejected_rows,
            }
            for row in rows
        ]


def _named(failure: Exception) -> str:
    """Return an error as tables of a fleet have it: its class and its message."""
    return f"{type(failure).__name__}: {failure}"


def solve_group(
    rows: GroupRows,
    options: SolveOptions,
    want: Want,
    *,
    time_limit: float,
    late: bool = False,
    effort: Effort = Effort.FULL,
    earlier: GroupResult | None = None,
    past: Past | None = None,
    foresee: bool = False,
    caches: Caches | None = None,
    data: FleetData = NO_FLEET_DATA,
) -> GroupResult:
    """Plan a group, audit it, or both; what goes wrong becomes a row with status ERROR.

    Parameters
    ----------
    rows : GroupRows
    options : SolveOptions
    want : Want
        Without a plan `status` is that of the audit's optimum under the balance asked for.
    time_limit : float
        Seconds, for both together: an audit gets what the plan leaves, and at least half. With `deterministic` half
        the work each, and the clock cuts neither before `NET` times the limit.
    late : bool
        The time for the whole call is used up: said in the warnings.
    effort : Effort
    earlier : GroupResult, optional
        What came of the group's turn before: it is gone on from, and what comes of it is no worse.
    past : Past, optional
        What is recorded of the group: rates, where moves are weighed.
    foresee : bool
        Plan for what the record lets expect (horizon `auto`), but where it is too late for that.
    caches : Caches, optional
        Of the groups of a task.
    data : FleetData
        Sizes, traffic and units in addition to what the rows say, and the time to drain in.
    """
    started = time.monotonic()
    done = replace(earlier or GroupResult(rows, want, options.balance, late=late), error=None, seeking=False)
    part = time_limit / 2 if want == Want.BOTH else time_limit
    wall = NET * time_limit if options.deterministic else part
    try:
        cache = done.cache
        if cache is None:
            problem, assumed = rows.problem(), list[str]()
            if past is not None and foresee and not late:
                problem, assumed = past.foreseen(problem, rows.snapshot_ts)
                assumed += [MEANS] if want != Want.PLAN and problem.scenario_weights else []
            problem, of_data = data.added(problem)
            cache = SolveCache(problem) if caches is None else caches.of(problem)
            weighing = past if options.only_if_better is not None else None
            rates = None if weighing is None else weighing.rates(rows.snapshot_ts)
            done = replace(done, notes=(*problem.warnings, *assumed, *of_data), rates=rates, cache=cache)
        problem = cache.problem
        if data.draining is not None:
            ceiling, of_ceiling = data.draining.ceiling(problem, past, rows.snapshot_ts)
            options = replace(options, max_load=ceiling)
            done = replace(done, notes=tuple(dict.fromkeys([*done.notes, *of_ceiling])))
        if want != Want.AUDIT:
            try:
                done = replace(done, result=_plan(done, options.within(wall, part), effort))
            except InfeasibleError as failure:  # under another balance there may be one
                done = done.failed(failure)
        if want != Want.PLAN:
            left = wall if options.deterministic else max(time_limit - (time.monotonic() - started), part)
            known = None if done.audited is None else done.audited.optima
            limited = _within_coarse(options.within(left, part), effort)
            audited = audit_with(problem, limited, known=known, cache=cache)
            done = replace(done, audited=audited)
            if want == Want.AUDIT and done.balance in audited.errors:
                done = replace(done, error=_named(audited.errors[done.balance]))
    except Exception as failure:  # whatever one group does must not cost the others their plans
        done = done.failed(failure)
    cut = options.deterministic and any(answer.stopped_by == "time" for answer in done.answers)
    seconds = (earlier.seconds if earlier else 0.0) + time.monotonic() - started
    return replace(done, notes=(*done.notes, *([CLOCK] if cut else [])), seconds=seconds)


def _plan(done: GroupResult, options: SolveOptions, effort: Effort) -> Result:
    """Search for a plan, going on from what is there."""
    cache = done.cache
    assert cache is not None
    steps: Steps | None = WITHOUT_MOVES if options.method in HEURISTICS else None  # its plan is what is wanted
    if options.method == AUTO and effort != Effort.FULL and not cache.problem.scenario_weights:
        steps = _HASTE[effort]
    return search(
        cache.problem, _within_coarse(options, effort), known=done.result, cache=cache, steps=steps,
        tie_break=effort == Effort.FULL, explain=False,
    )  # fmt: skip


def _within_coarse(options: SolveOptions, effort: Effort) -> SolveOptions:
    """Return the options, with a gap that will do for now but where the effort is full."""
    return options if effort == Effort.FULL else options.within(options.time_limit, options.work, COARSE)


def decided(done: GroupResult, options: SolveOptions) -> GroupResult:
    """Leave the group alone if its plan, after its last turn, does not save what `only_if_better` asks for."""
    if done.result is None or options.only_if_better is None:
        return done
    try:
        return replace(done, result=weighed(done.result, options, done.rates))
    except Exception as failure:  # as above
        return done.failed(failure)
