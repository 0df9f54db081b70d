"""Stages for pair costs: the cheapest plan by a min-cost flow, and a linear program over classes of members.

A min-cost flow minimizes the pair costs. With multipliers on the budgets, it finds plans within them.

For classes of members with equal costs, such as racks, a linear program decides how much of each partition every class
holds (class_program.py). It bounds loads and costs together. A flow then gives each partition to a class that holds
a large share of it, so that counts stay feasible. Relocation evens out loads without exceeding the program's total for
any pair cost. Finally, pairs of members exchange partitions that cost the same on both, so no cost changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from math import floor
from typing import ClassVar

import numpy as np

from evenlag.model.arrays import NO_CAP, NOBODY, Floats, Whole
from evenlag.model.balance import CountRule
from evenlag.model.bounds import reduced_lags
from evenlag.model.certificate import searched
from evenlag.model.flow import CountBounds, CountNetwork
from evenlag.model.objective import EVERY_TERM
from evenlag.model.origin import NO_ORIGIN
from evenlag.model.pair_costs import moves
from evenlag.model.pair_data import NO_PAIR_DATA
from evenlag.model.pair_flow import cheapest_plan, combined
from evenlag.model.pair_table import PairTable
from evenlag.model.plan import Number, Plan, whole
from evenlag.model.problem import Problem
from evenlag.search.clock import Turn
from evenlag.search.exact.class_program import NEAR, ClassProgram, ProgramParams, Relaxed, member_classes
from evenlag.search.improve.local_search import local_search
from evenlag.search.improve.pairs import PairSearch
from evenlag.search.improve.relocation import Way, relocate
from evenlag.search.improve.state import SearchState
from evenlag.search.incumbent import Bound, Candidate, Exhausted, Finding, Incumbent
from evenlag.search.stage import Stage
from evenlag.search.task import Task

Part = tuple[Number, PairTable]


@dataclass(frozen=True)
class CheapestPairs(Stage):
    """Find the cheapest plan by prices; if it breaks budgets, find plans that are cheap in budgeted costs too.

    With multipliers on the budgets a flow bounds the objective from below (Lagrangian relaxation). A plan within the
    budgets pays at most the multiplied budgets for the added terms, and the bound subtracts that amount.

    Attributes
    ----------
    most_steps : int
        Number of multipliers to try.
    finest : int
        Largest denominator of a cost's weight.
    uneven : (int, int)
        Random weights of partitions: the least one, and one above the largest.
    """

    most_steps: int = 24
    finest: int = 1000
    uneven: tuple[int, int] = (16, 65)
    name: str = "pair flow"
    handles: ClassVar[frozenset[str]] = EVERY_TERM

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Return True if there are pair costs or the objective ignores loads."""
        return bool(task.goal.pairs) or task.goal.kind is None

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Yield the cheapest plans and bounds on the costs. No flow starts that would outlast the time left."""
        stop = task.clock.stop()
        priced, budgeted, budgets = _parts(task)
        most = sum(budgets)
        if not (budgeted and task.clock.passed()):  # otherwise only a plan within the budgets is wanted
            found = yield from self._flow(task, priced, 0, task.clock.room(found=best.found))
            if found is None or not budgeted or task.goal.broken(found.plan) is None:
                return
        of_budgets: list[Part] = [(1, costs) for _, costs in budgeted]
        first = yield from self._flow(task, of_budgets, None, task.clock.room(found=best.found))
        if first is None:
            return
        if first.bound > most:
            yield Exhausted()  # even the cheapest plan costs more than all budgets together
            return
        if len(budgets) > 1 and not best.found and task.goal.broken(first.plan) is not None:
            yield from self._weighed(task, of_budgets, budgets, stop)
        low, high = Fraction(0), None
        factor = Fraction(1)
        for _ in range(self.most_steps):
            if stop():
                return
            parts = [*priced, *((factor, costs) for _, costs in budgeted)]
            plan = yield from self._flow(task, parts, factor * most, task.clock.room(found=best.found))
            if plan is None:
                return
            if sum(costs.total(plan.plan.member_of) for _, costs in budgeted) > most:
                low = factor
            else:
                high = factor
            if high is None:
                factor *= 16
            elif high - low <= Fraction(1, 4) or not priced:
                return
            else:
                factor = (low + high) / 2 if low else high / 16

    def _weighed(
        self, task: Task, budgeted: list[Part], budgets: list[int], stop: Callable[[], bool]
    ) -> Iterator[Finding]:
        """Yield plans that are cheapest in weighted sums of the budgeted costs; those above their budgets weigh more.

        Each cost also has a random weight for each partition. Without them many pairs cost the same at some weights of
        the sums, and the flow jumps from one budget exceeded to another.
        """
        random = np.random.default_rng(task.seed)
        uneven = [costs.times(random.integers(*self.uneven, len(task.problem.lags))) for _, costs in budgeted]
        weights = [1.0] * len(budgets)
        for _ in range(self.most_steps):
            if stop():
                return
            parts: list[Part] = [
                (Fraction(weight / max(weights)).limit_denominator(self.finest), costs)
                for weight, costs in zip(weights, uneven, strict=True)
            ]  # fmt: skip
            found = yield from self._flow(task, parts, None, task.clock.room(found=False))
            if found is None or task.goal.broken(found.plan) is None:
                return
            spent = [costs.total(found.plan.member_of) for _, costs in budgeted]
            weights = [
                weight * math.sqrt((units + 1) / (most + 1))
                for weight, units, most in zip(weights, spent, budgets, strict=True)
            ]

    def _flow(
        self, task: Task, parts: list[Part], allowed: Number | None, seconds: float
    ) -> Generator[Finding, None, _Cheapest | None]:
        """Yield and return the cheapest plan by these costs. With `allowed`, the multiplied budgets, yield a bound."""
        table = combined(parts)
        costs, unit = (moves(task.problem).times(0), Fraction(1)) if table is None else table
        cheapest = task.cache.cheapest_plan(task.rule, costs, seconds)
        if cheapest is None:
            task.clock.ended()
            return None
        plan = Plan(task.problem, cheapest.member_of)
        yield Candidate(plan)
        if allowed is not None:
            yield Bound(whole(task.least_base + cheapest.bound * unit - allowed))
        return _Cheapest(plan, cheapest.bound * unit)


@dataclass(frozen=True)
class _Cheapest:
    """A cheapest plan, and a lower bound on the cost of any plan."""

    plan: Plan
    bound: Number


def _parts(task: Task) -> tuple[list[Part], list[Part], list[int]]:
    """Return the priced costs, the budgeted costs, and their budgets."""
    priced: list[Part] = [(pair.price, pair.costs) for pair in task.costs if pair.price]
    budgeted: list[Part] = [(1, pair.costs) for pair in task.costs if pair.budget is not None]
    return priced, budgeted, [pair.budget for pair in task.costs if pair.budget is not None]


# ---- classes of members ----------------------------------------------------------------------------------------------

PARTS = 1000  # resolution of shares when they are rounded


@dataclass(frozen=True)
class SplitParams:
    """Parameters of rounding fractions to plans."""

    most_splits: int = 30  # most splits of the same fractions
    rounds: int = 30  # most rounds; each relocates units, then exchanges pairs
    noise: float = 0.5  # noise of the relocation that begins each round after the first
    steps: int = 20  # steps of exchanging pairs in a round, per member


@dataclass(frozen=True)
class Classes(Stage):
    """Solve a linear program over classes of members, and round its fractions to plans.

    Attributes
    ----------
    most_columns : int
        Largest number of partitions times classes.
    seconds_each : float
        Time per partition and class that the first program takes. With less the stage does not run.
    most_branches : int
        Largest number of branches.
    vain : int
        The stage ends at branch 2·n + `vain` if n is the last branch that raised the bound notably.
    worth : Fraction
        Share of the mean load by which a bound must rise to count.
    """

    most_columns: int = 20_000
    seconds_each: float = 6e-5
    most_branches: int = 200
    vain: int = 16
    worth: Fraction = Fraction(1, 100_000)
    program: ProgramParams = ProgramParams()
    split: SplitParams = SplitParams()
    name: str = "classes"
    handles: ClassVar[frozenset[str]] = EVERY_TERM

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Return True if loads and pair costs count, or loads have a ceiling, without scenarios."""
        goal = task.goal
        if task.problem.futures:
            return False
        return goal.ceiling is not None or (bool(goal.pairs) and goal.kind is not None)

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Yield bounds, and plans from the fractions."""
        classes = member_classes(task)
        columns = len(classes.members) * int(task.problem.assignable.sum())
        in_time = task.clock.deterministic or columns * self.seconds_each <= task.clock.allowance()
        if columns > self.most_columns or (not in_time and task.clock.ended()):
            return
        stop = best.stop(task.clock)
        rests_on = best.authors
        value = best.value if best.found else None
        program = ClassProgram(task, classes, value, best.base_bound, stop, self.program)
        split, next_look = Split(classes.members, task, best, stop, self.split), 0
        highest, at = Fraction(-1), 0
        for number, relaxed in enumerate(program.solve(self.most_branches)):
            yield Bound(relaxed.bound, rests_on=rests_on, certificate=searched(task.bounds))
            if relaxed.bound - highest > self.worth * task.scale:
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
    """Round fractions of a class program to plans: one from each solution, then more from the best plan's solution.

    Parameters
    ----------
    members : list of int64 arrays
        Members of each class.
    stop : callable
        Called before each step.
    """

    def __init__(
        self, members: list[Whole], task: Task, best: Incumbent, stop: Callable[[], bool], params: SplitParams
    ) -> None:
        self._members, self._task, self._best, self._stop, self._params = members, task, best, stop, params
        self._seed = task.drawn
        self._from: tuple[Relaxed, Iterator[Plan]] | None = None  # the solution that led to the best plan

    def begin(self, relaxed: Relaxed) -> Iterator[Candidate]:
        """Yield a first plan."""
        plans = self._rounded(relaxed)
        for plan in islice(plans, 1):
            before = self._best.value if self._best.found else None
            yield Candidate(plan)
            if self._best.found and self._best.value != before:
                self._from = relaxed, plans

    def go_on(self) -> Iterator[Candidate]:
        """Yield more plans from the best plan's solution, in turn with plans by another split of its fractions."""
        for _ in range(self._params.most_splits):
            if self._from is None or self._best.settled or self._stop():
                return
            relaxed, plans = self._from
            for plan in islice(plans, 1):
                yield Candidate(plan)
            self._seed += 1
            yield from self.begin(relaxed)

    def _rounded(self, relaxed: Relaxed) -> Iterator[Plan]:
        """Yield plans near the solution's shares, each made from the best one so far; none if too little time is left.

        With another seed than the task's, the first round begins with a relocation too.
        """
        task, members, stop, params, seed = self._task, self._members, self._stop, self._params, self._seed
        budgets = [round(spent) for spent in relaxed.spent[: len(task.goal.pairs)]]
        low: Number = 0
        if task.spread_matters:
            low = min(floor(relaxed.spent[-1] + NEAR) * task.problem.load_unit, task.bounds.min_load_ub)
        window = low, max(task.bounds.max_load_lb, low)
        best = _split(task, members, relaxed.shares, budgets, low, Turn(params.steps * len(members), stop))
        if best is None:
            return
        pairs = (replace(pair, budget=most) for pair, most in zip(task.goal.pairs, budgets, strict=True))
        within = replace(task.goal, pairs=tuple(pairs), max_moves=None)
        for number in range(params.rounds):
            seed, start = seed + (number > 0), best
            if seed != task.drawn:
                points = relocate(best, task.rule, window, stop, seed, Way(0.0, params.noise), goal=within)
                start = min(points, key=task.goal.value)
            state = SearchState(start, task.rule, window, seed, goal=within)
            for each in members:
                _redistribute(state, each, window, Turn(params.steps * len(each), stop))
            plan = local_search(state.plan(), task.rule, task.goal, stop)
            yield plan
            if not number or task.goal.value(plan) <= task.goal.value(best):
                best = plan
            if stop():
                return


# ---- plans from fractions --------------------------------------------------------------------------------------------


def _split(
    task: Task, members: list[Whole], shares: Floats, budgets: list[int], low: Number, stop: Callable[[], bool]
) -> Plan | None:
    """Return a plan that gives each partition to a member of some class; None if the flows have no time.

    Once each class has most of its shares, local search over the classes brings their mean loads together.
    """
    rule = task.rule
    lags = reduced_lags(rule, floor(low)) if task.spread_matters else task.problem.lags
    classes = replace(_as_members(task.problem, members), lags=lags)
    class_of = _class_of(task.problem, members)
    of_classes = CountRule(
        rule.balance, rule.slack,
        None if rule.topic_bounds is None else _summed(rule.topic_bounds, members), rule.topic_distance,
        _summed(rule.member_bounds, members), None, CountNetwork(classes),
    )  # fmt: skip
    away = np.rint((1 - shares.clip(0, 1)) * PARTS).astype(np.int64)
    start = cheapest_plan(of_classes, PairTable.by_class(away, np.arange(len(members))), task.clock.room(found=True))
    if start is None:
        return None
    pairs = (
        replace(pair, costs=_of_classes(pair.costs, members, class_of), budget=most)
        for pair, most in zip(task.goal.pairs, budgets, strict=True)
    )
    goal = replace(task.goal, stickiness=0, max_moves=None, ceiling=None, pairs=tuple(pairs))
    chosen = local_search(Plan(classes, start.member_of), of_classes, goal, stop).member_of
    elsewhere = PARTS * (chosen[:, None] != np.arange(len(members) + 1)).astype(np.int64)
    outside = np.where(class_of == NOBODY, len(members), class_of)  # the last class: members of none
    costs = PairTable.by_class(elsewhere, outside).plus(moves(task.problem))
    found = cheapest_plan(rule, costs, task.clock.room(found=True))
    return None if found is None else Plan(task.problem, found.member_of)


def _redistribute(state: SearchState, members: Whole, window: tuple[Number, Number], stop: Callable[[], bool]) -> None:
    """Redistribute between pairs of members of a class, until all are in the window or near their mean."""
    mean = Fraction(int(state.scaled[members].sum()), len(members)) * state.problem.load_unit
    state.aim_at((min(window[0], mean), max(window[1], mean)))
    state.active, state.tabu = members, np.zeros(len(members), dtype=bool)
    pairs = PairSearch(state)
    pairs.rounds(stop)
    pairs.worst_first(stop)


def _class_of(problem: Problem, classes: list[Whole]) -> Whole:
    """Return the class of each member (M,); `NOBODY` for members of none."""
    class_of = np.full(len(problem.members), NOBODY, dtype=np.int64)
    for k, members in enumerate(classes):
        class_of[members] = k
    return class_of


def _of_classes(costs: PairTable, classes: list[Whole], class_of: Whole) -> PairTable:
    """Return the least cost of each partition on the members of each class, as costs of classes."""
    table = costs.table[:, [costs.class_of[members[0]] for members in classes]]
    home = np.where(costs.home == NOBODY, NOBODY, class_of[costs.home]).astype(np.int32)
    return PairTable(table, np.arange(len(classes)), home, np.where(home == NOBODY, 0, costs.at_home))


def _as_members(problem: Problem, classes: list[Whole]) -> Problem:
    """Return the problem whose members are classes, each with the weight of its members."""
    class_of = np.append(_class_of(problem, classes), NOBODY).astype(np.int32)
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
    """Return the count bounds of classes: the sums over their members."""
    lo, hi = (
        np.stack([side[..., members].sum(axis=-1) for members in classes], axis=-1) for side in (bounds.lo, bounds.hi)
    )
    return CountBounds(lo, hi)
