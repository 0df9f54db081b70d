"""What a plan is judged by: spread or makespan, the price of moves, the budget of moves, and the tie rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from evenlag.errors import InfeasibleError, InvalidProblemError
from evenlag.figures import quantity
from evenlag.model.balance import CountRule
from evenlag.model.defaults import DEFAULT_STICKINESS as DEFAULT_STICKINESS
from evenlag.model.names import Name
from evenlag.model.plan import Number, Plan, whole
from evenlag.model.problem import NOBODY, Problem
from evenlag.model.values import amount, is_whole

FEWEST_MOVES = "fewest-moves"


class ObjectiveKind(Name):
    """What a plan's loads are judged by."""

    SPREAD = "spread"
    MAKESPAN = "makespan"


class Across(Name):
    """What becomes of the spreads (makespans) of several scenarios."""

    MEAN = "mean"
    WORST = "worst"


@dataclass(frozen=True)
class Objective:
    """`kind` + stickiness · moves, with at most `max_moves` moves.

    Where the problem has scenarios, `kind` is taken with the lags of each, and their mean by weight or the worst of
    them counts.

    Attributes
    ----------
    kind : ObjectiveKind
    stickiness : int or Fraction
        Messages that one move must save.
    max_moves : int or None
        Hard budget of moves.
    fewest : bool
        Moves come first: `max_moves` is the fewest that the balance allows.
    across : Across
        What counts where the problem has scenarios: their mean, or the worst of them.
    """

    kind: ObjectiveKind = ObjectiveKind.SPREAD
    stickiness: Number = 0
    max_moves: int | None = None
    fewest: bool = False
    across: Across = Across.MEAN

    def value(self, plan: Plan) -> Number:
        """Return the objective in messages, exact."""
        return whole(self.base(plan) + self.stickiness * plan.moves)

    def base(self, plan: Plan) -> Number:
        """Return the spread (makespan) that counts, in messages, exact."""
        if not plan.problem.futures:
            return self.measured(plan)
        return self.combined(plan.problem, [self.measured(each) for each in plan.in_scenarios])

    def measured(self, plan: Plan) -> Number:
        """Return the spread (makespan) with the lags of now, in messages, exact."""
        return plan.spread if self.kind == ObjectiveKind.SPREAD else plan.makespan

    def combined(self, problem: Problem, values: Sequence[Number]) -> Number:
        """Return what a value for each of `problem.judged_by` comes to: their mean by weight, or the largest."""
        if not problem.futures or self.across == Across.WORST:
            return max(values)
        return whole(_mean(problem, values))

    def scale(self, problem: Problem) -> Fraction:
        """Return the mean load that gaps and shares are of, in messages: that of the scenarios where there are any."""
        if not problem.futures:
            return problem.mean_load
        return Fraction(self.combined(problem, [future.mean_load for future in problem.judged_by]))

    def step(self, problem: Problem) -> Fraction:
        """Return a number of messages of which every objective is a multiple, the largest that follows from units."""
        shares, unit = [Fraction(1)], problem.load_unit * problem.lag_unit
        if not problem.futures and not self.stickiness:
            return unit
        if problem.futures and self.across == Across.MEAN:
            shares = [weight / sum(problem.scenario_weights) for weight in problem.scenario_weights]
        parts = [*(unit * share for share in shares), Fraction(self.stickiness)]
        common = math.lcm(*(part.denominator for part in parts))
        return Fraction(math.gcd(*(int(part * common) for part in parts)), common)

    def key(self, plan: Plan) -> tuple[Number, Number, int]:
        """Return what plans are compared by: the objective, then Σ load² / weight, then moves."""
        uneven = plan.unevenness
        if plan.problem.futures:
            uneven = _mean(plan.problem, [each.unevenness for each in plan.in_scenarios])
        return self.value(plan), uneven, plan.moves

    def within_budget(self, plan: Plan) -> bool:
        """Say whether the plan keeps the budget of moves."""
        return self.max_moves is None or plan.moves <= self.max_moves


def resolve_objective(
    rule: CountRule,
    kind: str = ObjectiveKind.SPREAD,
    stickiness: float | str = DEFAULT_STICKINESS,
    max_moves: int | None = None,
    across: str = Across.MEAN,
) -> Objective:
    """Turn the parameters of `solve` into an `Objective`.

    A percentage of the mean load is rounded up to whole messages, so that objectives stay whole numbers.

    Raises
    ------
    InvalidProblemError
        A parameter has a value that it cannot have.
    InfeasibleError
        The balance needs more moves than `max_moves`; the message says how many.
    """
    goal = Objective(ObjectiveKind.of(kind, "objective"), across=Across.of(across, "across"))
    check_budget(max_moves)
    fewest = stickiness == FEWEST_MOVES
    if fewest or max_moves is not None:
        needed, _ = rule.fewest_moves()
        if max_moves is not None and needed > max_moves:
            raise InfeasibleError(
                f"max_moves is {max_moves}, but {rule.balance} balance needs {quantity(needed, 'move')}: "
                f"allow {needed}, or relax the balance"
            )
        max_moves = needed if fewest else max_moves
        if max_moves is not None and max_moves >= int((rule.problem.owner != NOBODY).sum()):
            max_moves = None  # all that could move may
    price = 0 if fewest else move_price(stickiness, goal.scale(rule.problem))
    max_moves = None if max_moves is None else int(max_moves)
    return replace(goal, stickiness=price, max_moves=max_moves, fewest=fewest)


def check_budget(max_moves: Any) -> None:
    """Raise InvalidProblemError unless `max_moves` is a number of moves or None."""
    if max_moves is not None and not (is_whole(max_moves) and max_moves >= 0):
        raise InvalidProblemError(f"max_moves must be a whole number >= 0, not {max_moves!r}")


def move_price(stickiness: float | str, mean_load: Fraction) -> Number:
    """Return what a move costs: the messages given, or the share of the mean load, rounded up to whole messages.

    Raises
    ------
    InvalidProblemError
        It is neither.
    """
    number, percent = amount(stickiness)
    if number is None or number < 0:
        raise InvalidProblemError(
            f"stickiness must be messages >= 0, a share of the mean load such as '0.1%', or 'fewest-moves'; "
            f"got {stickiness!r}"
        )
    return math.ceil(number / 100 * mean_load) if percent else whole(number)


def _mean(problem: Problem, values: Sequence[Number]) -> Fraction:
    """Return the mean of a value for each scenario, by their weights."""
    weights = problem.scenario_weights
    return sum((w * v for w, v in zip(weights, values, strict=True)), Fraction(0)) / sum(weights)
