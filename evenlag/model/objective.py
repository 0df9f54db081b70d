"""The objective: spread or makespan, prices and budgets of moves and pairs, a ceiling, and the tie rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenlag.figures import exactly
from evenlag.model.defaults import DEFAULT_STICKINESS as DEFAULT_STICKINESS
from evenlag.model.names import Name
from evenlag.model.pair_costs import PAIR_COSTS, pair_costs
from evenlag.model.pair_table import PairTable
from evenlag.model.plan import Number, Plan, common_divisor, whole
from evenlag.model.problem import Index, Problem

FEWEST_MOVES = "fewest-moves"
MOVES, MOVED_SIZE, CROSSINGS = "moves", "moved_size", "crossings"
PAIRS, CEILING, LOADLESS = "pairs", "ceiling", "loadless"
EVERY_TERM = frozenset((PAIRS, CEILING, LOADLESS))


class ObjectiveKind(Name):
    """Measure of a plan's loads."""

    SPREAD = "spread"
    MAKESPAN = "makespan"


class Across(Name):
    """Aggregation over several scenarios."""

    MEAN = "mean"
    WORST = "worst"


@dataclass(frozen=True, eq=False)
class PairCost:
    """A cost of assigning partitions to members, apart from loads.

    Attributes
    ----------
    costs : PairTable
        Units of each pair.
    price : int or Fraction
        Messages per unit, >= 0.
    budget : int or None
        Upper limit on a plan's units.
    """

    name: str
    costs: PairTable
    price: Number = 0
    budget: int | None = None

    def of(self, member_of: Index) -> int:
        """Return the units of an assignment."""
        return self.costs.total(member_of)

    @property
    def matters(self) -> bool:
        """True if the cost has a price or a budget."""
        return bool(self.price) or self.budget is not None


@dataclass(frozen=True)
class Objective:
    """`kind` + stickiness · moves + Σ price · pair cost, within budgets and a ceiling on loads.

    If the problem has scenarios, `kind` is computed from the lags of each, and either their weighted mean or the worst
    counts.

    Attributes
    ----------
    kind : ObjectiveKind or None
        None if loads do not count, as while a criterion that comes before them is minimized.
    stickiness : int or Fraction
        Price of a move: messages that it must save.
    max_moves : int or None
        Upper limit on moves.
    fewest : bool
        Moves come first: `max_moves` is the fewest that the balance allows.
    across : Across
        Aggregation over scenarios: their mean, or the worst.
    pairs : tuple of PairCost
        Costs of pairs that have a price or a budget.
    ceiling : int, Fraction or None
        Upper limit on the load per weight of any member, in messages, in every scenario.
    first : tuple of str
        Names of the criteria that are minimized before everything else, in this order: "moves" or pair costs.
    """

    kind: ObjectiveKind | None = ObjectiveKind.SPREAD
    stickiness: Number = 0
    max_moves: int | None = None
    fewest: bool = False
    across: Across = Across.MEAN
    pairs: tuple[PairCost, ...] = ()
    ceiling: Number | None = None
    first: tuple[str, ...] = ()

    @cached_property
    def terms(self) -> frozenset[str]:
        """The terms beyond loads and moves; a stage without support for one of them is skipped, or runs without it."""
        known = {PAIRS: bool(self.pairs), CEILING: self.ceiling is not None, LOADLESS: self.kind is None}
        return frozenset(term for term, there in known.items() if there)

    def without(self, terms: frozenset[str]) -> Objective:
        """Return the objective without some terms; it is no higher for any plan, so its lower bounds apply here too."""
        return replace(
            self, pairs=() if PAIRS in terms else self.pairs, ceiling=None if CEILING in terms else self.ceiling
        )

    def of_partitions(self, keep: NDArray[np.bool_]) -> Objective:
        """Return the objective for a problem that consists of these partitions only."""
        pairs = [replace(pair, costs=pair.costs.keep(keep)) for pair in self.pairs]
        return replace(self, pairs=tuple(pair if pair.costs.any() else replace(pair, price=0) for pair in pairs))

    def criterion(self, name: str) -> Objective:
        """Return the objective whose value is one criterion alone, within the same budgets and ceiling."""
        pairs = [replace(pair, price=int(pair.name == name)) for pair in self.pairs]
        return replace(
            self,
            kind=None,
            stickiness=int(self._counts_plain(name)),
            pairs=tuple(pair for pair in pairs if pair.matters),
            first=(),
        )

    def _counts_plain(self, name: str) -> bool:
        """Return True if the criterion is the number of moves rather than a cost of pairs."""
        return name == MOVES and all(pair.name != MOVES for pair in self.pairs)

    def budget(self, name: str) -> int | None:
        """Return the upper limit on a criterion's units; None means no limit."""
        return next((pair.budget for pair in self.pairs if pair.name == name), self.max_moves)

    def within(self, name: str, most: int) -> Objective:
        """Return the objective with at most `most` units of one criterion, and no price on it."""
        if self._counts_plain(name):
            return replace(self, max_moves=most, stickiness=0)
        pairs = (replace(pair, price=0, budget=most) if pair.name == name else pair for pair in self.pairs)
        return replace(self, pairs=tuple(pairs))

    def value(self, plan: Plan) -> Number:
        """Return the objective of a plan in messages, exact."""
        priced = sum(pair.price * pair.of(plan.member_of) for pair in self.pairs if pair.price)
        return whole(self.base(plan) + self.stickiness * plan.moves + priced)

    def base(self, plan: Plan) -> Number:
        """Return the aggregated spread (makespan) in messages, exact; 0 if loads do not count."""
        if not plan.problem.futures:
            return self.measured(plan)
        return self.combined(plan.problem, [self.measured(each) for each in plan.in_scenarios])

    def measured(self, plan: Plan) -> Number:
        """Return the spread (makespan) by current lags, in messages, exact; 0 if loads do not count."""
        if self.kind is None:
            return 0
        return plan.spread if self.kind == ObjectiveKind.SPREAD else plan.makespan

    def combined(self, problem: Problem, values: Sequence[Number]) -> Number:
        """Combine one value per problem in `judged_by` into their weighted mean or their maximum."""
        if not problem.futures or self.across == Across.WORST:
            return max(values)
        return whole(_mean(problem, values))

    def scale(self, problem: Problem) -> Fraction:
        """Return the mean load to which gaps and shares refer, in messages; with scenarios, aggregated over them."""
        if not problem.futures:
            return problem.mean_load
        return Fraction(self.combined(problem, [future.mean_load for future in problem.judged_by]))

    def step(self, problem: Problem) -> Fraction:
        """Return a number of messages that divides every objective, the largest that follows from the units."""
        shares, unit = [Fraction(1)], problem.load_unit * problem.lag_unit
        if not problem.futures and not self.stickiness and not self.terms:
            return unit
        if problem.futures and self.across == Across.MEAN:
            shares = [weight / sum(problem.scenario_weights) for weight in problem.scenario_weights]
        parts: list[Number] = [] if self.kind is None else [unit * share for share in shares]
        parts += [Fraction(self.stickiness), *(pair.price * pair.costs.step for pair in self.pairs)]
        return common_divisor(parts)

    def thrifty(self, problem: Problem) -> Objective:
        """Return the objective with prices on budgeted costs, too small to make any plan rank above a better one."""
        budgets = [self.max_moves, *(pair.budget for pair in self.pairs)]
        if self.kind is None or budgets.count(None) == len(budgets):
            return self
        price = self.step(problem) / (sum(most for most in budgets if most is not None) + 1)
        pairs = (pair if pair.budget is None else replace(pair, price=pair.price + price) for pair in self.pairs)
        stickiness = self.stickiness if self.max_moves is None else self.stickiness + price
        return replace(self, stickiness=stickiness, pairs=tuple(pairs))

    def spent(self, plan: Plan) -> int:
        """Return a plan's total units of all budgeted costs; 0 if loads do not count."""
        if self.kind is None:
            return 0
        moves = 0 if self.max_moves is None else plan.moves
        return moves + sum(pair.of(plan.member_of) for pair in self.pairs if pair.budget is not None)

    def key(self, plan: Plan) -> tuple[Number, int, Number, int]:
        """Return the key by which plans are compared: objective, units of budgets, Σ load² / weight, moves."""
        uneven = plan.unevenness
        if plan.problem.futures:
            uneven = _mean(plan.problem, [each.unevenness for each in plan.in_scenarios])
        return self.value(plan), self.spent(plan), uneven, plan.moves

    def broken(self, plan: Plan) -> str | None:
        """Return how the plan breaks a budget or the ceiling, or None."""
        if self.max_moves is not None and plan.moves > self.max_moves:
            return f"the plan moves {plan.moves} partitions; max_moves is {self.max_moves}"
        for pair in self.pairs:
            if pair.budget is not None and (cost := pair.of(plan.member_of)) > pair.budget:
                return f"{pair.name} come to {cost:,}; their budget is {pair.budget:,}"
        if self.ceiling is not None:
            highest = max(each.makespan for each in plan.in_scenarios)
            if highest > self.ceiling:
                return f"a member has a load of {exactly(highest)} messages; max_load is {exactly(self.ceiling)}"
        return None


# ---- costs by name, moves included -----------------------------------------------------------------------------------


def names_of_costs(problem: Problem) -> tuple[str, ...]:
    """Return the names of all costs that a plan of a problem may have, whether or not their data is known."""
    return (MOVES, *PAIR_COSTS, *problem.pairs.costs)


def measure_of(problem: Problem, name: str) -> Callable[[Plan], int] | None:
    """Return a function that gives the units of a cost in a plan; None if the problem has no data for the cost."""
    if name == MOVES:
        return lambda plan: plan.moves
    costs = pair_costs(problem, name)
    return None if costs is None else lambda plan: costs.total(plan.member_of)


def units_of(plan: Plan, name: str) -> int | None:
    """Return the units of a cost in a plan; None if the problem has no data for the cost."""
    measure = measure_of(plan.problem, name)
    return None if measure is None else measure(plan)


def price_of_moves(goal: Objective) -> Number:
    """Return the price of moving a partition, or of a unit of size if partitions have sizes."""
    priced = {pair.name: pair.price for pair in goal.pairs}
    return priced.get(MOVED_SIZE, priced.get(MOVES, goal.stickiness))


def _mean(problem: Problem, values: Sequence[Number]) -> Fraction:
    """Return the mean of one value per scenario, by their weights."""
    weights = problem.scenario_weights
    return sum((w * v for w, v in zip(weights, values, strict=True)), Fraction(0)) / sum(weights)
