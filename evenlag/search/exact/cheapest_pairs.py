"""Costs of pairs as a stage: the least that they come to, by a min-cost flow, and plans that cost no more."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from evenlag.model.arrays import Ints, leaving
from evenlag.model.objective import EVERY_TERM
from evenlag.model.pair_costs import total
from evenlag.model.pair_flow import combined
from evenlag.model.plan import Number, Plan, whole
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
