"""Search over the budgets of a curve. The next budget to solve has the widest gap per unit of time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

from evenlag.compare.curve import Curve
from evenlag.model.result import Result
from evenlag.search.cache import SolveCache
from evenlag.search.clock import LEAST_SECONDS, Clock
from evenlag.search.options import MOST_SEED, SolveOptions
from evenlag.search.solver import search

FIRST = 0.25  # share of the solving time for the first solve of all budgets
ENOUGH_SECONDS = 1.0  # for a first solve, where possible: less rarely gives a bound


@dataclass(frozen=True)
class BudgetSearch:
    """A search for the best plan of each budget.

    Attributes
    ----------
    budgets : list of int
    asked : callable
        Returns the solve options for a budget.
    known : Result
        A result for the same group, used as a template for what is known about a budget.
    clock : Clock
    cache : SolveCache
    progress : callable or None
        Called with (budgets done, budgets in all); the time used counts as budgets done, if that is more.
    """

    budgets: list[int]
    asked: Callable[[int], SolveOptions]
    known: Result
    clock: Clock
    cache: SolveCache
    progress: Callable[[int, int], None] | None

    def run(self, curve: Curve, share: float) -> None:
        """Solve budgets within a share of the time left.

        Each budget gets little time at first, and twice as much with another seed each time it is resumed.
        """
        clock, budgets, draws = self.clock, self.budgets, count()
        allowed = share * clock.allowance()
        each = allowed / max(len(budgets), 1)
        slices, spent, started = dict.fromkeys(budgets, max(FIRST * each, min(each, ENOUGH_SECONDS))), 0.0, clock.spent
        while True:
            left = [budget for budget in budgets if curve.gap(budget) > 0]
            passed = spent if clock.deterministic else clock.spent - started
            if not left or passed >= allowed or clock.passed():
                return
            if self.progress is not None:
                self.progress(max(len(budgets) - len(left), int(len(budgets) * passed / allowed)), len(budgets))
            budget = max(left, key=lambda budget: curve.gap(budget) / slices[budget])
            seconds = max(min(slices[budget], allowed - passed), LEAST_SECONDS)
            known = replace(self.known, plan=curve.best(budget), bound=curve.bound(budget), bound_by=None, proof=None)
            asked = self.asked(budget)
            drawn = replace(asked, seed=(asked.seed + next(draws)) % (MOST_SEED + 1))
            result = search(
                self.cache.problem, within(drawn, seconds, clock), known=known, cache=self.cache, explain=False
            )
            curve.take(result.plan)
            curve.prove(budget, result.bound)
            slices[budget], spent = 2 * slices[budget], spent + seconds


def within(options: SolveOptions, seconds: float, clock: Clock) -> SolveOptions:
    """Return options with a time limit; with work limits, `seconds` of work and all of the clock's time."""
    if clock.deterministic:
        return options.within(max(clock.left(), LEAST_SECONDS), seconds)
    return options.within(max(seconds, LEAST_SECONDS))
