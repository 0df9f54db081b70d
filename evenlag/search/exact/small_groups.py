"""Solve small groups by enumerating plans, or by number partitioning in compiled code.

Enumeration: the plans that a rule allows depend on counts, subscriptions and pins, not on lags or owners. So the list
of plans is cached. A fleet of small groups has few shapes, and each further group of the same shape only multiplies its
lags by the list.

Number partitioning: the search is in partition.c. Without partition.c this stage is skipped; other stages prove the
same results more slowly. Sources: Korf 2009, "Multi-way number partitioning"; Schreiber, Korf and Moffitt 2018,
"Optimal multi-way number partitioning". This search also respects partition counts, minimizes the spread as well as the
makespan, and takes members with weights and caps.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, lcm, prod
from threading import Lock
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evenlag.model.balance import CountRule
from evenlag.model.certificate import all_plans, by_loads, searched
from evenlag.model.objective import EVERY_TERM, Across
from evenlag.model.plan import Plan, whole
from evenlag.model.problem import NOBODY
from evenlag.search.construct.fresh import relabel
from evenlag.search.exact.relaxations import Bounds
from evenlag.search.improve.kernel import compiled
from evenlag.search.incumbent import Bound, Candidate, Exhausted, Finding, Incumbent
from evenlag.search.stage import Stage
from evenlag.search.task import Task

SMALL = 2**62  # below this, all values of a plan fit 64 bits
MOST_SHAPES = 64  # lists that are cached

Plans = NDArray[Any]  # (N, P): the member of each assignable partition in each plan

_lists: OrderedDict[tuple[Any, ...], Plans] = OrderedDict()
_held = Lock()


def allowed_plans(rule: CountRule) -> Plans:
    """Return all plans that the rule allows, in a fixed order. The list is cached for other groups of this shape."""
    key = _shape(rule)
    with _held:
        if key in _lists:
            _lists.move_to_end(key)
            return _lists[key]
    plans = _listed(rule)
    with _held:
        _lists[key] = plans
        if len(_lists) > MOST_SHAPES:
            _lists.popitem(last=False)
    return plans


def _shape(rule: CountRule) -> tuple[Any, ...]:
    """Return a key of everything that the allowed plans depend on."""
    problem, ranks, topics = rule.problem, rule.ranks, rule.topic_bounds
    arrays = [problem.allowed, problem.topic_of, problem.pins, rule.member_bounds.lo, rule.member_bounds.hi]
    arrays += [topics.lo, topics.hi] if topics is not None else []
    arrays += [ranks.base, ranks.steps] if ranks is not None else []
    total = None if ranks is None else ranks.total
    return (problem.allowed.shape, topics is None, rule.topic_distance, total, *(array.tobytes() for array in arrays))


def _listed(rule: CountRule) -> Plans:
    problem = rule.problem
    topics, members = problem.allowed.shape
    takers = [np.flatnonzero(row) for row in problem.allowed]
    here = np.flatnonzero(problem.assignable)
    choices = [takers[problem.topic_of[p]] if problem.pins[p] == NOBODY else problem.pins[p : p + 1] for p in here]
    several = [p for p, choice in enumerate(choices) if len(choice) > 1]  # an array has at most 64 axes
    sizes = [len(choices[p]) for p in several]
    places = np.indices(sizes, dtype=np.int32).reshape(len(sizes), prod(sizes))
    plans = np.array([[choice[0] for choice in choices]]).repeat(prod(sizes), axis=0)
    for p, place in zip(several, places, strict=True):
        plans[:, p] = choices[p][place]
    counts = np.zeros((len(plans), topics, members), dtype=np.int64)
    for p, topic in enumerate(problem.topic_of[here].tolist()):
        counts[np.arange(len(plans)), topic, plans[:, p]] += 1
    return plans[rule.keeps(counts)].astype(np.min_scalar_type(members))


def best_plan(plans: Plans, task: Task) -> tuple[Plan, Bound] | None:
    """Return the best of all plans and the bound it proves; None if no plan keeps the budgets and the ceiling."""
    problem, goal, futures = task.problem, task.goal, task.problem.judged_by
    here, active = np.flatnonzero(problem.assignable), np.flatnonzero(problem.active)
    weights = problem.scenario_weights or (Fraction(1),)
    shares = [problem.load_unit * weight / sum(weights) for weight in weights]
    if goal.across == Across.WORST:
        shares = [problem.load_unit for _ in weights]
    prices = [Fraction(pair.price) for pair in task.costs]
    common = lcm(*(price.denominator for price in prices), *(share.denominator for share in shares))
    per_load = [int(share * common) for share in shares]
    counted = lcm(*(weight.denominator for weight in weights))
    per_square = [int(weight * counted) for weight in weights]
    factors = problem.load_factors[active]
    most = max(1, *(future.total_lag for future in futures))  # with 1, the factors themselves fit too
    largest = most * int(max(factors)) * max(sum(per_load), most * sum(per_square))
    costs = [pair.costs.at(here, plans).sum(axis=1) for pair in task.costs]
    priced = zip(costs, task.costs, strict=True)
    largest += sum(int(cost.max(initial=1)) * int(pair.price * common) for cost, pair in priced)
    number = np.int64 if largest < SMALL else object
    loads_count = goal.kind is not None
    bases, uneven, ceilings = [], [], []
    for future, per_one, squared in zip(futures, per_load, per_square, strict=True):
        lags = future.lags[here].astype(number)
        loads = np.stack([(plans == m) @ lags for m in active], axis=1)
        scaled = loads * factors.astype(number)
        highest = scaled.max(axis=1)
        bases.append((highest - (scaled.min(axis=1) if task.spread_matters else 0)) * (per_one if loads_count else 0))
        if goal.ceiling is not None:
            ceilings.append(highest <= floor(goal.ceiling / problem.load_unit))
        uneven.append((loads * scaled).sum(axis=1) * squared)
    base = np.max(bases, axis=0) if goal.across == Across.WORST else np.sum(bases, axis=0)
    owner = problem.owner[here]
    moves = ((plans != owner) & (owner != NOBODY)).sum(axis=1)
    values, keeps = base, np.ones(len(plans), dtype=bool)
    for cost, pair in zip(costs, task.costs, strict=True):
        values = values + cost.astype(number) * int(pair.price * common)
        keeps = keeps if pair.budget is None else keeps & (cost <= pair.budget)
    kept = np.flatnonzero(np.logical_and.reduce([keeps, *ceilings]))
    if not len(kept):
        return None
    ties = kept[values[kept] == values[kept].min()]
    spent = np.zeros(len(plans), number)
    for cost, pair in zip(costs, task.costs, strict=True):
        spent = spent + cost if pair.budget is not None and loads_count else spent
    judged = [spent, np.sum(uneven, axis=0), moves]
    best = min(zip(*(each[ties].tolist() for each in judged), ties.tolist(), strict=True))[-1]
    member_of = np.full(len(problem.lags), NOBODY, dtype=np.int32)
    member_of[here] = plans[best]
    plan = Plan(problem, member_of)
    certificate = all_plans(len(plans))
    return plan, Bound(
        goal.value(plan), whole(Fraction(int(base.min()), common)), int(moves.min()), certificate=certificate
    )


@dataclass(frozen=True)
class Enumeration(Stage):
    """Enumerate all plans, as a stage.

    Attributes
    ----------
    most : int
        Largest number of ways to assign the partitions without regard to counts, times scenarios.
    most_counts : int
        Largest number of counts to compute: ways times topics times members.
    """

    most: int = 65_536
    most_counts: int = 1_000_000
    name: str = "enumeration"
    handles: ClassVar[frozenset[str]] = EVERY_TERM

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Return True if there are few ways to assign the partitions."""
        problem = task.problem
        takers = problem.allowed.sum(axis=1)[problem.topic_of[problem.pins == NOBODY]]
        several = takers[takers > 1]
        if len(several) >= self.most.bit_length():
            return False
        ways: int = prod(several.tolist())
        return ways * len(problem.judged_by) <= self.most and ways * problem.allowed.size <= self.most_counts

    def run(self, task: Task, _best: Incumbent) -> Iterator[Finding]:
        """Yield the best plan and the proof, after which nothing is left to do."""
        found = best_plan(allowed_plans(task.rule), task)
        if found is not None:
            plan, proof = found
            yield Candidate(plan, from_current=True)  # chosen by the tie rule: a rerun from this plan finds it again
            yield proof
        yield Exhausted()


# ---- number partitioning ---------------------------------------------------------------------------------------------

UNKNOWN = 2**62  # above every objective
SUMS_PER_SECOND = 2e7

_compiled: Any = compiled("evenlag.search.exact._partition", version=2)


@dataclass(frozen=True)
class NumberPartitioning(Stage):
    """Partition numbers, as a stage.

    Attributes
    ----------
    most : int
        Largest number of partitions.
    least_ways : int
        Least number of ways to assign them without regard to counts; below it, enumeration is as fast.
    """

    most: int = 40
    least_ways: int = 4_096
    name: str = "number partitioning"

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Return True if only loads count, and partitions are identical but for lags, in a small group."""
        problem, rule = task.problem, task.rule
        members, partitions = int(problem.active.sum()), int(problem.assignable.sum())
        if partitions > self.most or members**partitions <= self.least_ways:
            return False
        if _compiled is None or problem.futures or task.moves_matter or (problem.pins != NOBODY).any():
            return False
        largest = problem.total_lag * members * int(max(problem.load_factors)) * int(max(problem.relative_weights))
        fitting = problem.lags.dtype == np.int64 and largest < UNKNOWN
        alike = rule.interchangeable and rule.ranks is None
        in_time = 2 ** (partitions / 2) < SUMS_PER_SECOND * task.clock.allowance()
        return fitting and alike and (in_time or not task.clock.ended())

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Yield an optimal or improving plan, and a bound."""
        problem = task.problem
        items = np.flatnonzero(problem.assignable)
        items = items[np.argsort(-problem.lags[items], kind="stable")]
        held = best.most_held if best.found and problem.equal_weights else len(items)
        members, kinds = _rows_of_kinds(task.rule, held)
        unit = problem.load_unit * problem.lag_unit
        yield Bound(task.least_base, task.least_base, by=Bounds.name, certificate=by_loads([task.bounds], problem))
        least = ceil(best.bound / unit)
        known = int(best.value / unit) if best.found else UNKNOWN
        ends = ceil(task.bounds.max_load_lb / unit), floor(task.bounds.min_load_ub / unit)
        takers, bound, _ = _compiled.partition(
            problem.lags[items] // problem.lag_unit, kinds, task.spread_matters, *ends, least, known, task.clock.stop()
        )
        if takers is not None:
            member_of = np.full(len(problem.lags), NOBODY, dtype=np.int32)
            member_of[items] = members[np.frombuffer(takers, np.int32)]
            yield Candidate(relabel(Plan(problem, member_of), task.rule))
        if bound > least:
            yield Bound(bound * unit, bound * unit, certificate=searched(task.bounds))


def _rows_of_kinds(rule: CountRule, held: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the active members, lightest first, and a row for each kind: members, factor, weight, range of counts.

    In plans of interest no member has more than `held` partitions.
    """
    problem, counts = rule.problem, rule.total_bounds
    active = np.flatnonzero(problem.active)
    columns = (
        -problem.load_factors,
        problem.relative_weights,
        counts.lo,
        np.maximum(np.minimum(counts.hi, held), counts.lo),
    )
    rows = np.column_stack([column[active].astype(np.int64) for column in columns])
    kinds, kind_of, members = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    kinds[:, 0] *= -1
    return active[np.argsort(kind_of.ravel(), kind="stable")], np.column_stack([members, kinds])
