"""Overview of one group for a report: plan, audit, frontier and size, within one time limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evenlag.compare.budgets import frontier
from evenlag.compare.case import Case
from evenlag.compare.catch_up import Pace, pace_of
from evenlag.compare.curve import Frontier
from evenlag.compare.diagnosis import Diagnosis, diagnosis_of
from evenlag.compare.drain import NEVER
from evenlag.compare.history import Capacity, Snapshot
from evenlag.compare.members_needed import Size, size
from evenlag.compare.strategies import Audit, audit
from evenlag.errors import InfeasibleError, InvalidProblemError
from evenlag.model.plan import Plan, current_plan
from evenlag.model.problem import NOBODY, Problem
from evenlag.model.result import Result, Status
from evenlag.search.clock import LEAST_SECONDS, Clock
from evenlag.search.entry import solve
from evenlag.search.options import SolveOptions

SHARES = {
    "plan": 0.4,
    "strategies": 0.4,
    "frontier": 0.5,
    "sizes": 0.7,
    "diagnosis": 1.0,
}  # shares of the time left, in this order
OF_WORK = {"plan": 0.4, "strategies": 0.25, "frontier": 0.2, "sizes": 0.1, "diagnosis": 0.05}  # shares of all work
TERMS = ("rack_price", "max_crossings", "first", "prices", "budgets", "max_load")  # audits too
RULE = ("balance", "slack")
REPEATING = ("seed", "deterministic", "threads")
STEPS = 24  # points of a forecast
LONGEST = Fraction(86_400)  # longest forecast, in seconds


@dataclass(frozen=True)
class Overview:
    """Results about one group.

    Attributes
    ----------
    frontier : Frontier or None
        Plans by number of moves; None if no partition has an owner.
    size : Size or None
        Members needed to read all lag in time; None if the members' rate of reading is unknown.
    pace : Pace
        Rates of messages in, and the rate at which members read.
    record : sequence of Snapshot
        The group's earlier snapshots and today's, in order of time; empty if there is one alone.
    notes : tuple of str
        Parts that are missing, each with its reason.
    """

    result: Result
    audit: Audit
    frontier: Frontier | None
    size: Size | None
    pace: Pace
    record: Sequence[Snapshot]
    notes: tuple[str, ...]
    diagnosis: Diagnosis

    @property
    def problem(self) -> Problem:
        """The group."""
        return self.result.plan.problem

    @property
    def today(self) -> Plan | None:
        """Today's assignment; None if no partition has an owner."""
        return current_plan(self.problem) if (self.problem.owner != NOBODY).any() else None


def overview(
    problem: Problem,
    *,
    record: Sequence[Snapshot] = (),
    capacity: float | None = None,
    measured: Capacity | None = None,
    drain_seconds: float | Fraction = 900,
    time_limit: float = 10.0,
    progress: Callable[[str, int, int], None] | None = None,
    **parameters: Any,
) -> Overview:
    """Compute everything that a report on one group shows.

    Parameters
    ----------
    record : sequence of Snapshot, optional
        The group's earlier snapshots and today's, in order of time.
    capacity : float, optional
        Messages per second read by a member of weight 1; default: estimated from the record.
    measured : Capacity, optional
        The capacity that the group's commits show, if it is not given.
    drain_seconds : number
        Seconds in which the group should read all lag; for the members that it needs.
    time_limit : float
        Seconds for everything together.
    progress : callable, optional
        Called with (part, parts done, parts in all).
    **parameters
        As in `solve`. The audit has the same terms, the frontier the same balance, and sizes and diagnosis the same
        balance and slack.

    Raises
    ------
    InvalidProblemError, InfeasibleError
        As `solve`.
    """
    clock = Clock(time_limit, bool(parameters.get("deterministic")))
    tell = progress or (lambda *_: None)
    pace = pace_of(record, capacity, measured)
    limits = _Limits(clock, time_limit, {name: parameters[name] for name in REPEATING if name in parameters}, tell)
    result = solve(problem, rates=pace.rates, **(parameters | limits.of("plan")))
    terms = {name: parameters[name] for name in TERMS if name in parameters}
    audited = audit(problem, **terms, **limits.of("strategies"))
    rule = {name: parameters[name] for name in RULE if name in parameters}
    notes: list[str] = []
    curve = _frontier(result, limits, {name: rule[name] for name in rule if name != "slack"}, notes)
    sized = _size(result, pace, Fraction(drain_seconds), limits, rule, notes)
    options = SolveOptions(**(rule | limits.of("diagnosis")))
    case = Case(problem.now, tuple(record), pace, Fraction(drain_seconds), options, Clock(options.time_limit), result)
    diagnosis = diagnosis_of(case)
    return Overview(result, audited, curve, sized, pace, record if len(record) > 1 else (), tuple(notes), diagnosis)


@dataclass(frozen=True)
class _Limits:
    """The limits of each part."""

    clock: Clock
    time_limit: float
    repeating: Mapping[str, Any]
    tell: Callable[[str, int, int], None]

    def of(self, part: str) -> dict[str, Any]:
        """Return a part's limits as parameters, and report its start."""
        self.tell(part, list(SHARES).index(part), len(SHARES))
        seconds = OF_WORK[part] * self.time_limit if self.clock.deterministic else SHARES[part] * self.clock.left()
        return {**self.repeating, "time_limit": max(seconds, LEAST_SECONDS)}


def _frontier(result: Result, limits: _Limits, balance: Mapping[str, Any], notes: list[str]) -> Frontier | None:
    problem = result.plan.problem
    if result.status == Status.EMPTY or not (problem.owner != NOBODY).any():
        notes.append("no partition has an owner, so there is no assignment to compare with")
        return None
    return frontier(problem, **balance, **limits.of("frontier"))


def _size(
    result: Result, pace: Pace, seconds: Fraction, limits: _Limits, rule: Mapping[str, Any], notes: list[str]
) -> Size | None:
    problem = result.plan.problem
    if pace.capacity is None:
        notes.append("the rate at which members read is unknown, so times to drain are left out")
        return None
    if result.status == Status.EMPTY:
        return None
    try:
        return size(problem, seconds, pace.capacity.rate, rates=pace.rates_in(problem), **rule, **limits.of("sizes"))
    except (InfeasibleError, InvalidProblemError) as error:  # the topics of new members may be unknown
        notes.append(f"no size is given: {error}")
        return None


def times_ahead(plans: Sequence[Plan], pace: Pace) -> list[Fraction]:
    """Return the times, in seconds, at which a forecast shows these plans: until the slowest member has caught up."""
    longest = max((time for plan in plans for time in pace.member_seconds(plan) or [NEVER]), default=NEVER)
    end = longest if isinstance(longest, Fraction) and longest < LONGEST else LONGEST
    return [end * step / STEPS for step in range(STEPS + 1)] if end else []
