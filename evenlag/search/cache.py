"""Cache shared by several calls on one problem: count rules, bounds, published plans and the like."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from math import inf
from typing import Any, TypeVar

from evenlag.errors import EvenlagError
from evenlag.heuristics import HEURISTICS
from evenlag.model.balance import CountRule, count_rule
from evenlag.model.bounds import LoadBounds, load_bounds
from evenlag.model.pair_flow import CheapestPlan, cheapest_plan
from evenlag.model.pair_table import PairTable
from evenlag.model.plan import Plan
from evenlag.model.problem import Problem, check_problem
from evenlag.search.construct.fresh import fewest_moves_plan

T = TypeVar("T")

MOST_STRUCTURES = 500  # most problem structures whose caches are kept
MOST_KEPT = 200_000  # partitions; published plans of larger problems are computed anew


class SolveCache:
    """Cached count rules, bounds and published plans of one problem; repeated calls return the same objects.

    Parameters
    ----------
    alike : SolveCache, optional
        Cache of a problem that differs only in names, lags and owners. Its count rules are reused.
    today : Problem, optional
        The same problem with the lags that published heuristics read, if other ones judge their plans.

    Attributes
    ----------
    seconds : dict of heuristic to float
        Time taken to compute its plan.
    """

    def __init__(self, problem: Problem, alike: SolveCache | None = None, today: Problem | None = None) -> None:
        check_problem(problem)
        self.problem, self._alike, self._today = problem, alike, problem if today is None else today
        if alike is not None:
            problem.take_structure(alike.problem)
        self._kept: dict[tuple[Any, ...], Any] = {}
        self._cheapest: dict[tuple[str, int, bytes], CheapestPlan] = {}
        self._plans: dict[str, Plan | EvenlagError] = {}
        self.seconds: dict[str, float] = {}

    def _once(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        """Return `make()`, called once for the key."""
        if key not in self._kept:
            self._kept[key] = make()
        kept: T = self._kept[key]
        return kept

    def rule(self, balance: str, slack: int = 0) -> CountRule:
        """Return `count_rule` of the problem; raise the same errors."""

        def made() -> CountRule:
            if self._alike is None:
                return count_rule(self.problem, balance, slack)
            return self._alike.rule(balance, slack).at(self.problem)

        return self._once((count_rule, balance, slack), made)

    def load_bounds(self, rule: CountRule) -> LoadBounds:
        """Return `load_bounds` of a rule of the problem, computed once."""
        return self._once((load_bounds, rule.balance, rule.slack), lambda: load_bounds(rule))

    def kept(self, make: Callable[..., T], rule: CountRule, *more: Any) -> T:
        """Return `make(rule, load_bounds(rule), *more)` for a rule of the problem, computed once."""
        return self._once((make, rule.balance, rule.slack, *more), lambda: make(rule, self.load_bounds(rule), *more))

    def fewest_moves_plan(self, rule: CountRule) -> Plan:
        """Return `fewest_moves_plan` of a rule of the problem, computed once."""
        return self._once((fewest_moves_plan, rule.balance, rule.slack), lambda: fewest_moves_plan(rule))

    def scenario(self, number: int) -> SolveCache:
        """Return the cache of one scenario as a problem of its own."""
        return self._once((SolveCache, number), lambda: SolveCache(self.problem.futures[number]))

    def cheapest_plan(self, rule: CountRule, costs: PairTable, seconds: float = inf) -> CheapestPlan | None:
        """Return `cheapest_plan` of a rule of the problem, computed once; None if `seconds` were too few."""
        key = (rule.balance, rule.slack, hashlib.blake2b(costs.key()).digest())
        if key not in self._cheapest:
            found = cheapest_plan(rule, costs, seconds)
            if found is None:
                return None
            self._cheapest[key] = found
        return self._cheapest[key]

    def plan(self, heuristic: str) -> Plan:
        """Return a published heuristic's plan.

        Raises
        ------
        EvenlagError
            The heuristic is not defined for this problem.
        """
        outcome = self._plans.get(heuristic)
        if outcome is None:
            started = time.monotonic()
            try:
                outcome = Plan(self.problem, HEURISTICS[heuristic](self._today).member_of)
            except EvenlagError as error:
                outcome = error
            self.seconds[heuristic] = time.monotonic() - started
            if len(self.problem.lags) <= MOST_KEPT:
                self._plans[heuristic] = outcome
        if isinstance(outcome, EvenlagError):
            raise outcome
        return outcome


class Caches:
    """Caches for many problems, most of which differ only in names, lags and owners."""

    def __init__(self) -> None:
        self._first: dict[Any, SolveCache] = {}

    def of(self, problem: Problem) -> SolveCache:
        """Return a new cache of a problem; share the count rules of the first problem with the same structure."""
        first = self._first.get(problem.structure)
        cache = SolveCache(problem, first)
        if first is None and len(self._first) < MOST_STRUCTURES:
            self._first[problem.structure] = cache
        return cache
