"""Replay: run each strategy over a group's recorded history, to find the one that would have served it best.

The record provides what was produced, the membership over time, and the members' capacity. These inputs are the same
for all strategies; only the assignment differs. docs/replay.md describes the model and its limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, Self, TypedDict, Unpack, cast

import numpy as np

from evenlag.compare.consumption import budget, share_out
from evenlag.compare.foresight import AUTO, KINDS, Foresight, ahead_micros
from evenlag.compare.history import Capacity, Interval, Messages, Snapshot, intervals, known_capacity
from evenlag.compare.replay_result import RECORDED, Replay, ReplayStep, ReplaySummary
from evenlag.errors import EvenlagError, InvalidPlanError, InvalidProblemError
from evenlag.figures import quantity
from evenlag.heuristics import HEURISTICS
from evenlag.model.asked_terms import move_price
from evenlag.model.balance import Balance
from evenlag.model.check import plan_violation
from evenlag.model.defaults import REPLAY_GAP
from evenlag.model.literals import BalanceWord, HorizonWord, StickinessWord, StrategyWord
from evenlag.model.names import did_you_mean, taking
from evenlag.model.objective import FEWEST_MOVES, Objective
from evenlag.model.payoff import parse_pause
from evenlag.model.plan import Number, Plan, current_plan, plain
from evenlag.model.problem import NOBODY, Index, Problem
from evenlag.model.rates import SECOND, predicted_lag
from evenlag.model.result import Result
from evenlag.model.values import is_number, shown
from evenlag.search import portfolio
from evenlag.search.exact.small_groups import Enumeration
from evenlag.search.improve.scenarios import Scenarios
from evenlag.search.options import NET, SolveOptions
from evenlag.search.solver import search
from evenlag.search.stage import Step

EVENLAG = "evenlag"
STRATEGIES = cast("tuple[StrategyWord, ...]", (*HEURISTICS, EVENLAG))
_SEVERAL_FUTURES = (  # no bounds or proofs: a replay shows only plans, and makes many
    Step(Enumeration()), *portfolio.START, Step(Scenarios(), 0.5), Step(Scenarios(again=True), 0.5, again=True),
)  # fmt: skip
START, MEMBERSHIP, THRESHOLD = "start", "membership", "threshold"


@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    """Options of a replay; see `replay` for each parameter.

    Attributes
    ----------
    solving : SolveOptions
        Options of "evenlag"; limits are per rebalance. With `deterministic` and no `work`, the clock still stops a
        search after `NET` times its limit.
    measured : Capacity or None
        The capacity that the group's commits show, if it is not given; see `history.known_capacity`.

    Raises
    ------
    InvalidProblemError
        An option has an invalid value; the message names both.
    """

    strategies: Sequence[str] = STRATEGIES
    horizon: float | str = AUTO
    lag_limit: float | None = None
    rebalance_above: float | None = None
    capacity: float | Capacity | None = None
    measured: Capacity | None = None
    pause: float | Fraction | None = None
    solving: SolveOptions = field(default_factory=lambda: SolveOptions(time_limit=1.0, gap=REPLAY_GAP))

    @classmethod
    def of(cls, **parameters: Any) -> Self:
        """Build the options from the parameters of `replay`."""
        own = {name: parameters.pop(name) for name in cls.__dataclass_fields__ if name in parameters}
        return cls(**own, solving=SolveOptions(**{"time_limit": 1.0, "gap": REPLAY_GAP} | parameters))

    def __post_init__(self) -> None:
        unknown = [name for name in self.strategies if name not in STRATEGIES]
        if unknown or not self.strategies or isinstance(self.strategies, str):
            wrong = unknown[0] if unknown and not isinstance(self.strategies, str) else self.strategies
            near = did_you_mean(wrong, STRATEGIES)
            raise InvalidProblemError(f"strategies must be one or more of {', '.join(STRATEGIES)}, not {wrong!r}{near}")
        self.ahead  # noqa: B018
        for name in ("lag_limit", "rebalance_above"):
            value = getattr(self, name)
            if value is not None and not (is_number(value) and 0 <= value < 2**63):
                raise InvalidProblemError(f"{name} must be a number >= 0, not {shown(value)}")
        Capacity.of_user(self.capacity)
        self.standstill  # noqa: B018

    @property
    def standstill(self) -> int:
        """The time in microseconds for which a moved partition is not read."""
        return 0 if self.pause is None else int(parse_pause(self.pause) * SECOND)

    def with_past(self, pause: tuple[float | Fraction, list[str]], measured: Capacity | None) -> tuple[Self, list[str]]:
        """Fill unset options from the group's past; return them with notes on the measured pause, if it is used."""
        seconds, notes = pause if self.pause is None else (self.pause, [])
        return replace(self, pause=seconds, measured=measured), notes

    @property
    def ahead(self) -> int:
        """The horizon in microseconds; 0 with "auto", when all strategies but "evenlag" see today's lag."""
        return ahead_micros(self.horizon)

    def assign(self, strategy: str, problem: Problem) -> tuple[Index, bool]:
        """Let a strategy assign a group from its owners; also return True if only the clock stopped the search."""
        if not problem.active.any():
            return np.full_like(problem.owner, NOBODY), False
        result = self._solve(problem) if strategy == EVENLAG else None
        plan = HEURISTICS[strategy](problem) if result is None else result.plan
        if (broken := plan_violation(plan)) is not None:
            raise InvalidPlanError(broken)
        return plan.member_of, result is not None and result.stopped_by == "time"

    def price(self, problem: Problem) -> Number:
        """Return the price of a move in messages; 0 with "fewest-moves"."""
        if self.solving.stickiness == FEWEST_MOVES:
            return 0
        return move_price(self.solving.stickiness, problem.mean_load)

    def _solve(self, problem: Problem) -> Result:
        solving, seconds = self.solving, self.solving.time_limit
        if solving.work is None:
            solving = solving.within(NET * seconds if solving.deterministic else seconds, seconds)
        steps = _SEVERAL_FUTURES if problem.futures and solving.method == "auto" else None
        return search(problem, solving, explain=False, steps=steps)


class ReplayKeywords(TypedDict, total=False):
    """Parameters of every call that replays; `ReplayOptions` has their defaults."""

    strategies: Sequence[StrategyWord]
    horizon: float | HorizonWord | str
    lag_limit: float | None
    rebalance_above: float | None
    capacity: float | Capacity | None
    pause: float | Fraction | None
    balance: Balance | BalanceWord
    slack: int
    stickiness: float | StickinessWord | str
    seed: int
    deterministic: bool


@taking(ReplayKeywords, ReplayOptions, SolveOptions)
def replay(
    history: Sequence[Snapshot],
    *,
    time_limit: float = 1.0,
    gap: float = REPLAY_GAP,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    **parameters: Unpack[ReplayKeywords],
) -> Replay:
    """Run strategies over the recorded history of one group.

    Each strategy starts from the recorded lags and owners, assigns the group, and keeps its assignment from snapshot to
    snapshot. It rebalances when members or partitions change, or when the spread exceeds a threshold.

    Parameters
    ----------
    history : sequence of Snapshot
        At least two, in order of time; `evenlag.tables.past` builds them from the rows of a snapshot table.
    strategies : sequence of str
        Published heuristics by name, and "evenlag" for `solve`.
    horizon : float or str
        "auto": "evenlag" plans for the load forecast until the next rebalance, from the record up to then
        (docs/forecast.md); other strategies see today's lag. Seconds, or text such as "10m": all strategies see the lag
        predicted for that time, lag + produce rate · horizon, with the rate since the snapshot before. 0: today's lag.
    lag_limit : float, optional
        Messages; the time during which any member has more to read (by weight) is reported.
    rebalance_above : float, optional
        Rebalance at every snapshot at which the spread of the lags seen by the strategy exceeds this fraction of the
        mean load.
    capacity : float or Capacity, optional
        Messages per second read by a member of weight 1; by default estimated (`history.estimate_capacity`).
    pause : float, optional
        Seconds after a rebalance for which nobody reads a partition that it took from an owner; by default none.
    balance, slack, stickiness, time_limit, gap, seed, deterministic, threads
        Options of "evenlag", as in `solve`; limits are per rebalance. `stickiness` also prices moves in `cost`.
    progress : callable, optional
        Called with (strategies done, strategies in all).

    Raises
    ------
    InvalidProblemError
        The history is not valid, or an option has an invalid value.
    """
    options = ReplayOptions.of(**parameters, time_limit=time_limit, gap=gap, threads=threads)
    return run(history, options, progress)


def run(
    history: Sequence[Snapshot],
    options: ReplayOptions,
    progress: Callable[[int, int], None] | None = None,
    foresight: Foresight | None = None,
) -> Replay:
    """Replay with prepared options; see `replay`.

    `foresight` replaces the forecast that "evenlag" plans for with horizon "auto".
    """
    course = list(intervals(history))
    _tells_what_came_in(course)
    given = Capacity.of_user(options.capacity)
    capacity = given or known_capacity(course, options.measured)
    names = [RECORDED, *dict.fromkeys(options.strategies)]
    if options.horizon != AUTO or EVENLAG not in names:
        foresight = None
    elif foresight is None:
        foresight = Foresight(course, capacity if capacity.place else given)
    steps: list[ReplayStep] = []
    summary: list[ReplaySummary] = []
    stopped, planned = 0, Counter[str]()
    for done, name in enumerate(names):
        if progress is not None:
            progress(done, len(names))
        runner = _Runner(name, course, capacity.rate, options, foresight)
        error = runner.run()
        stopped += runner.stopped
        planned += runner.planned
        steps += runner.steps
        summary.append(runner.summary() if error is None else ReplaySummary(name, error=error))
    if progress is not None:
        progress(len(names), len(names))
    return Replay(
        group=history[0].problem.group,
        since=history[0].ts,
        until=history[-1].ts,
        snapshots=len(history),
        capacity=capacity,
        lag_limit=options.lag_limit,
        steps=steps,
        summary=_ranked(summary, options),
        recorded_lag=plain(_mean([(step.micros, sum(step.recorded.tolist())) for step in course])),
        notes=(
            *_notes(course, stopped if options.solving.deterministic else 0),
            *([] if foresight is None else [_assumed(planned)]),
        ),
        facts=history[-1].problem.facts,
    )


class _Runner:
    """State of one strategy in the replay: its assignment and the resulting lags."""

    def __init__(
        self,
        strategy: str,
        course: Sequence[Interval],
        capacity: Fraction,
        options: ReplayOptions,
        foresight: Foresight | None = None,
    ) -> None:
        self.strategy, self.course, self.capacity, self.options = strategy, course, capacity, options
        self.horizon = options.ahead
        self.foresight = foresight if strategy == EVENLAG else None
        self.planned = Counter[str]()  # plans, by the source of their scenarios
        self.place = 0  # index of the snapshot at which the interval begins
        self.steps: list[ReplayStep] = []
        self.prices: list[Number] = []
        self.stopped = 0
        first = course[0].before
        self.start = first.micros
        self.lags: Messages = first.problem.lags.astype(np.int64)
        self.member_of: Index = first.problem.owner.copy()
        self.paused: Messages = np.zeros_like(self.lags)  # microseconds from the start until a partition is read again

    def run(self) -> str | None:
        """Go through the whole history; return the error that stopped it, or None."""
        previous: Interval | None = None
        for interval in self.course:
            try:
                self._go(previous, interval)
            except EvenlagError as error:
                return f"at {interval.before.ts}: {error}"
            previous = interval
            self.place += 1
        return None

    def _go(self, previous: Interval | None, interval: Interval) -> None:
        problem = interval.before.problem.at(self.lags.copy(), self.member_of.copy())
        reason, plan = self._assigned(problem, previous, interval)
        taken = (problem.owner != NOBODY) & (plan.member_of != problem.owner)
        self.member_of = plan.member_of
        self.paused[taken] = interval.before.micros - self.start + self.options.standstill
        lags, flows = self._flow(interval)
        at_end = Plan(problem.at(lags.copy(), self.member_of.copy()), self.member_of)
        before, after = sum(self.lags.tolist()), sum(lags.tolist())
        self.steps.append(
            ReplayStep(
                strategy=self.strategy,
                since=interval.before.ts,
                snapshot_ts=interval.after.ts,
                seconds=interval.micros / SECOND,
                rebalance=reason,
                moves=plan.moves,
                forced_moves=plan.forced_moves if reason is not None else 0,
                members=int(problem.active.sum()),
                spread=at_end.spread,
                makespan=at_end.makespan,
                mean_load=at_end.problem.mean_load,
                lag_before=before,
                lag=after,
                **flows,
                restated=after - before - flows["produced"] + flows["consumed"] + flows["expired"],
            )
        )
        self.prices.append(self.options.price(problem))
        self.lags, self.member_of = interval.carry(lags, self.member_of)
        self.paused = interval.renumbered(self.paused, 0)

    def _assigned(self, problem: Problem, previous: Interval | None, interval: Interval) -> tuple[str | None, Plan]:
        """Return the reason for a rebalance (None if there is none) and the assignment during the interval."""
        if self.strategy == RECORDED:
            plan = Plan(problem, interval.before.problem.owner.copy())
            return (RECORDED if (plan.member_of != problem.owner).any() else None), plan
        reason = START if previous is None else None if previous.same else MEMBERSHIP
        above = self.options.rebalance_above
        if reason is None and above is None:
            return None, current_plan(problem)
        seen = self._seen(problem, previous)
        if reason is None and above is not None:
            goal, limit = Objective(), Fraction(Decimal(repr(above)))
            reason = THRESHOLD if goal.base(current_plan(seen)) > limit * goal.scale(seen) else None
        if reason is None:
            return None, current_plan(problem)
        member_of, stopped = self.options.assign(self.strategy, seen)
        self.stopped += stopped
        if self.foresight is not None:
            self.planned[self.foresight.kind] += 1
        return reason, Plan(problem, member_of.copy())

    def _seen(self, problem: Problem, previous: Interval | None) -> Problem:
        """Return the group as the strategy sees it."""
        if self.foresight is not None:
            return problem.at(problem.lags, problem.owner, self.foresight.scenarios(problem, self.place))
        return problem if self.horizon == 0 or previous is None else self._predicted(problem, previous)

    def _predicted(self, problem: Problem, previous: Interval) -> Problem:
        pairs = zip(self.lags.tolist(), previous.grown, strict=True)
        lags = [predicted_lag(lag, grown, self.horizon) for lag, grown in pairs]
        return problem.at(np.array(lags, dtype=np.int64), self.member_of.copy())

    def _flow(self, interval: Interval) -> tuple[Messages, dict[str, int]]:
        """Let messages arrive and members read; return the lags at the end, and the totals."""
        since, until = (snapshot.micros - self.start for snapshot in (interval.before, interval.after))
        resumed = self.paused[(self.paused > since) & (self.paused < until)]
        work = np.where(interval.restated, 0, self.lags + interval.produced)
        read = np.zeros_like(work)
        for begin, end in pairwise([since, *np.unique(resumed).tolist(), until]):
            readers = np.where(self.paused > begin, np.int32(NOBODY), self.member_of)
            read = read + self._read(interval, work - read, readers, begin, end)
        kept = np.minimum(work - read, interval.room)
        flows = {
            "produced": sum(interval.produced.tolist()),
            "consumed": sum(read.tolist()),
            "expired": sum((work - read - kept).tolist()),
        }
        return np.where(interval.restated, interval.recorded, kept), flows

    def _read(self, interval: Interval, work: Messages, member_of: Index, since: int, until: int) -> Messages:
        """Return the messages read from each partition between two times, in microseconds since the start."""
        weights = interval.before.problem.weights
        by_weight = {weight: budget(self.capacity, weight, since, until) for weight in set(weights)}
        return share_out(work, member_of, np.array([by_weight[weight] for weight in weights], dtype=np.int64))

    def summary(self) -> ReplaySummary:
        """Summarize the steps."""
        counted = [
            (step, interval.micros, price)
            for step, interval, price in zip(self.steps, self.course, self.prices, strict=True)
            if step.members
        ]
        limit = self.options.lag_limit
        above = sum(micros for step, micros, _ in counted if limit is not None and step.makespan > limit)
        return ReplaySummary(
            self.strategy,
            rebalances=sum(step.rebalance is not None for step in self.steps),
            moves=sum(step.moves for step in self.steps),
            forced_moves=sum(step.forced_moves for step in self.steps),
            mean_spread=plain(_mean([(micros, step.spread) for step, micros, _ in counted])),
            p99_spread=plain(_quantile([(micros, step.spread) for step, micros, _ in counted])),
            mean_makespan=plain(_mean([(micros, step.makespan) for step, micros, _ in counted])),
            cost=plain(_mean([(micros, step.spread + price * step.moves) for step, micros, price in counted])),
            mean_lag=plain(
                _mean([(interval.micros, s.lag) for s, interval in zip(self.steps, self.course, strict=True)])
            ),
            seconds_above=None if limit is None else above / SECOND,
        )


def _ranked(summary: list[ReplaySummary], options: ReplayOptions) -> list[ReplaySummary]:
    """Mark the best strategy, or all that tie for it."""

    def key(row: ReplaySummary) -> tuple[Any, ...]:
        price = (row.moves, row.cost) if options.solving.stickiness == FEWEST_MOVES else (row.cost, row.moves)
        return row.seconds_above or 0, *price

    able = [row for row in summary if row.error is None and row.strategy != RECORDED]
    least = min(map(key, able), default=None)
    best = {row.strategy for row in able if key(row) == least}
    return [ReplaySummary(**{**vars(row), "best": row.strategy in best}) for row in summary]


def _mean(values: list[tuple[int, Number]]) -> Number:
    """Return the mean of (time, value) pairs weighted by time; 0 if there are none."""
    total = sum(micros for micros, _ in values)
    return sum((Fraction(micros) * value for micros, value in values), Fraction(0)) / total if total else 0


def _quantile(values: list[tuple[int, Number]]) -> Number:
    """Return the smallest value that is not exceeded 99 % of the time; 0 without values."""
    total, passed = sum(micros for micros, _ in values), 0
    for micros, value in sorted(values, key=lambda pair: pair[1]):
        passed += micros
        if 100 * passed >= 99 * total:
            return value
    return 0


def _tells_what_came_in(course: Sequence[Interval]) -> None:
    if all(interval.restated[interval.source[interval.source != NOBODY]].all() for interval in course):
        raise InvalidProblemError(
            "the record does not show what was produced: a replay needs log_end_offset in at least two snapshots"
        )


def _assumed(planned: Counter[str]) -> str:
    how = ", ".join(f"{planned[kind]} by {kind}" for kind in KINDS if planned[kind])
    return (
        "horizon auto: each plan of evenlag is for the load forecast until the next rebalance, from the record up to "
        f"then ({how or 'none was needed'}), and in part for the latest rates; other strategies see today's lag"
    )


def _notes(course: Sequence[Interval], stopped: int) -> tuple[str, ...]:
    restated = sum(int(interval.restated.sum()) for interval in course)
    idle = sum(not interval.before.problem.active.any() for interval in course)
    notes = {
        f"{quantity(restated, 'lag')} set as recorded: log end offset unknown or gone back, or commit reset": restated,
        f"{quantity(idle, 'interval')} without an active member: left out of means": idle,
        f"{quantity(stopped, 'rebalance')} stopped by the wall clock before the work limit: another run may differ": (
            stopped
        ),
    }
    return tuple(note for note, applies in notes.items() if applies)
