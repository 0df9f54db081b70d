"""The best plan where moves count, by dynamic programming over what members give and take, or the proof of none better.

A better plan leaves every member a load in a range that narrows with every move that is made. For each member all
exchanges are listed that lead to such a load: partitions of its own to give, of others' to take (member_options.py,
column_enumeration.py). Two members' exchanges are compatible where what one takes from the other is what that one
gives; so partial plans are joined, two members, then larger sets, with dominance (join_dp.py). Nothing is left out, so
where nothing fits there is no better plan.

The objective asked for rises from the bound in growing steps, as in iterative deepening (Korf 1985): each step that
finds nothing raises the bound, and the first that finds a plan has found the best there is.

It is set partitioning (set_partitioning.py) for members that differ in what they own. What differs: columns are listed
as changes of what is held today, as few moves leave few of them, and sets of members are joined, not one member added
at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from evenlag.model.balance import CountRule
from evenlag.model.bounds import LoadBounds
from evenlag.model.objective import Objective, ObjectiveKind
from evenlag.model.problem import NOBODY, Problem
from evenlag.model.reduced_lags import reduced_lags
from evenlag.search.exact.column_enumeration import TargetOptions
from evenlag.search.exact.deepening import PlanTarget, Proof, deepened, findings, plan_target
from evenlag.search.exact.join_dp import Found, JoinDP
from evenlag.search.exact.member_options import MemberOptions
from evenlag.search.incumbent import Finding, Incumbent
from evenlag.search.task import Task

MOST_PARTITIONS = 256  # beyond, there is nearly always too much to list
LARGEST_SUM = 2**62  # of lags, so that no sum of loads and prices leaves 64 bits


def loads_and_moves_alone(rule: CountRule, goal: Objective) -> bool:
    """Whether plans differ by loads, counts and moves alone, in whole messages."""
    problem = rule.problem
    alike = rule.interchangeable and rule.ranks is None and problem.equal_weights and problem.lags.dtype != object
    owned = (problem.owner != NOBODY).any() and not (problem.pins != NOBODY).any()
    return bool(alike and owned) and isinstance(goal.stickiness, int)


def applies(rule: CountRule, goal: Objective) -> bool:
    """Whether they do, and all that members may give and take can be listed."""
    few = rule.problem.active.sum() > 1 and len(rule.problem.lags) <= MOST_PARTITIONS
    return bool(few) and loads_and_moves_alone(rule, goal)


def sums_fit(problem: Problem, value: int) -> bool:
    """Whether no sum of loads and prices leaves 64 bits for plans with an objective up to `value`."""
    return max(value, problem.total_lag) < LARGEST_SUM // MOST_PARTITIONS


class MovePlans:
    """The plans of a group, by all that its members may give and take.

    Parameters
    ----------
    rule : CountRule
    goal : Objective
        `applies` says to which of both.
    bounds : LoadBounds
        What is proven of the largest and the smallest load of any plan.
    stop : callable
        Asked before each step.
    size : float
        How much may be listed, as a share of the most there may ever be; in 1 / `size` of the time it takes less.
    least : int
        What is proven of the spread (makespan) alone.
    reduced : bool
        Whether lists are by reduced lags (model/reduced_lags.py); else by lags as they are.
    """

    def __init__(
        self,
        rule: CountRule,
        goal: Objective,
        bounds: LoadBounds,
        stop: Callable[[], bool],
        size: float = 1.0,
        least: int = 0,
        *,
        reduced: bool = True,
    ) -> None:
        problem = rule.problem
        self.rule, self.goal, self.stop, self.size, self._least = rule, goal, stop, size, least
        self._loads = floor(bounds.min_load_ub) if goal.kind == ObjectiveKind.SPREAD else 0, ceil(bounds.max_load_lb)
        lags = reduced_lags(rule, self._loads[0]) if reduced else problem.lags.astype(np.int64)
        self._lags = lags[problem.assignable]
        price, active = int(goal.stickiness), np.flatnonzero(problem.active).tolist()
        self.members = [MemberOptions(rule, m, self._lags, price, size) for m in active]

    def target(self, asked: int) -> PlanTarget:
        """Return the target for an objective."""
        return plan_target(self.rule, self.goal, self._loads, asked, self._least, self._lags)

    def best_within(self, asked: int) -> Found | None:
        """Return the best plan with an objective of at most `asked`, or None if there is none.

        Raises
        ------
        EnumerationLimitError
            There is too much to list, or `stop` ended it.
        """
        target = self.target(asked)
        if target.most_moves < 0:
            return None
        options = TargetOptions(self.members, target, self.stop, self.size)
        return JoinDP(options, self.stop, self.size).best()


def best_plan_with_moves(plans: MovePlans, bound: int, value: int) -> Proof:
    """Find the best plan with an objective below `value`, or prove that there is none.

    Parameters
    ----------
    plans : MovePlans
    bound, value : int
        What is proven of the objective, and the best one known, in messages.

    Returns
    -------
    Proof
        With the best plan there is, if it has been found; without one, the bound is `value` where there is no better
        plan, and less where there was too much to list or the caller's `stop` ended it.
    """
    problem = plans.rule.problem
    if not sums_fit(problem, value):
        return Proof(None, bound, "work")
    return deepened(bound, value, plans.best_within, plans.stop)


@dataclass(frozen=True)
class MoveDP:
    """The dynamic programming over moves as a stage.

    Attributes
    ----------
    least_seconds : float
        With less than this it is not begun.
    full_seconds : float
        From so many seconds on as much may be listed as there may ever be, with less time less.
    """

    least_seconds: float = 0.02
    full_seconds: float = 2.0
    name: str = "move-dp"

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """Where moves count or the objective is the makespan, in small groups of members alike."""
        return not task.spread_alone and applies(task.rule, task.goal)

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Offer the best plan there is, or prove how good one can be."""
        seconds = task.clock.allowance()
        if seconds < self.least_seconds and task.clock.ended():
            return
        stop, size = task.clock.stop(), min(seconds / self.full_seconds, 1.0)
        plans = MovePlans(task.rule, task.goal, task.bounds, stop, size, ceil(best.base_bound))
        rests_on = best.authors
        proof = best_plan_with_moves(plans, ceil(best.bound), int(best.value))
        if proof.stopped != "proof" and size < 1:
            task.clock.ended()
        yield from findings(proof, task.clock, task.bounds, rests_on)
