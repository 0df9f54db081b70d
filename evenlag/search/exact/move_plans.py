"""The best plan where moves count, or a proof that none is better: exchanges are enumerated and joined.

A better plan leaves every member a load in a range that narrows with each move. For each member, all exchanges that
lead to such a load are enumerated: own partitions to give and others' to take (member_options.py,
column_enumeration.py).
The exchanges of two members are compatible if each takes from the other only what the other gives. So partial plans are
joined with dominance, first of two members, then of larger sets (join_dp.py). The enumeration is complete: if nothing
fits, there is no better plan. The target objective rises from the bound in growing steps (iterative deepening, Korf
1985). A step without a plan raises the bound, and the first plan found is the best one. This is set partitioning
(set_partitioning.py) for members that differ in what they own. Here columns are changes to today's assignment, because
few moves leave few of them. Sets of members are joined, instead of adding one member at a time.

Move columns do the same with patterns of low reduced cost. They first find the cheapest window that may hold a plan,
which bounds the objective (move_patterns.py), and round the solution of the linear program to plans. Then the target
objective rises in the same way. For each number of moves, the remaining windows are merged, and prices are found for
the merged windows, or for half of them if too many patterns are left (divide and conquer). The patterns that the prices
do not exclude are enumerated and joined. If that does not end with the best plan, plans are rounded once more.

The linear program uses several patterns of most members, each in part. Randomized rounding (Raghavan and Thompson 1987)
gives a member one of its patterns, preferably one that is used much, if nobody holds a partition of it yet. The other
partitions return to their owners. A flow then changes as few assignments as the counts require (`fewest_moves_plan`).
Such a plan makes about as many moves as permitted, and most of them are worth it. So a relocation towards the window
starts from it and often has little to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import ceil, floor
from operator import itemgetter
from random import Random
from typing import ClassVar

import numpy as np

from evenlag.heuristics.array_operations import owned_counts
from evenlag.model.arrays import Whole
from evenlag.model.backends import fits
from evenlag.model.balance import Balance, CountRule
from evenlag.model.bounds import LoadBounds, reduced_lags
from evenlag.model.certificate import searched
from evenlag.model.objective import Objective, ObjectiveKind
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Index, Problem
from evenlag.search.construct.fresh import fewest_moves_plan
from evenlag.search.exact import move_patterns
from evenlag.search.exact.column_enumeration import PricedOptions, TargetOptions
from evenlag.search.exact.column_pool import Used
from evenlag.search.exact.deepening import Pace, PlanTarget, Proof, deepened, findings, plan_target
from evenlag.search.exact.join_dp import Found, JoinDP
from evenlag.search.exact.member_options import JoinLimits, MemberOptions
from evenlag.search.exact.move_patterns import GridParams, MoveGrids, MovePatterns, cheapest_window
from evenlag.search.exact.windows import LARGEST, UNIT, Answer, Window
from evenlag.search.improve.local_search import local_search
from evenlag.search.improve.relocation import Relocation, Way, relocate
from evenlag.search.incumbent import Bound, Candidate, Finding, Incumbent
from evenlag.search.stage import Stage
from evenlag.search.subsets import EnumerationLimitError
from evenlag.search.task import Task

MOST_PARTITIONS = 256  # with more, there is nearly always too much to enumerate
LARGEST_SUM = 2**62  # limits lags, so that sums of loads and prices fit 64 bits


@dataclass(frozen=True)
class RoundingParams:
    """Parameters of rounding the linear program to plans. `Relocation` has the other ones of its descents."""

    patience: int = 12  # plans in a row without gain, on the finest grid
    patience_coarse: int = 5  # the same on coarser ones
    least_factor: float = 0.3  # least random factor on the amount of a pattern
    unlikely: float = 0.1  # share of the patterns whose factor is this number instead
    noise: float = 0.5  # of relocations
    undone: tuple[float, ...] = (0.0, 0.2, 0.4)  # of relocations; one is drawn


@dataclass(frozen=True)
class SeveralParams:
    """Parameters for several windows whose patterns are joined together."""

    share: float = 0.01  # of the enumeration limits, beyond which halves of the windows are looked at
    least_gain: float = 0.2  # moves by which the slack of a half must be lower, else they stay together


def loads_and_moves_alone(rule: CountRule, goal: Objective) -> bool:
    """Return True if plans differ only by loads, counts and moves, in whole messages."""
    problem = rule.problem
    alike = rule.interchangeable and rule.ranks is None and problem.equal_weights and problem.lags.dtype != object
    owned = (problem.owner != NOBODY).any() and not (problem.pins != NOBODY).any()
    return bool(alike and owned) and isinstance(goal.stickiness, int)


def applies(rule: CountRule, goal: Objective) -> bool:
    """Return True if the rule and objective are supported and the group is small enough to enumerate."""
    few = rule.problem.active.sum() > 1 and len(rule.problem.lags) <= MOST_PARTITIONS
    return bool(few) and loads_and_moves_alone(rule, goal)


def sums_fit(problem: Problem, value: int) -> bool:
    """Return True if sums of loads and prices fit 64 bits for plans with an objective up to `value`."""
    return max(value, problem.total_lag) < LARGEST_SUM // MOST_PARTITIONS


class MovePlans:
    """Exact search for plans by enumeration of the exchanges of all members.

    Parameters
    ----------
    rule : CountRule
    goal : Objective
        Rule and objective for which `applies` is True.
    bounds : LoadBounds
        Bounds on the largest and the smallest load of any plan.
    stop : callable
        Called before each step.
    limits : JoinLimits
    least : int
        Proven lower bound on the spread (makespan) alone.
    reduced : bool
        True to enumerate by reduced lags (model/bounds.py); False to use plain lags.
    """

    def __init__(
        self,
        rule: CountRule,
        goal: Objective,
        bounds: LoadBounds,
        stop: Callable[[], bool],
        limits: JoinLimits = JoinLimits(),
        least: int = 0,
        *,
        reduced: bool = True,
    ) -> None:
        problem = rule.problem
        self.rule, self.goal, self.stop, self.limits, self._least = rule, goal, stop, limits, least
        self._loads = floor(bounds.min_load_ub) if goal.kind == ObjectiveKind.SPREAD else 0, ceil(bounds.max_load_lb)
        lags = reduced_lags(rule, self._loads[0]) if reduced else problem.lags.astype(np.int64)
        self._lags = lags[problem.assignable]
        price, active = int(goal.stickiness), np.flatnonzero(problem.active).tolist()
        self.members = [MemberOptions(rule, m, self._lags, price, limits) for m in active]

    def target(self, asked: int) -> PlanTarget:
        """Return the target for an objective."""
        return plan_target(self.rule, self.goal, self._loads, asked, self._least, self._lags)

    def best_within(self, asked: int) -> Found | None:
        """Return the best plan with an objective of at most `asked`, or None if none exists.

        Raises
        ------
        EnumerationLimitError
            The enumeration limits are exceeded, or `stop` ended the search.
        """
        target = self.target(asked)
        if target.most_moves < 0:
            return None
        options = TargetOptions(self.members, target, self.stop, self.limits)
        return JoinDP(options, self.stop, self.limits.states).best()


def best_plan_with_moves(plans: MovePlans, bound: int, value: int, pace: Pace = Pace()) -> Proof:
    """Find the best plan with an objective below `value`, or prove that none exists.

    Parameters
    ----------
    plans : MovePlans
    bound, value : int
        Proven lower bound on the objective, and the best known objective, in messages.
    pace : Pace

    Returns
    -------
    Proof
        The best plan, if it was found. Without a plan, the bound is `value` if no better plan exists. It is lower if
        the search exceeded the enumeration limits or the caller's `stop` ended it.
    """
    problem = plans.rule.problem
    if not sums_fit(problem, value):
        return Proof(None, bound, "work")
    return deepened(bound, value, plans.best_within, plans.stop, pace)


@dataclass(frozen=True)
class MoveDP(Stage):
    """Dynamic programming over exchanges, as a stage.

    Attributes
    ----------
    least_seconds : float
        With less time the stage does not start.
    full_seconds : float
        With at least this much time the enumeration limits are highest.
    limits : JoinLimits
    pace : Pace
    """

    least_seconds: float = 0.02
    full_seconds: float = 2.0
    limits: JoinLimits = JoinLimits()
    pace: Pace = Pace()
    name: str = "move-dp"
    starts_over: ClassVar[bool] = True

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Return True if moves count or the objective is the makespan, in small groups that can be enumerated."""
        return not task.spread_alone and applies(task.rule, task.goal)

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Yield the best plan, or a bound on its objective."""
        seconds = task.clock.allowance()
        if seconds < self.least_seconds and task.clock.ended():
            return
        stop, size = task.clock.stop(), min(seconds / self.full_seconds, 1.0)
        limits = self.limits.times(size)
        plans = MovePlans(task.rule, task.goal, task.bounds, stop, limits, ceil(best.base_bound))
        rests_on = best.authors
        proof = best_plan_with_moves(plans, ceil(best.bound), int(best.value), self.pace)
        if proof.stopped != "proof" and size < 1:
            task.clock.ended()
        yield from findings(proof, task.clock, task.bounds, rests_on)


# ---- move columns ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MoveColumns(Stage):
    """Column generation where moves count, as a stage.

    Attributes
    ----------
    fewest_partitions : int
        With fewer, move-dp finds the best plan before the first bound is there.
    least_seconds : float
        With less time no bound is reached, unless earlier results are there.
    full_seconds : float
        With at least this much time the enumeration limits are highest.
    proof_share : float
        Share of the time left for the proof; then plans are found in other ways.
    limits : JoinLimits
    pace : Pace
    rounding : RoundingParams
    several : SeveralParams
    grids : GridParams
    """

    fewest_partitions: int = 36
    least_seconds: float = 0.2
    full_seconds: float = 2.0
    proof_share: float = 0.7
    limits: JoinLimits = JoinLimits()
    pace: Pace = Pace(first=0.05)
    rounding: RoundingParams = RoundingParams()
    several: SeveralParams = SeveralParams()
    grids: GridParams = GridParams()
    name: str = "move columns"

    def applies(self, task: Task, best: Incumbent) -> bool:
        """Return True if moves count, loads are whole messages, and the group is not too small."""
        count = int(task.problem.assignable.sum())
        if count < self.fewest_partitions or (count + 1) * best.value >= LARGEST or not fits(task.problem):
            return False
        return task.moves_matter and not best.settled and move_patterns.applies(task.rule)

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Yield bounds and rounded plans, then find the best plan where patterns can be enumerated."""
        seconds, goal = task.clock.allowance(), task.goal
        grids = task.cache.kept(MoveGrids, task.rule, task.spread_matters, self.grids)
        if seconds < self.least_seconds and not grids.begun and task.clock.ended():
            return
        stop = best.stop(task.clock)
        price = min(floor(goal.stickiness), ceil(best.value))
        patterns, rng = None, Random(task.drawn)
        for patterns in grids.up_to(best.value, best.value - best.bound, stop):
            if best.value - best.bound > patterns.resolution:
                cheapest = cheapest_window(patterns, best.value, goal.max_moves, price)
                yield Bound(cheapest, certificate=searched(task.bounds))
                yield from rounded_plans(task, best, patterns, price, stop, rng, self.rounding)
            if best.settled:
                return
        if patterns is None or stop() or not members_decide(task.rule, goal):
            return
        size = min(seconds / self.full_seconds, 1.0)
        limits = self.limits.times(size)
        plans = MovePlans(task.rule, goal, task.bounds, stop, limits, ceil(best.base_bound), reduced=False)
        search, rests_on = _Search(plans, patterns, self.several), best.authors
        stop_proof = task.clock.stop(self.proof_share)
        proof = deepened(ceil(best.bound), int(best.value), search.look, stop_proof, self.pace)
        if proof.stopped != "proof" and size < 1:
            task.clock.ended()
        if proof.plan is None and search.found is not None:
            yield Candidate(search.found[1])
        yield from findings(proof, task.clock, task.bounds, rests_on)
        yield from rounded_plans(task, best, patterns, price, stop, rng, self.rounding)


def members_decide(rule: CountRule, goal: Objective) -> bool:
    """Return True if any patterns that members may hold form a valid plan, and objectives are integers."""
    return rule.ranks is None and not rule.topic_distance and isinstance(goal.stickiness, int)


class _Search:
    """Search for the best plan up to an objective."""

    def __init__(self, plans: MovePlans, patterns: MovePatterns, several: SeveralParams) -> None:
        self._plans, self._patterns, self._several, self._stop = plans, patterns, several, plans.stop
        self.found: Found | None = None  # best so far
        self._alike = loads_and_moves_alone(plans.rule, plans.goal)

    def look(self, asked: int) -> Found | None:
        """Return the best plan with an objective of at most `asked`, or None if none exists.

        Raises
        ------
        EnumerationLimitError
            The enumeration limits are exceeded, or `stop` ended the search.
        """
        target, numbers = self._target(asked)
        found: Found | None = None
        for moves in numbers:
            if moves > target.most_moves:
                break
            width, lows = self._open(target, moves)
            here = self._within(lows, width, replace(target, most_moves=moves)) if len(lows) else None
            if here is not None:
                found, (target, _) = here, self._target(here[0] - 1)
        return found

    def _target(self, asked: int) -> tuple[PlanTarget, range]:
        """Return the target for an objective, and the numbers of moves to examine one by one."""
        target = self._plans.target(asked)
        return target, range(0 if target.price else max(target.most_moves, 0), target.most_moves + 1)

    def _open(self, target: PlanTarget, moves: int) -> tuple[int, Whole]:
        """Return the greatest window width of plans with `moves` moves, and the low ends that such plans may have."""
        moves += target.lost
        width = self._patterns.grid.width(target.objective + 1 - target.price * moves) - 1
        return width, self._patterns.windows.open_lows(width, moves)

    def _within(self, lows: Whole, width: int, target: PlanTarget) -> Found | None:
        """Return the best plan with all loads in one of the windows at these low ends."""
        lows, slack = self._priced(lows, width, target)
        return self._joined(lows, slack, width, target) if len(lows) else None

    def _priced(self, lows: Whole, width: int, target: PlanTarget) -> tuple[Whole, int]:
        """Find prices for windows together; return the low ends that they leave, and the slack there."""
        if self._patterns.solve(_around(lows, width), target.all_moves, fully=True) is Answer.STOPPED:
            raise EnumerationLimitError
        lows = lows[np.isin(lows, self._patterns.windows.open_lows(width, target.all_moves))]
        return lows, self._options(lows, width, target).slack if len(lows) else -1

    def _joined(self, lows: Whole, slack: int, width: int, target: PlanTarget) -> Found | None:
        """Return the best plan with all loads in one of the windows, whose prices are found.

        The window around all of them permits more patterns than each, the more the larger the slack. If there are too
        many patterns, each half of the windows is examined alone, unless neither half has a lower slack.
        """
        if len(lows) > 1:
            try:
                return self._join(self._options(lows, width, target, self._several.share))
            except EnumerationLimitError:
                if self._stop():
                    raise
            halves = [self._priced(half, width, target) for half in np.array_split(lows, 2)]
            if min(less for _, less in halves) < slack - self._several.least_gain * UNIT:
                found = [self._joined(half, less, width, target) for half, less in halves if len(half)]
                return min(filter(None, found), key=itemgetter(0), default=None)
        return self._join(self._options(lows, width, target))

    def _options(self, lows: Whole, width: int, target: PlanTarget, share: float = 1.0) -> PricedOptions:
        plans, window = self._plans, _around(lows, width)
        limits = plans.limits.times(share)
        return PricedOptions(plans.members, self._patterns, target, window, self._stop, limits, alike=self._alike)

    def _join(self, options: PricedOptions) -> Found | None:
        found = JoinDP(options, self._stop, options.limits.states).best()
        if found is not None and (self.found is None or found[0] < self.found[0]):
            self.found = found
        return found


def _around(lows: Whole, width: int) -> Window:
    """Return the window that contains all windows of a width at these low ends."""
    return Window(int(lows[0]), int(lows[-1]) + width)


def rounded_plans(
    task: Task, best: Incumbent, patterns: MovePatterns, price: int, stop: Callable[[], bool], rng: Random,
    params: RoundingParams = RoundingParams(),
) -> Iterator[Finding]:  # fmt: skip
    """Yield plans rounded towards windows that may hold better ones, until several in a row bring no gain.

    The price of a move is in whole messages, as for `cheapest_window`.
    """
    without_gain = 0
    patience = params.patience if patterns.finest else params.patience_coarse
    while without_gain < patience and not best.settled and not stop():
        costs = patterns.windows.costs(task.goal.max_moves, price)
        least, before = int(costs.min(initial=LARGEST)), best.value
        if least >= before:
            return
        _, window, _ = patterns.windows.widest(costs, rng.randint(least, ceil(before) - 1), patterns.mean)
        start = rounded_plan(task.rule, patterns.columns.used(window), rng, params)
        loads = window.low * patterns.grid.unit, (window.high + 1) * patterns.grid.unit
        plan = _towards(start, loads, task, best.moves_worth, stop, rng, params)
        if plan is not None:
            yield Candidate(plan)
        without_gain = 0 if best.value < before else without_gain + 1


def rounded_plan(
    rule: CountRule, used: list[Used], rng: Random, params: RoundingParams = RoundingParams()
) -> Plan:  # fmt: skip
    """Return a plan from these patterns, one for each member, as far as counts allow."""
    problem = rule.problem
    lacking = np.maximum(rule.total_bounds.lo - owned_counts(problem), 0)  # members that must take most come first
    unlikely, least = params.unlikely, params.least_factor
    factor = [unlikely if rng.random() < unlikely else rng.uniform(least, 1.0) for _ in used]
    wish, served = np.full_like(problem.owner, NOBODY), np.zeros(len(problem.members), dtype=bool)
    for at in sorted(range(len(used)), key=lambda at: (-lacking[used[at].member], -factor[at] * used[at].amount)):
        m, places = used[at].member, used[at].places
        if not served[m] and (wish[places] == NOBODY).all():
            wish[places], served[m] = m, True
    home = (wish == NOBODY) & (problem.owner != NOBODY)
    home &= ~served[problem.owner] | (problem.lags == 0)
    wish[home] = problem.owner[home]
    if rule.balance == Balance.NONE:  # otherwise counts decide who takes the rest
        _give_to_lightest(problem, wish)
    return Plan(problem, fewest_moves_plan(rule.at(problem.at(problem.lags, wish))).member_of)


def _give_to_lightest(problem: Problem, wish: Index) -> None:
    """Give each partition without a holder to the member with the least load, the biggest partition first."""
    loads = Plan(problem, wish.copy()).loads
    left = np.flatnonzero((wish == NOBODY) & problem.assignable)
    for place in left[np.argsort(-problem.lags[left], kind="stable")].tolist():
        takers = np.flatnonzero(problem.allowed[problem.topic_of[place]])
        wish[place] = takers[loads[takers].argmin()]
        loads[wish[place]] += problem.lags[place]


def _towards(
    start: Plan, loads: tuple[int, int], task: Task, most: int | None, stop: Callable[[], bool], rng: Random,
    params: RoundingParams,
) -> Plan | None:  # fmt: skip
    """Return the best plan of a relocation towards a window and local search, with at most `most` moves; or None."""
    seed = rng.randrange(2**31)
    way = Way(rng.choice(Relocation.greeds), params.noise, rng.choice(params.undone), rng.random() < Relocation.careful)
    plans = relocate(start, task.rule, loads, stop, seed, way, most_moves=most)
    few = [plan for plan in plans if most is None or plan.moves <= most]
    if not few:
        return None
    polish = task.clock.stop(Relocation.polish_share)
    return local_search(min(few, key=task.goal.value), task.rule, task.goal, polish)
