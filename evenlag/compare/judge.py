"""Compare plans of one group by spread and the requested pair costs, under any balance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evenlag.model.asked_terms import resolve_objective
from evenlag.model.balance import CountRule
from evenlag.model.check import plan_violation
from evenlag.model.objective import MOVED_SIZE, MOVES, Objective, ObjectiveKind
from evenlag.model.pair_costs import known_costs
from evenlag.model.plan import Number, Plan
from evenlag.model.units import gathered
from evenlag.search.cache import SolveCache
from evenlag.search.options import SolveOptions

OF_MOVES = (MOVES, MOVED_SIZE)

Key = tuple[tuple[int, ...], Number, int]
"""Units of the criteria that come first, then the objective, then moves."""


def without_moves(options: SolveOptions, **others: Any) -> SolveOptions:
    """Return the options with moves made free and everything else unchanged."""
    return replace(
        options,
        stickiness=0,
        max_moves=None,
        max_moved=None,
        first=tuple(name for name in options.first if name not in OF_MOVES),
        prices={name: price for name, price in (options.prices or {}).items() if name not in OF_MOVES},
        budgets={name: most for name, most in (options.budgets or {}).items() if name not in OF_MOVES},
        **others,
    )


class Judge:
    """Compare plans of one group, with moves free.

    Parameters
    ----------
    options : SolveOptions
        Prices, budgets, ceiling and criteria apply, except those on moves.
    """

    def __init__(self, cache: SolveCache, options: SolveOptions) -> None:
        self.problem = cache.problem
        self._of_units = cache if cache.problem.units is cache.problem else SolveCache(cache.problem.units)
        self._options = without_moves(options, objective=ObjectiveKind.SPREAD)
        self._goals: dict[str, Objective] = {}
        self.costs = known_costs(self.problem)

    def rule(self, balance: str) -> CountRule:
        """Return the count rule; if partitions go together, it counts units."""
        return self._of_units.rule(balance)

    def goal(self, balance: str) -> Objective:
        """Return the objective, with costs of pairs per partition.

        Raises
        ------
        InfeasibleError
            The members' capacity is too small.
        """
        if balance not in self._goals:
            goal = resolve_objective(self.rule(balance), ObjectiveKind.SPREAD, 0, None, asked=self._options.asked)
            pairs = (replace(pair, costs=self.costs[pair.name]) for pair in goal.pairs if pair.name in self.costs)
            self._goals[balance] = replace(goal, pairs=tuple(pairs))
        return self._goals[balance]

    def units_of(self, plan: Plan, name: str) -> int | None:
        """Return a plan's units of a cost of pairs; None if the cost is unknown."""
        costs = self.costs.get(name)
        return None if costs is None else costs.total(plan.member_of)

    def value(self, plan: Plan, balance: str) -> Number:
        """Return the objective of a plan."""
        return self.goal(balance).value(plan)

    def key(self, plan: Plan, balance: str) -> Key:
        """Return the key by which plans are compared."""
        goal = self.goal(balance)
        return tuple(self.costs[name].total(plan.member_of) for name in goal.first), goal.value(plan), plan.moves

    def breaks_balance(self, plan: Plan, balance: str) -> str | None:
        """Return how a plan breaks the problem's own rules or the balance; None if it does not."""
        broken = plan_violation(plan)
        units = gathered(self.problem, plan) if broken is None else None
        return broken if units is None else self.rule(balance).violation(units.topic_counts)

    def broken(self, plan: Plan, balance: str) -> str | None:
        """Return how a plan breaks a rule, balance, budget or ceiling; None if it does not."""
        return self.breaks_balance(plan, balance) or self.goal(balance).broken(plan)

    def beaten(self, plan: Plan, best: Plan, balance: str) -> str | None:
        """Return a sentence on the first criterion in which a plan is worse than the best plan, if any."""
        names = self.goal(balance).first
        for name, had, least in zip(names, self.key(plan, balance)[0], self.key(best, balance)[0], strict=True):
            if had != least:
                return f"{name} come to {had:,}, and {least:,} are enough" if had > least else None
        return None
