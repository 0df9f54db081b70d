"""Plans by classes of members: which class gets which partitions, then each class shares out its own evenly.

What a class gets follows a linear program's fractions (`search/exact/class_program.py`), rounded by a min-cost flow so
that counts stay possible. Swaps and shifts between classes, within what the fractions cost, bring the classes' mean
loads together. Members of a class are alike, so each class is equalized as a group of its own, for one window of loads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import NO_CAP, NOBODY, Bools, Index, Whole
from evenlag.model.balance import CountRule, count_rule
from evenlag.model.bounds import load_bounds
from evenlag.model.flow import CountBounds, CountNetwork
from evenlag.model.origin import NO_ORIGIN
from evenlag.model.pair_data import NO_PAIR_DATA
from evenlag.model.pair_flow import cheapest_plan
from evenlag.model.plan import Number, Plan
from evenlag.model.problem import Problem
from evenlag.model.reduced_lags import reduced_lags, reductions
from evenlag.search.clock import Turn
from evenlag.search.construct.fresh import fresh_plan
from evenlag.search.construct.relabel import relabel
from evenlag.search.improve.class_search import ClassSearch, Floats, SplitCost
from evenlag.search.improve.equal_cost import equalize_at_cost
from evenlag.search.improve.equalize import equalize
from evenlag.search.task import Task

PARTS = 1000  # of a share, when it is rounded
NEAR = 1e-6  # how closely floats are looked at
WAYS = 5  # to reduce lags
TRIES = 6  # to bring classes together
SHAKEN = 6  # swaps at random before classes are brought together again
STEPS = 20  # for each member of a class, of the first turn

Window = tuple[Number, Number]


class ByClass:
    """Plans of a task by classes of members.

    Parameters
    ----------
    task : Task
    members : list of int64 arrays
        Those of each class.
    """

    def __init__(self, task: Task, members: list[Whole]) -> None:
        self._task, self._members = task, members
        problem, rule = task.problem, task.rule
        self._lags = problem.lags
        self._classes = _as_members(problem, members)
        self._rule = CountRule(
            rule.balance, rule.slack,
            None if rule.topic_bounds is None else _summed(rule.topic_bounds, members), rule.topic_distance,
            _summed(rule.member_bounds, members), None, CountNetwork(self._classes),
        )  # fmt: skip
        self._free = problem.assignable & (problem.pins == NOBODY)
        self._costs = [
            np.stack([pair.costs[:, each].min(axis=1) for each in members], axis=1) for pair in task.goal.pairs
        ]

    def plans(
        self, shares: NDArray[np.float64], budgets: list[int], lowest: Number, stop: Callable[[], bool], seed: int
    ) -> Iterator[Plan]:
        """Yield plans near to these shares (P, K) that cost about so much of each pair cost, each better than before.

        Parameters
        ----------
        shares : float array (P, K)
        budgets : list of int
            For each pair cost of the objective.
        lowest : number
            The lowest load that these shares may leave, in messages per weight.
        stop : callable
            Asked before each step.
        seed : int
            Another one than the task's shakes what the fractions are rounded to.
        """
        task = self._task
        low = min(lowest, task.bounds.min_load_ub) if task.spread_matters else 0
        self._lags = reduced_lags(task.rule, floor(low)) if task.spread_matters else task.problem.lags
        window = self._window(shares, low)
        split = self._split(shares, budgets, window, stop, seed)
        if split is None:
            return
        parts = [_Part(task, split == k, members) for k, members in enumerate(self._members)]
        steps = STEPS
        while True:
            member_of = np.full(len(split), NOBODY, dtype=np.int32)
            for part in parts:
                member_of[part.chosen] = part.share_out(window, Turn(steps * len(part.members), stop), seed)
            yield Plan(task.problem, member_of)
            if stop() or all(part.done for part in parts):
                return
            steps, seed = 2 * steps, seed + 1

    def _split(
        self, shares: NDArray[np.float64], budgets: list[int], window: Window, stop: Callable[[], bool], seed: int
    ) -> Index | None:
        """Return the class of each partition."""
        away = np.rint((1 - shares.clip(0, 1)) * PARTS).astype(np.int64)
        rounded = cheapest_plan(self._rule, away, self._task.clock.room(found=True))
        if rounded is None:
            return None
        task, unit = self._task, float(self._task.problem.load_unit)
        costs = [
            SplitCost(table, float(pair.price) / unit, most)
            for pair, table, most in zip(task.goal.pairs, self._costs, budgets, strict=True)
        ]
        search = ClassSearch(
            self._rule, rounded.member_of.astype(np.int64), *self._measures(floor(window[0])),
            (float(window[0]) / unit, float(window[1]) / unit), costs, self._free, seed,
        )  # fmt: skip
        if seed != task.seed:
            search.shake(SHAKEN)
        search.run(Turn(STEPS * len(self._members), stop))
        class_of = search.class_of.astype(np.int32)
        pins = np.where(self._beside_oversized(window[0]), class_of, self._classes.pins).astype(np.int32)
        split = Plan(replace(self._classes, lags=self._lags, pins=pins), class_of)
        return self._evened(split, window, Turn(STEPS * len(self._members), stop), seed)

    def _measures(self, low: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Return lags, what an oversized partition has beside it, reduced lags, and the weights of classes."""
        task, problem = self._task, self._task.problem
        lags = problem.lags.astype(np.float64)
        none = np.zeros((0, len(lags)))
        sizes = [len(members) / int(problem.load_factors[members[0]]) for members in self._members]
        ways = (reductions(task.rule, low, WAYS) or [(0, low)]) if task.spread_matters else []
        reduced = np.array([np.clip(lags, *limits) for limits in ways]) if ways else none
        others, ascending = self._others, np.argsort(lags, kind="stable")
        beside = []
        if others and problem.equal_weights and lags[ascending[-1]] > low:
            places = np.linspace(others, others * (len(sizes) + 1), WAYS).astype(int)
            for t in np.unique(lags[ascending[np.minimum(places, len(lags) - 1)]]):
                beside.append(np.minimum(lags - t, 0))
                beside[-1][ascending[-1]] = lags[ascending[-1]] + others * t
        return lags, np.array(beside) if beside else none, reduced, np.array(sizes)

    @property
    def _others(self) -> int:
        """How many partitions whoever holds one must hold beside it."""
        rule = self._task.rule
        return max(int(rule.total_bounds.lo[self._task.problem.active].min()) - 1, 0)

    def _beside_oversized(self, low: Number) -> Bools:
        """Return oversized partitions, and the smallest of all, which go with them."""
        lags = self._task.problem.lags
        chosen: Bools = lags > low
        if chosen.any():
            chosen[np.argsort(lags, kind="stable")[: self._others * (len(self._members) + 1)]] = True
        return chosen

    def _evened(self, split: Plan, window: Window, stop: Callable[[], bool], seed: int) -> Index:
        """Bring the classes' mean loads to the window, at equal cost, then what their members can come to at least.

        A class with an oversized partition and few small ones for its companions loses some of what it has; it gets
        more then.
        """
        sizes = [len(members) for members in self._members]
        scale = Fraction(sum(sizes), len(sizes))  # weights have mean 1
        best, lowest, level = split.member_of, Fraction(-1), 0
        beside = [0] * len(sizes)
        for attempt in range(TRIES + 1):
            if attempt:
                of_classes = (window[0] + level) * scale, (window[1] + level) * scale
                split = equalize_at_cost(split, self._costs, of_classes, stop, seed, beside=beside)
            if not (self._task.spread_matters and self._task.problem.equal_weights):
                if attempt:
                    return split.member_of
                continue
            parts = [_Part(self._task, split.member_of == k, members) for k, members in enumerate(self._members)]
            able = [floor(part.lowest) for part in parts]
            if min(able) > lowest:
                best, lowest = split.member_of, Fraction(min(able))
            if min(able) >= window[0] or stop():
                break
            lost = [int(load) - size * low for load, size, low in zip(split.loads, sizes, able, strict=True)]
            level = max(-(-loss // size) for loss, size in zip(lost, sizes, strict=True))
            beside = [level * size - loss for loss, size in zip(lost, sizes, strict=True)]
        return best

    def _window(self, shares: NDArray[np.float64], low: Number) -> Window:
        """Return between which loads these shares let all members be, in messages per weight."""
        problem = self._task.problem
        factors = [int(problem.load_factors[members[0]]) / len(members) for members in self._members]
        high = float((problem.lags.astype(np.float64) @ shares * factors).max() * float(problem.load_unit))
        return low, max(Fraction(self._task.bounds.max_load_lb), Fraction(ceil(high - NEAR)))


class _Part:
    """A class with its partitions, as a group of its own.

    Attributes
    ----------
    chosen : bool array (P,)
    members : int64 array
    done : bool
        Whether all loads are in the window.
    """

    def __init__(self, task: Task, chosen: NDArray[np.bool_], members: Whole) -> None:
        self.chosen, self.members = chosen, members
        self._problem = _part(task.problem, chosen, members)
        self._rule = count_rule(self._problem, task.rule.balance)
        self._bounds = load_bounds(self._rule)
        self._plan: Plan | None = None  # made when it is needed
        self.done = False

    @property
    def lowest(self) -> Number:
        """The most that the lowest load can come to, as far as is known, in messages per weight."""
        return self._bounds.min_load_ub

    def share_out(self, window: Window, stop: Callable[[], bool], seed: int) -> Index:
        """Bring loads to the window, or as near as they can come, and return who has which of the partitions."""
        window = min(window[0], floor(self.lowest)), max(window[1], ceil(self._bounds.max_load_lb))
        if not self.done:
            self._plan = equalize(self._plan or fresh_plan(self._rule), self._rule, window, stop, seed)
        assert self._plan is not None
        loads, unit = self._plan.loads * self._problem.load_factors, self._problem.load_unit
        self.done = bool(min(loads) * unit >= window[0] and max(loads) * unit <= window[1])
        return self.members[relabel(self._plan, self._rule).member_of].astype(np.int32)


def _as_members(problem: Problem, classes: list[Whole]) -> Problem:
    """Return the problem whose members are classes, of the weight of all their members."""
    class_of = np.full(len(problem.members) + 1, NOBODY, dtype=np.int32)
    for k, members in enumerate(classes):
        class_of[members] = k
    weights = tuple(Fraction(int(problem.relative_weights[members[0]]) * len(members)) for members in classes)
    return replace(
        _bare(problem, len(classes)),
        subscribed=np.stack([problem.allowed[:, members].any(axis=1) for members in classes], axis=1),
        weights=weights,
        pins=class_of[problem.pins],
        owner=np.full_like(problem.owner, NOBODY),
    )


def _part(problem: Problem, chosen: NDArray[np.bool_], members: Whole) -> Problem:
    """Return the problem of some partitions and members."""
    place = np.full(len(problem.members) + 1, NOBODY, dtype=np.int32)
    place[members] = np.arange(len(members))
    topics, topic_of = np.unique(problem.topic_of[chosen], return_inverse=True)
    return replace(
        _bare(problem, len(members)),
        topics=tuple(problem.topics[t] for t in topics),
        topic_of=topic_of.astype(np.int32),
        partition_ids=problem.partition_ids[chosen],
        lags=problem.lags[chosen],
        subscribed=problem.subscribed[np.ix_(topics, members)],
        weights=tuple(problem.weights[m] for m in members),
        caps=problem.caps[members],
        owner=place[problem.owner[chosen]],
        pins=place[problem.pins[chosen]],
    )


def _bare(problem: Problem, members: int) -> Problem:
    """Return the problem with that many members and nothing that belongs to its own."""
    return replace(
        problem,
        members=tuple(map(str, range(members))),
        caps=np.full(members, NO_CAP, dtype=np.int64),
        generations=(None,) * members,
        pairs=NO_PAIR_DATA,
        origin=NO_ORIGIN,
    )


def _summed(bounds: CountBounds, classes: list[Whole]) -> CountBounds:
    """Return bounds of counts of classes: the sums of their members'."""
    lo, hi = (
        np.stack([side[..., members].sum(axis=-1) for members in classes], axis=-1) for side in (bounds.lo, bounds.hi)
    )
    return CountBounds(lo, hi)
