"""What several calls on one problem share, each worked out once: count rules, bounds, published plans."""

from __future__ import annotations

import time

from evenlag.errors import EvenlagError
from evenlag.heuristics import HEURISTICS
from evenlag.model.balance import CountRule, count_rule
from evenlag.model.bounds import LoadBounds, load_bounds
from evenlag.model.plan import Plan
from evenlag.model.problem import Problem
from evenlag.search.exact.move_grids import MoveGrids

MOST_KEPT = 200_000  # partitions of a problem whose plans are kept; larger ones are worked out again


class SolveCache:
    """Count rules, bounds and published plans of one problem; asked for again, the same objects come back.

    Parameters
    ----------
    problem : Problem

    Attributes
    ----------
    seconds : dict of heuristic to float
        What its plan took when it was made.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._rules: dict[tuple[str, int], CountRule] = {}
        self._load_bounds: dict[tuple[str, int], LoadBounds] = {}
        self._move_grids: dict[tuple[str, int, bool], MoveGrids] = {}
        self._plans: dict[str, Plan | EvenlagError] = {}
        self.seconds: dict[str, float] = {}

    def rule(self, balance: str, slack: int = 0) -> CountRule:
        """Return `count_rule` of the problem, and raise what it raises."""
        key = (balance, slack)
        if key not in self._rules:
            self._rules[key] = count_rule(self.problem, balance, slack)
        return self._rules[key]

    def load_bounds(self, rule: CountRule) -> LoadBounds:
        """Return `load_bounds` of a rule of the problem."""
        key = (rule.balance, rule.slack)
        if key not in self._load_bounds:
            self._load_bounds[key] = load_bounds(rule)
        return self._load_bounds[key]

    def move_grids(self, rule: CountRule, *, spread: bool) -> MoveGrids:
        """Return what is known of the moves that loads take under a rule of the problem."""
        key = (rule.balance, rule.slack, spread)
        if key not in self._move_grids:
            self._move_grids[key] = MoveGrids(rule, self.load_bounds(rule), spread)
        return self._move_grids[key]

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
                outcome = HEURISTICS[heuristic](self.problem)
            except EvenlagError as error:
                outcome = error
            self.seconds[heuristic] = time.monotonic() - started
            if len(self.problem.lags) <= MOST_KEPT:
                self._plans[heuristic] = outcome
        if isinstance(outcome, EvenlagError):
            raise outcome
        return outcome
