"""What plan is asked for: one whose objective, moves included, is at most a target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenlag.model.arrays import Whole
from evenlag.model.balance import CountRule
from evenlag.model.objective import Objective
from evenlag.model.problem import NOBODY
from evenlag.model.reduced_lags import max_reduced_load


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
        The sum of reduced lags (model/reduced_lags.py), and what they are more than lags where they are more.
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
