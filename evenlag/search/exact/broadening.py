"""Plans in which each member gives and takes few partitions, then more: iterative broadening.

Where a budget allows many moves, most plans spread them over the members. So the dynamic programming over moves
(move_dp.py) is first asked for plans in which no member gives or takes more than one partition beyond what counts make
it, then two, and so on. There is little to list then, and often a plan that meets the bound long before all that
members may do could be listed. Nothing is proven by it: what is not found may be there.

Source: Ginsberg and Harvey 1992, "Iterative broadening": a tree searched with few branches at each node, then more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from math import ceil

from evenlag.search.exact.deepening import deepened
from evenlag.search.exact.move_dp import MovePlans, applies, sums_fit
from evenlag.search.incumbent import Candidate, Finding, Incumbent
from evenlag.search.task import Task


@dataclass(frozen=True)
class Broadening:
    """Iterative broadening as a stage.

    Attributes
    ----------
    largest : int
        Partitions of a group, at most: budgets of many moves in larger ones have too much to list at any breadth.
    full_seconds : float
        From so many seconds on as much may be listed as there may ever be, with less time less.
    """

    largest: int = 128
    full_seconds: float = 2.0
    name: str = "broadening"

    def applies(self, task: Task, best: Incumbent) -> bool:
        """Where moves have a budget and no price, in small groups of members alike: a price spreads moves by itself."""
        budget = task.goal.max_moves is not None and not task.goal.stickiness
        small = len(task.problem.lags) <= self.largest and sums_fit(task.problem, int(best.value))
        return budget and small and applies(task.rule, task.goal)

    def run(self, task: Task, best: Incumbent, share: float) -> Iterator[Finding]:
        """Offer the best plan of each breadth that is better, until there is too much to list."""
        stop, size = task.clock.stop(share), min(share * task.clock.allowance() / self.full_seconds, 1.0)
        plans = MovePlans(task.rule, task.goal, task.bounds, stop, size, ceil(best.base_bound))
        for beyond in count(1):
            look = partial(plans.best_within, beyond=beyond)
            found = deepened(task.problem, ceil(best.bound), int(best.value), look, stop)
            if found.plan is not None:
                yield Candidate(found.plan)
            most = best.moves_worth
            if stop() or best.settled or found.stopped != "proof" or (most is not None and beyond >= most):
                return
