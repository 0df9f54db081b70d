"""Iterative deepening (Korf 1985): look for plans up to a rising objective until a plan or a proof ends the search.

Where moves count, a `PlanTarget` describes the plans of a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.model.backends.outcome import Ended
from evenlag.model.balance import CountRule
from evenlag.model.bounds import LoadBounds, max_reduced_load
from evenlag.model.certificate import searched
from evenlag.model.objective import Objective
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY
from evenlag.search.clock import Clock
from evenlag.search.incumbent import Bound, Candidate, Finding, Note
from evenlag.search.subsets import EnumerationLimitError


@dataclass(frozen=True)
class Pace:
    """Growth of the objectives up to which plans are looked for.

    Attributes
    ----------
    first : float
        First step, as a share of the way from the bound to the best known objective.
    growth : float
        Factor of the excess over the bound from step to step. A step beyond the enumeration limits is repeated with the
        square root of the factor.
    least_growth : float
        The search ends once the factor is below this.
    """

    first: float = 1e-4
    growth: float = 4.0
    least_growth: float = 1.2


@dataclass(frozen=True)
class Proof:
    """Result of an exact search.

    Attributes
    ----------
    plan : Plan or None
        The best plan found, if it is better than the one known before.
    bound : int
        Lower bound on the objective of any plan, in messages; at most the objective of the best known plan.
    stopped : {"proof", "time", "work"}
        "proof": the search is complete. "time": the wall clock ended a solver. "work": the search exceeded its
        enumeration limits, a solver exhausted its work limit, or the caller's `stop` ended it.
    """

    plan: Plan | None
    bound: int
    stopped: Ended


def deepened(
    bound: int,
    value: int,
    look: Callable[[int], tuple[int, Plan] | None],
    stop: Callable[[], bool],
    pace: Pace = Pace(),
) -> Proof:
    """Look for plans up to a rising objective, until one is found or none below `value` is left.

    Parameters
    ----------
    bound, value : int
        Proven lower bound on the objective, and the best known objective.
    look : callable
        Returns the best plan up to an objective, with its objective first, or None. Raises EnumerationLimitError.
    stop : callable
        Called after each step beyond the enumeration limits.
    """
    first, excess, growth = bound, (value - 1 - bound) * pace.first, pace.growth
    while bound < value:
        asked = max(bound, min(first + int(excess), value - 1))
        try:
            found = look(asked)
        except EnumerationLimitError:
            excess, growth = excess / growth, growth**0.5
            if stop() or growth < pace.least_growth or asked == bound:
                return Proof(None, bound, "work")
            excess *= growth
            continue
        if found is not None:
            return Proof(found[1], found[0], "proof")
        bound = asked + 1
        excess *= growth
    return Proof(None, bound, "proof")


def findings(
    proof: Proof, clock: Clock, bounds: LoadBounds, rests_on: frozenset[str] = frozenset()
) -> Iterator[Finding]:
    """Yield the findings of a proof, whose premises are `bounds` and the bounds of the authors `rests_on`."""
    if proof.plan is not None:
        yield Candidate(proof.plan)
    yield Bound(proof.bound, rests_on=rests_on, certificate=searched(bounds))
    if proof.stopped == "time" and clock.deterministic:
        yield Note("a proof was stopped by the wall clock before its work limit", clocked=True)


@dataclass(frozen=True)
class PlanTarget:
    """Limits of a plan: spread + price · moves at most `objective`, at most `most_moves` moves; in messages.

    The objective less the price of the moves is the widest spread allowed, which limits the loads. More moves narrow
    the range of loads.

    Attributes
    ----------
    min_load_ub, max_load_lb : int
        Upper bound on the smallest load, and lower bound on the largest load.
    most_moves : int
        Moves allowed besides the `lost` ones; negative if no plan can meet the target.
    lost : int
        Partitions whose owner may hold none. Each moves in every plan and is not counted elsewhere.
    unowned : int
        Partitions without an owner, including the lost ones.
    members : int
        Number of active members.
    reduced_total, raised : int
        Sum of the reduced lags (model/bounds.py), and the total by which reduced lags exceed lags.
    """

    min_load_ub: int
    max_load_lb: int
    objective: int
    price: int
    most_moves: int
    lost: int
    unowned: int
    members: int
    reduced_total: int
    raised: int

    @property
    def all_moves(self) -> int:
        """Largest number of moves of a plan, including the lost partitions."""
        return self.most_moves + self.lost

    def loads(self, moves: int) -> tuple[int, int]:
        """Return the smallest and the largest load that a plan with at least `moves` further moves can have."""
        spread = self.objective - self.price * (moves + self.lost)
        return self.max_load_lb - spread, self.min_load_ub + spread

    def reduced_loads(self, moves: int) -> tuple[int, int]:
        """Return the limits of a member's sum of reduced lags in a plan with at least `moves` further moves."""
        low, high = self.loads(moves)
        return low, max_reduced_load(self.reduced_total, self.raised, self.members, low, high)

    def cost(self, low: Whole, high: Whole, moves: Whole | int) -> Whole:
        """Return the objectives of plans with these smallest loads, largest loads and moves."""
        return high - low + self.price * (moves + self.lost)


def plan_target(
    rule: CountRule, goal: Objective, loads: tuple[int, int], objective: int, least: int, reduced: Whole
) -> PlanTarget:
    """Return the target for an objective.

    Parameters
    ----------
    loads : (min_load_ub, max_load_lb)
    least : int
        Proven lower bound on the spread (makespan) alone.
    reduced : int64 array
        Reduced lags of the assignable partitions.
    """
    problem, price = rule.problem, int(goal.stickiness)
    min_load_ub, max_load_lb = loads
    owners = problem.owner[problem.assignable & (problem.owner != NOBODY)]
    owned, lost = len(owners), int((~problem.active[owners]).sum())
    most = owned if goal.max_moves is None else min(goal.max_moves, owned)
    left = objective - max(max_load_lb - min_load_ub, least, 0)
    if left < 0:
        most = -1
    elif price:
        most = min(most, left // price)
    unowned, members = int(problem.assignable.sum()) - owned + lost, int(problem.active.sum())
    raised = int(np.maximum(reduced - problem.lags[problem.assignable], 0).sum())
    total, price = int(reduced.sum()), min(price, objective + 1)
    return PlanTarget(min_load_ub, max_load_lb, objective, price, most - lost, lost, unowned, members, total, raised)
