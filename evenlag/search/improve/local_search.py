"""Local search: swap two partitions of two members, or shift one to the other, as long as the plan gets better.

The swap and shift neighbourhoods of generalized assignment, best improvement for each pair of members. Better means
what `Objective.key` means: a lower objective, then lower Σ load² / weight, then fewer moves. Counts stay within the
rule and moves within the budget. The result is a local optimum for single swaps and shifts unless the search was
stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import floor, lcm
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evenlag.model.balance import CountRule
from evenlag.model.objective import EVERY_TERM, Objective, ObjectiveKind
from evenlag.model.plan import Plan, by_member
from evenlag.model.problem import NOBODY
from evenlag.search.incumbent import Candidate, Finding, Incumbent
from evenlag.search.task import Task

Column = NDArray[Any]

MOST_SCREENED = 5_000_000  # pairs of one member's partitions with all others that are looked at together


def local_search(plan: Plan, rule: CountRule, objective: Objective, stop: Callable[[], bool]) -> Plan:
    """Return a plan no worse than `plan`.

    Parameters
    ----------
    plan : Plan
        Must keep the rule and the budget of moves.
    rule : CountRule
    objective : Objective
    stop : callable
        Asked before each pair of members.
    """
    search = _LocalSearch(plan, rule, objective)
    while search.sweep(stop):
        pass
    return Plan(plan.problem, search.member_of)


@dataclass
class _Pair:
    """A cost of pairs: its table (P, M), its price in units of change, what the plan costs, and the budget."""

    costs: Column
    price: int
    used: int
    budget: int | None

    def change(self, p: Column, source: int, target: int) -> Column:
        """Return what it costs more to have each partition on the target; 0 for `NOBODY`."""
        change: Column = np.where(p == NOBODY, 0, self.costs[p, target] - self.costs[p, source])
        return change


@dataclass(frozen=True)
class _Exchange:
    """A swap or a shift: the partitions that go each way (or NOBODY), and what it changes of the objective."""

    give: int
    take: int
    change: int


class _LocalSearch:
    """The state of the search; loads are scaled by `load_factors` so that members compare."""

    def __init__(self, plan: Plan, rule: CountRule, objective: Objective) -> None:
        problem = plan.problem
        self.problem, self.rule, self.objective = problem, rule, objective
        self.member_of = plan.member_of.copy()
        self.active = np.flatnonzero(problem.active)
        prices = [
            Fraction(price) / problem.load_unit
            for price in (objective.stickiness, *(pair.price for pair in objective.pairs))
        ]
        unit_cost = lcm(*(price.denominator for price in prices))
        self.move_cost = int(prices[0] * unit_cost)
        self.unit_cost = unit_cost if objective.kind is not None else 0  # loads do not count, but for the ceiling
        self.pairs = [
            _Pair(pair.costs, int(price * unit_cost), pair.of(plan.member_of), pair.budget)
            for pair, price in zip(objective.pairs, prices[1:], strict=True)
        ]
        self.ceiling = None if objective.ceiling is None else floor(objective.ceiling / problem.load_unit)
        largest = 4 * max(problem.total_lag, 1) * max((int(f) for f in problem.load_factors), default=1)
        largest = largest * unit_cost + len(problem.lags) * self.move_cost
        fits = largest + sum(pair.price * int(pair.costs.max(initial=0)) for pair in self.pairs) * 4 < 2**62
        self.dtype: Any = np.int64 if fits else object
        self.lags, self.factors = problem.lags.astype(self.dtype), problem.load_factors.astype(self.dtype)
        self.loads = plan.loads.astype(self.dtype)
        self.counts, self.topic_counts = plan.counts.copy(), plan.topic_counts.copy()
        self.moves = plan.moves
        self.held = by_member(self.member_of, len(problem.members), problem.pins == NOBODY)
        # A pair need not be looked at again before something that its exchanges depend on has changed.
        self.version = [0] * len(problem.members)
        self.extremes = 0
        free = objective.stickiness == 0 and objective.max_moves is None and not objective.terms
        self.pair_is_all = problem.equal_weights and free
        self.owned = bool((problem.owner != NOBODY).any())
        biggest = max((len(items) for items in self.held), default=0)
        self.screens = self.pair_is_all and biggest * len(problem.lags) <= MOST_SCREENED
        self.seen: dict[tuple[int, int], tuple[Any, ...]] = {}

    def sweep(self, stop: Callable[[], bool]) -> bool:
        """Look at all pairs that may hold something better; say whether another sweep is worth it."""
        better = False
        for heavy, light in self._pairs():
            if stop():
                return False
            found = self._best_exchange(heavy, light)
            if found is None:
                continue
            self._carry_out(heavy, light, found)
            better = True
            if found.change < 0:  # the extremes have moved: start again with them
                return True
        return better

    def _pairs(self) -> Iterator[tuple[int, int]]:
        """The pairs that changed since they were looked at, the heaviest with the lightest first."""
        scaled = (self.loads * self.factors)[self.active].astype(np.float64)
        order = self.active[np.lexsort((self.active, scaled))].tolist()
        top, bottom = order[-1], order[0]
        pairs = self._screened(order) if self.screens else _outer_first(order)
        for light, heavy in _extremes_first(order) if self.objective.terms else pairs:
            around = self.extremes if not self.pair_is_all or heavy == top or light == bottom else -1
            state = (self.version[heavy], self.version[light], around, self._left())
            if self.seen.get((heavy, light)) != state:
                self.seen[heavy, light] = state
                yield heavy, light

    def _screened(self, order: list[int]) -> Iterator[tuple[int, int]]:
        """The pairs with an exchange that lets Σ load² fall, as far as a look at all partitions at once can tell.

        It falls if what is carried over lies between 0 and the difference of the loads.
        """
        count_bounds, topics = self.rule.topic_bounds, self.problem.topic_of
        theirs = np.concatenate([self.held[m] for m in order]) if order else np.zeros(0, dtype=np.int64)
        for heavy in reversed(order):
            ours, holder = self.held[heavy], self.member_of[theirs]
            give, gap = self.lags[ours][:, None], self.loads[heavy] - self.loads[holder]
            change = give - self.lags[theirs]
            fits = (change >= 0) & (change <= gap) if self.owned else (change > 0) & (change < gap)
            if count_bounds is not None and not self.rule.interchangeable:
                loose = [
                    self.topic_counts[topics[items], member] > count_bounds.lo[topics[items], member]
                    for items, member in ((ours, heavy), (theirs, holder))
                ]
                fits &= np.equal.outer(topics[ours], topics[theirs]) | np.logical_and.outer(*loose)
            if self.rule.topic_distance:
                fits[:] = gap >= 0
            found = np.zeros(len(self.held), dtype=bool)
            found[holder[fits.any(axis=0)]] = True
            if self.counts[heavy] > self.rule.member_bounds.lo[heavy]:
                found |= (self.counts < self.rule.member_bounds.hi) & (self.loads <= self.loads[heavy])
            found[heavy] = False
            yield from ((light, heavy) for light in order if found[light])

    def _budget_left(self) -> int:
        budget = self.objective.max_moves
        return -1 if budget is None else min(budget, len(self.lags)) - self.moves

    def _left(self) -> tuple[int, ...]:
        """Return what is left of each budget; a pair need be looked at again when one has changed."""
        return (self._budget_left(), *(pair.budget - pair.used for pair in self.pairs if pair.budget is not None))

    def _carry_out(self, a: int, b: int, exchange: _Exchange) -> None:
        for p, source, target in ((exchange.give, a, b), (exchange.take, b, a)):
            if p == NOBODY:
                continue
            self.member_of[p] = target
            t = self.problem.topic_of[p]
            self.topic_counts[t, source] -= 1
            self.topic_counts[t, target] += 1
            self.counts[[source, target]] += [-1, 1]
            self.loads[source] -= self.lags[p]
            self.loads[target] += self.lags[p]
            self.held[source] = self.held[source][self.held[source] != p]
            self.held[target] = np.sort(np.append(self.held[target], p))
            owner = self.problem.owner[p]
            self.moves += int(owner == source) - int(owner == target)
            for pair in self.pairs:
                pair.used += int(pair.costs[p, target]) - int(pair.costs[p, source])
        self.version[a] += 1
        self.version[b] += 1
        self.extremes += exchange.change != 0

    def _best_exchange(self, a: int, b: int) -> _Exchange | None:
        """Look at every exchange of the pair at once: rows are a's partitions and none, columns b's and none."""
        give, take = np.append(self.held[a], NOBODY), np.append(self.held[b], NOBODY)
        row, column = np.nonzero(self._allowed(a, b, give, take))
        p, q = give[row], take[column]
        moves = self._move_change(p, a, b) + self._move_change(q, b, a)
        if self.objective.max_moves is not None:
            fits = moves <= self._budget_left()
            p, q, moves = p[fits], q[fits], moves[fits]
        costs = [pair.change(p, a, b) + pair.change(q, b, a) for pair in self.pairs]
        delta = self._lag(p) - self._lag(q)
        kept = self._within(delta, costs, a, b)
        if kept is not None:
            p, q, moves, delta = p[kept], q[kept], moves[kept], delta[kept]
            costs = [cost[kept] for cost in costs]
        if not len(p):
            return None
        load_a, load_b, factor_a, factor_b = self.loads[a], self.loads[b], self.factors[a], self.factors[b]
        new_a, new_b = (load_a - delta) * factor_a, (load_b + delta) * factor_b
        others = self.active[(self.active != a) & (self.active != b)]
        scaled = self.loads[others] * self.factors[others]
        olds = [load_a * factor_a, load_b * factor_b, *((scaled.max(), scaled.min()) if len(others) else ())]
        high, low = np.maximum(new_a, new_b), np.minimum(new_a, new_b)
        if len(others):
            high, low = np.maximum(high, scaled.max()), np.minimum(low, scaled.min())
        change = self.unit_cost * (high - max(olds)) + self.move_cost * moves.astype(self.dtype)
        for pair, cost in zip(self.pairs, costs, strict=True):
            change = change + pair.price * cost.astype(self.dtype)
        if self.objective.kind == ObjectiveKind.SPREAD:
            change = change - self.unit_cost * (low - min(olds))
        # Σ load² / weight changes by delta · slope; slope is exact, so the sign of the product is.
        slope = factor_a * (delta - 2 * load_a) + factor_b * (delta + 2 * load_b)
        uneven = delta.astype(np.float64) * slope.astype(np.float64)
        best = np.flatnonzero(change == change.min())
        best = best[uneven[best] == uneven[best].min()]
        at = best[moves[best].argmin()]
        if (change[at], uneven[at], moves[at]) >= (0, 0, 0):
            return None
        return _Exchange(int(p[at]), int(q[at]), int(change[at]))

    def _within(self, delta: Column, costs: list[Column], a: int, b: int) -> NDArray[np.bool_] | None:
        """Return which exchanges keep the budgets of pair costs and the ceiling; None where there is neither."""
        kept = [
            cost <= max(pair.budget - pair.used, 0)
            for pair, cost in zip(self.pairs, costs, strict=True)
            if pair.budget is not None
        ]
        if self.ceiling is not None:
            kept.append((self.loads[a] - delta) * self.factors[a] <= self.ceiling)
            kept.append((self.loads[b] + delta) * self.factors[b] <= self.ceiling)
        return np.logical_and.reduce(kept) if kept else None

    def _lag(self, p: Column) -> Column:
        return np.where(p == NOBODY, 0, self.lags[p]).astype(self.dtype)

    def _move_change(self, p: Column, source: int, target: int) -> Column:
        owner = np.where(p == NOBODY, NOBODY, self.problem.owner[p])
        change: Column = (owner == source).astype(np.int64) - (owner == target)
        return change

    def _allowed(self, a: int, b: int, give: Column, take: Column) -> NDArray[np.bool_]:
        """Which exchanges keep subscriptions and counts."""
        topic_of, subscribed = self.problem.topic_of, self.problem.allowed
        t, u = topic_of[give], topic_of[take]
        allowed: NDArray[np.bool_] = np.logical_and.outer(
            (give == NOBODY) | subscribed[t, b], (take == NOBODY) | subscribed[u, a]
        )  # fmt: skip
        allowed[-1, -1] = False
        allowed[:-1, -1] &= self.rule.may_shift(self.counts, a, b)
        allowed[-1, :-1] &= self.rule.may_shift(self.counts, b, a)
        if self.rule.topic_bounds is not None:
            off_give, off_take = self._distance_change(t, a, b), self._distance_change(u, b, a)
            off_give[-1] = off_take[-1] = 0
            same = np.equal.outer(t, u)
            same[-1, :] = same[:, -1] = False
            allowed &= same | (np.add.outer(off_give, off_take) <= self._distance_left())
        return allowed

    def _distance_change(self, topics: Column, source: int, target: int) -> Column:
        count_bounds = self.rule.topic_bounds
        assert count_bounds is not None

        def off(counts: Column, member: int) -> Column:
            lo, hi = count_bounds.lo[topics, member], count_bounds.hi[topics, member]
            outside: Column = np.maximum(lo - counts, 0) + np.maximum(counts - hi, 0)
            return outside

        at_source, at_target = self.topic_counts[topics, source], self.topic_counts[topics, target]
        change: Column = off(at_source - 1, source) - off(at_source, source)
        return change + off(at_target + 1, target) - off(at_target, target)

    def _distance_left(self) -> int:
        count_bounds, allowed = self.rule.topic_bounds, self.rule.topic_distance
        return allowed - count_bounds.distance(self.topic_counts) if count_bounds is not None and allowed else 0


def _outer_first(order: list[int]) -> Iterator[tuple[int, int]]:
    """All pairs of an ascending order, those farthest apart first."""
    for gap in range(len(order) - 1, 0, -1):
        yield from zip(order, order[gap:], strict=False)


def _extremes_first(order: list[int]) -> Iterator[tuple[int, int]]:
    """All pairs of an ascending order, those with the last or the first of it before all others."""
    for light, heavy in zip(order[:-1], reversed(order[1:]), strict=True):
        yield light, order[-1]
        yield order[0], heavy
    yield from _outer_first(order[1:-1])


@dataclass(frozen=True)
class LocalSearch:
    """Single swaps and shifts."""

    name: str = "local search"
    handles: ClassVar[frozenset[str]] = EVERY_TERM

    def applies(self, _task: Task, best: Incumbent) -> bool:
        """For every group."""
        return best.found

    def run(self, task: Task, best: Incumbent, share: float) -> Iterator[Finding]:
        """Go on from the best plan to a local optimum."""
        from_current = best.from_current
        plan = local_search(best.plan, task.rule, task.goal, task.clock.stop(share))
        yield Candidate(plan, from_current=from_current)
