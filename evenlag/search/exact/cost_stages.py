"""The stages where costs of pairs count: the cheapest plan by a flow, and a program over classes of members.

The least that costs of pairs come to is a min-cost flow; with multipliers on the budgets it has plans that keep them.

For classes of members with the same costs, such as racks, a linear program says how much of each partition every class
has (class_program.py): what loads and costs must come to together. A flow gives each partition to a class that has much
of it, so that counts stay possible. Relocation evens loads out within what the program spends of each pair cost. Then
pairs of members share anew what costs the same on both, which leaves all costs as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from math import floor
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import NO_CAP, NOBODY, Ints, Whole, leaving
from evenlag.model.balance import CountRule
from evenlag.model.bounds import reduced_lags
from evenlag.model.certificate import searched
from evenlag.model.flow import CountBounds, CountNetwork
from evenlag.model.objective import EVERY_TERM
from evenlag.model.origin import NO_ORIGIN
from evenlag.model.pair_costs import total
from evenlag.model.pair_data import NO_PAIR_DATA
from evenlag.model.pair_flow import cheapest_plan, combined
from evenlag.model.plan import Number, Plan, whole
from evenlag.model.problem import Problem
from evenlag.search.clock import Turn
from evenlag.search.exact.class_program import NEAR, ClassProgram, Relaxed, member_classes
from evenlag.search.improve.local_search import local_search, relocate
from evenlag.search.improve.pairs import PairSearch
from evenlag.search.improve.state import SearchState
from evenlag.search.incumbent import Bound, Candidate, Exhausted, Finding, Incumbent
from evenlag.search.task import Task

Part = tuple[Number, Ints]


@dataclass(frozen=True)
class CheapestPairs:
    """The cheapest plan by prices alone, and where it breaks budgets, plans that are cheap in what is budgeted too.

    With multipliers on the budgets a flow bounds the objective from below (Lagrangian relaxation): what they add is
    no more than a plan within the budgets may cost.

    Attributes
    ----------
    most_pairs : int
        With more partitions times members it does not run.
    most_steps : int
        Multipliers that are tried.
    """

    most_pairs: int = 5_000_000
    most_steps: int = 24
    name: str = "pair flow"
    handles: ClassVar[frozenset[str]] = EVERY_TERM

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Where pairs have costs."""
        return bool(task.goal.pairs or task.goal.kind is None) and _size(task) <= self.most_pairs

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Offer the cheapest plans, and prove what they must cost; no flow begins that takes longer than there is."""
        stop = task.clock.stop()
        priced, budgeted, most = _parts(task)
        if not (budgeted and task.clock.passed()):  # else a plan within the budgets is all that is wanted
            found = yield from self._flow(task, priced, 0, task.clock.room(found=best.found))
            if found is None or not budgeted or task.goal.broken(found.plan) is None:
                return
        of_budgets: list[Part] = [(1, costs) for _, costs in budgeted]
        first = yield from self._flow(task, of_budgets, None, task.clock.room(found=best.found))
        if first is None:
            return
        if first.bound > most:
            yield Exhausted()  # the cheapest plan there is costs more than all budgets together
            return
        low, high = Fraction(0), None
        factor = Fraction(1)
        for _ in range(self.most_steps):
            if stop():
                return
            parts = [*priced, *((factor, costs) for _, costs in budgeted)]
            plan = yield from self._flow(task, parts, factor * most, task.clock.room(found=best.found))
            if plan is None:
                return
            if sum(total(costs, plan.plan.member_of) for _, costs in budgeted) > most:
                low = factor
            else:
                high = factor
            if high is None:
                factor *= 16
            elif high - low <= Fraction(1, 4) or not priced:
                return
            else:
                factor = (low + high) / 2 if low else high / 16

    def _flow(
        self, task: Task, parts: list[Part], allowed: Number | None, seconds: float
    ) -> Generator[Finding, None, _Cheapest | None]:
        """Offer the plan that is cheapest by these parts, and return it; with `allowed` for budgets, a bound."""
        table = combined(parts)
        if table is None:
            costs, unit = np.zeros((len(task.problem.lags), len(task.problem.members)), np.int64), Fraction(1)
        else:
            costs, unit = table
        cheapest = task.cache.cheapest_plan(task.rule, costs, seconds)
        if cheapest is None:
            task.clock.ended()
            return None
        plan = Plan(task.problem, cheapest.member_of)
        yield Candidate(plan)
        if allowed is not None:
            yield Bound(whole(task.least_base + cheapest.bound * unit - allowed))
        return _Cheapest(plan, cheapest.bound)


@dataclass(frozen=True)
class _Cheapest:
    """A cheapest plan, and what any plan costs at least, in units of the table of costs."""

    plan: Plan
    bound: int


def _size(task: Task) -> int:
    return len(task.problem.lags) * len(task.problem.members)


def _parts(task: Task) -> tuple[list[Part], list[Part], int]:
    """Return the costs with a price, those with a budget, and what the budgets allow together."""
    goal, problem = task.goal, task.problem
    priced: list[Part] = [(pair.price, pair.costs) for pair in goal.pairs if pair.price]
    budgeted: list[Part] = [(1, pair.costs) for pair in goal.pairs if pair.budget is not None]
    most = sum(pair.budget for pair in goal.pairs if pair.budget is not None)
    if task.moves_matter:
        leaves = leaving(problem.owner, len(problem.members))
        priced += [(goal.stickiness, leaves)] if goal.stickiness else []
        if goal.max_moves is not None:
            budgeted.append((1, leaves))
            most += goal.max_moves
    return priced, budgeted, most


# ---- classes of members ----------------------------------------------------------------------------------------------

MOST_SPLITS = 30  # from the same fractions
WORTH = Fraction(1, 100_000)  # of the mean load: what a bound must rise by


@dataclass(frozen=True)
class Classes:
    """A linear program over classes of members, and plans from its fractions.

    Attributes
    ----------
    most_columns : int
        Partitions times classes.
    seconds_each : float
        With less time for each of these it does not run, since its first program takes that.
    most_branches : int
        Parts that the program is split into, at most.
    vain : int
        Splits that may bring next to nothing before it is given up, and twice those that it took to get there.
    """

    most_columns: int = 20_000
    seconds_each: float = 6e-5
    most_branches: int = 200
    vain: int = 16
    name: str = "classes"
    handles: ClassVar[frozenset[str]] = EVERY_TERM

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Where loads and costs of pairs count, or loads have a ceiling, without scenarios."""
        goal = task.goal
        if task.problem.futures:
            return False
        return goal.ceiling is not None or (bool(goal.pairs) and goal.kind is not None)

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Prove bounds, then offer plans."""
        classes = member_classes(task)
        columns = len(classes.members) * int(task.problem.assignable.sum())
        in_time = task.clock.deterministic or columns * self.seconds_each <= task.clock.allowance()
        if columns > self.most_columns or (not in_time and task.clock.ended()):
            return
        stop = task.clock.stop()
        rests_on = best.authors
        program = ClassProgram(task, classes, best.value if best.found else None, best.base_bound)
        split, next_look = Split(classes.members, task, best, stop), 0
        highest, at = Fraction(-1), 0
        for number, relaxed in enumerate(program.solve(stop, self.most_branches)):
            yield Bound(relaxed.bound, rests_on=rests_on, certificate=searched(task.bounds))
            if relaxed.bound - highest > WORTH * task.scale:
                highest, at = Fraction(relaxed.bound), number
            if number > 2 * at + self.vain:
                break
            if number < next_look or task.goal.kind is None:
                continue
            next_look = 2 * number + 1
            yield from split.begin(relaxed)
            if best.found:
                program.better(best.value)
        yield from split.go_on()


class Split:
    """Plans from the fractions of a class program: from each a first one, then more from where the best one came.

    Parameters
    ----------
    members : list of int64 arrays
        Those of each class.
    task : Task
    best : Incumbent
    stop : callable
        Asked before each step.
    """

    def __init__(self, members: list[Whole], task: Task, best: Incumbent, stop: Callable[[], bool]) -> None:
        self._members, self._task, self._best, self._stop = members, task, best, stop
        self._seed = task.drawn
        self._from: tuple[Relaxed, Iterator[Plan]] | None = None  # the solution that the best plan came of

    def begin(self, relaxed: Relaxed) -> Iterator[Candidate]:
        """Offer a first plan."""
        budgets = [round(spent) for spent in relaxed.spent[: len(self._task.goal.pairs)]]
        lowest = Fraction(floor(relaxed.spent[-1] + NEAR)) * self._task.problem.load_unit
        plans = rounded(self._task, self._members, relaxed.shares, budgets, lowest, self._stop, self._seed)
        for plan in islice(plans, 1):
            before = self._best.value if self._best.found else None
            yield Candidate(plan)
            if self._best.found and self._best.value != before:
                self._from = relaxed, plans

    def go_on(self) -> Iterator[Candidate]:
        """Go on from where the best plan came, and in turn split the partitions among the classes by another seed."""
        for _ in range(MOST_SPLITS):
            if self._from is None or self._best.settled or self._stop():
                return
            relaxed, plans = self._from
            for plan in islice(plans, 1):
                yield Candidate(plan)
            self._seed += 1
            yield from self.begin(relaxed)


Floats = NDArray[np.float64]

# ---- plans from what the program says --------------------------------------------------------------------------------

PARTS = 1000  # of a share, when it is rounded
ROUNDS = 30  # at most, of relocation and pairs
NOISE = 0.5  # of relocation, by which every round but the first begins
STEPS = 20  # of pairs in a round, for each member


def rounded(
    task: Task, members: list[Whole], shares: Floats, budgets: list[int], lowest: Number,
    stop: Callable[[], bool], seed: int,
) -> Iterator[Plan]:  # fmt: skip
    """Yield plans near to these shares, each made from the best so far; none where the time left is too short.

    Parameters
    ----------
    task : Task
    members : list of int64 arrays
        Those of each class.
    shares : float array (P, K)
        How much of each partition a class has.
    budgets : list of int
        What the plans may cost by each pair cost of the objective.
    lowest : number
        The lowest load that these shares may leave, in messages per weight.
    stop : callable
        Asked before each step.
    seed : int
        With another one than the task's the first round begins with a relocation too.
    """
    low = min(lowest, task.bounds.min_load_ub) if task.spread_matters else 0
    window = low, max(task.bounds.max_load_lb, low)
    best = _split(task, members, shares, budgets, low, stop)
    if best is None:
        return
    pairs = (replace(pair, budget=most) for pair, most in zip(task.goal.pairs, budgets, strict=True))
    within = replace(task.goal, pairs=tuple(pairs), max_moves=None)
    for number in range(ROUNDS):
        seed, start = seed + (number > 0), best
        if seed != task.drawn:
            points = relocate(best, task.rule, window, stop, seed, greed=0.0, noise=NOISE, goal=within)
            start = min(points, key=task.goal.value)
        state = SearchState(start, task.rule, window, seed, goal=within)
        for each in members:
            _share_out(state, each, window, stop)
        plan = local_search(state.plan(), task.rule, task.goal, stop)
        yield plan
        if not number or task.goal.value(plan) <= task.goal.value(best):
            best = plan
        if stop():
            return


def _split(
    task: Task, members: list[Whole], shares: Floats, budgets: list[int], low: Number, stop: Callable[[], bool]
) -> Plan | None:
    """Return a plan that gives each partition to some member of a class; None where there is no time for the flows.

    Local search over the classes brings their mean loads together, once each has most of its shares.
    """
    rule = task.rule
    lags = reduced_lags(rule, floor(low)) if task.spread_matters else task.problem.lags
    classes = replace(_as_members(task.problem, members), lags=lags)
    of_classes = CountRule(
        rule.balance, rule.slack,
        None if rule.topic_bounds is None else _summed(rule.topic_bounds, members), rule.topic_distance,
        _summed(rule.member_bounds, members), None, CountNetwork(classes),
    )  # fmt: skip
    away = np.rint((1 - shares.clip(0, 1)) * PARTS).astype(np.int64)
    start = cheapest_plan(of_classes, away, task.clock.room(found=True))
    if start is None:
        return None
    pairs = (
        replace(pair, costs=np.stack([pair.costs[:, each].min(axis=1) for each in members], axis=1), budget=most)
        for pair, most in zip(task.goal.pairs, budgets, strict=True)
    )
    goal = replace(task.goal, stickiness=0, max_moves=None, ceiling=None, pairs=tuple(pairs))
    turn = Turn(STEPS * len(members), stop)
    class_of = local_search(Plan(classes, start.member_of), of_classes, goal, turn).member_of
    costs = PARTS + leaving(task.problem.owner, len(task.problem.members)).astype(np.int64)
    for k, each in enumerate(members):
        costs[np.ix_(class_of == k, each)] -= PARTS
    found = cheapest_plan(rule, costs, task.clock.room(found=True))
    return None if found is None else Plan(task.problem, found.member_of)


def _share_out(state: SearchState, members: Whole, window: tuple[Number, Number], stop: Callable[[], bool]) -> None:
    """Let pairs of members of a class share anew what they hold, until all are in the window or near their mean."""
    mean = Fraction(int(state.scaled[members].sum()), len(members)) * state.problem.load_unit
    state.aim_at((min(window[0], mean), max(window[1], mean)))
    state.active, state.tabu = members, np.zeros(len(members), dtype=bool)
    pairs, turn = PairSearch(state), Turn(STEPS * len(members), stop)
    pairs.rounds(turn)
    pairs.worst_first(turn)


def _as_members(problem: Problem, classes: list[Whole]) -> Problem:
    """Return the problem whose members are classes, of the weight of all their members."""
    class_of = np.full(len(problem.members) + 1, NOBODY, dtype=np.int32)
    for k, members in enumerate(classes):
        class_of[members] = k
    weights = tuple(Fraction(int(problem.relative_weights[members[0]]) * len(members)) for members in classes)
    return replace(
        problem,
        members=tuple(map(str, range(len(classes)))),
        caps=np.full(len(classes), NO_CAP, dtype=np.int64),
        generations=(None,) * len(classes),
        pairs=NO_PAIR_DATA,
        origin=NO_ORIGIN,
        subscribed=np.stack([problem.allowed[:, members].any(axis=1) for members in classes], axis=1),
        weights=weights,
        pins=class_of[problem.pins],
        owner=np.full_like(problem.owner, NOBODY),
    )


def _summed(bounds: CountBounds, classes: list[Whole]) -> CountBounds:
    """Return bounds of counts of classes: the sums of their members'."""
    lo, hi = (
        np.stack([side[..., members].sum(axis=-1) for members in classes], axis=-1) for side in (bounds.lo, bounds.hi)
    )
    return CountBounds(lo, hi)
