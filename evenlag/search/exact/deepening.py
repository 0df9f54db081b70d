"""Iterative deepening (Korf 1985): plans are asked for up to a rising objective, and what ends that is a proof.

Where moves count, a target says what plan that is (`PlanTarget`).
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

# The objective asked for: where it begins, as a share of the way from the bound to the best one known, and its growth;
# where a step is too much to list, it is made again with the root of that, down to the least.
FIRST = 1e-4
GROWTH = 4.0
LEAST_GROWTH = 1.2


@dataclass(frozen=True)
class Proof:
    """What an exact search has found and proven.

    Attributes
    ----------
    plan : Plan or None
        The best plan found that is better than the one known before.
    bound : int
        A lower bound on the objective of any plan, in messages: at most that of the best plan known.
    stopped : {"proof", "time", "work"}
        "proof": nothing is left open. "time": the wall clock ended a solver in it. "work": there was more to list than
        it may, a solver used its work limit up, or the caller's `stop` ended it (why that says so, the caller knows).
    """

    plan: Plan | None
    bound: int
    stopped: Ended


def deepened(
    bound: int,
    value: int,
    look: Callable[[int], tuple[int, Plan] | None],
    stop: Callable[[], bool],
    start: float = FIRST,
) -> Proof:
    """Ask for plans with an objective of at most a rising number, until there is one or none is below `value`.

    Parameters
    ----------
    bound, value : int
        What is proven of the objective, and the best one known.
    look : callable
        Returns the best plan up to an objective, its objective first, or None; raises EnumerationLimitError.
    stop : callable
        Asked where there was too much to list.
    start : float
        Where to begin, as a share of the way from the bound to the best one known.
    """
    first, excess, growth = bound, (value - 1 - bound) * start, GROWTH
    while bound < value:
        asked = max(bound, min(first + int(excess), value - 1))
        try:
            found = look(asked)
        except EnumerationLimitError:
            excess, growth = excess / growth, growth**0.5
            if stop() or growth < LEAST_GROWTH or asked == bound:
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
    """Give a proof as what a stage yields; `bounds` and bounds by the authors `rests_on` are what it began from."""
    if proof.plan is not None:
        yield Candidate(proof.plan)
    yield Bound(proof.bound, rests_on=rests_on, certificate=searched(bounds))
    if proof.stopped == "time" and clock.deterministic:
        yield Note("a proof was ended by the wall clock, not by its work limit", clocked=True)


@dataclass(frozen=True)
class PlanTarget:
    """A plan with spread + price · moves at most `objective`, and at most `most_moves` moves; in messages.

    With so many moves paid for, the rest of the objective is the widest spread, and so a range of loads: the more
    moves, the narrower.

    Attributes
    ----------
    min_load_ub, max_load_lb : int
        The smallest load is at most the one, the largest at least the other.
    objective, price : int
    most_moves : int
        Beside those that all plans make; negative if the loads alone are past the objective.
    lost : int
        Partitions of members that may hold none: a move each in all plans, and not counted otherwise.
    unowned : int
        Partitions without an owner, and these.
    members : int
        How many are active.
    reduced_total, raised : int
        The sum of reduced lags (model/bounds.py), and what they are more than lags where they are more.
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
        """The most moves of a plan, those that all plans make among them."""
        return self.most_moves + self.lost

    def loads(self, moves: int) -> tuple[int, int]:
        """Return the least and the greatest load of a plan with at least so many moves."""
        spread = self.objective - self.price * (moves + self.lost)
        return self.max_load_lb - spread, self.min_load_ub + spread

    def reduced_loads(self, moves: int) -> tuple[int, int]:
        """Return the least and the greatest sum of reduced lags of a member of such a plan."""
        low, high = self.loads(moves)
        return low, max_reduced_load(self.reduced_total, self.raised, self.members, low, high)

    def cost(self, low: Whole, high: Whole, moves: Whole | int) -> Whole:
        """Return the objectives of plans with these smallest and largest loads."""
        cost: Whole = high - low + self.price * (moves + self.lost)
        return cost


def plan_target(
    rule: CountRule, goal: Objective, loads: tuple[int, int], objective: int, least: int, reduced: Whole
) -> PlanTarget:
    """Work out the target for an objective.

    Parameters
    ----------
    rule : CountRule
    goal : Objective
    loads : (min_load_ub, max_load_lb)
    objective : int
    least : int
        What is proven of the spread (makespan) alone.
    reduced : int64 array
        Reduced lags of the partitions that can be assigned.
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
