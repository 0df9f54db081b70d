"""A frontier: its points, and the plans and bounds known while it is computed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenlag.compare.comparison_cards import frontier_card
from evenlag.figures import messages, number, percent, quantity
from evenlag.model.explanation.reasons import outcome_of_nothing
from evenlag.model.figure_tables import GROUP, Figure, FigureTable
from evenlag.model.objective import CROSSINGS, MOVED_SIZE, MOVES
from evenlag.model.pair_costs import costs_of, pair_costs
from evenlag.model.plan import Number, Plan, current_plan
from evenlag.model.problem import NOBODY, Problem

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

CostOf = Callable[[Plan], int]

FRONTIER_FIGURES = (
    GROUP,
    Figure("against", "string", "Cost that the budgets limit."),
    Figure("cost", "integer", "Units of this cost in the plan."),
    Figure("moves", "integer", "Partitions that leave their owner."),
    Figure("spread", "number", "Largest − smallest load per weight, in messages; null without a plan."),
    Figure("bound", "number", "No plan of at most this cost has a smaller spread, in messages; null without a plan."),
    Figure("knee", "boolean", "True for the point after which further cost gains least."),
    Figure("moved_size", "integer", "Total size of the partitions that leave their owner; null: sizes unknown."),
    Figure("crossings", "integer", "Traffic (without it: partitions) read across racks; null: racks unknown."),
)
"""Columns of `Frontier.to_pandas`."""


@dataclass(frozen=True)
class FrontierPoint:
    """The best plan found with at most `cost` units of the frontier's cost.

    Attributes
    ----------
    moves : int
        Moves of the plan.
    spread, bound : number
        In messages. No plan with at most `cost` units has a spread below `bound`.
    plan : Plan
    cost : int
        Units of the plan's cost: moves, crossings, moved size or one of the problem's own costs.
    """

    moves: int
    spread: Number
    bound: Number
    plan: Plan
    cost: int

    @property
    def assignment(self) -> dict[str, list[tuple[str, int]]]:
        """The plan as `{member: [(topic, partition), …]}`."""
        return self.plan.assignment


@dataclass(frozen=True)
class Frontier:
    """Points of rising cost and falling spread; none dominates another.

    Attributes
    ----------
    problem : Problem
    balance : str
    points : list of FrontierPoint
    knee : int
        Index of the point after which further cost gains least: the one farthest below the line from first to last.
    against : str
        The cost: "moves", "crossings", "moved_size" or one of the problem's own costs.
    """

    problem: Problem
    balance: str
    points: list[FrontierPoint]
    knee: int
    against: str = MOVES

    def __repr__(self) -> str:
        first, last = self.points[0], self.points[-1]
        ends = f"{self.against} {first.cost} to {last.cost}, spread {first.spread} to {last.spread}"
        return f"<Frontier {self.problem.group!r}: points={len(self.points)}, {ends}>"

    def _repr_html_(self) -> str:
        """Return the HTML shown by notebooks."""
        return frontier_card(self)

    @property
    def empty(self) -> bool:
        """True if no member can take a partition: then no plan exists, and figures are None."""
        return not self.problem.active.any()

    @property
    def cost_name(self) -> str:
        """The cost in words."""
        return self.against.replace("_", " ")

    @property
    def title(self) -> str:
        """The question that the points answer, in a few words."""
        return (
            "least spread by number of moves"
            if self.against == MOVES
            else f"least spread for a budget of {self.cost_name}"
        )

    @property
    def verdict(self) -> str:
        """One sentence: how much the budget at the knee buys, and its share of what all points buy."""
        if self.empty:
            return outcome_of_nothing(self.problem)
        if (today := self._today) is not None:
            return self._since(today)
        first, last, chosen = self.points[0], self.points[-1], self.points[self.knee or -1]
        if first is last:
            found = "" if first.bound == first.spread else " found"
            of = "moves" if self.against == MOVES else f"budget of {self.cost_name}"
            verb = "lower" if self.against == MOVES else "lowers"
            return f"No {of}{found} {verb} the spread of {messages(first.spread)}."
        verb = "bring" if self.against == MOVES and chosen.cost != 1 else "brings"
        budget = self._budget(chosen.cost)
        text = f"{budget[0].upper()}{budget[1:]} {verb} the spread"
        text += f" from {number(first.spread)} to {messages(chosen.spread)}"
        if chosen is last:
            return f"{text}."
        share = percent(float(first.spread - chosen.spread) / float(first.spread - last.spread))
        return f"{text}, {share} of the gain of {self._budget(last.cost)}."

    @property
    def _today(self) -> Number | None:
        """Spread of today's assignment if it breaks a rule, so that no point has it; None otherwise or if unknown."""
        owned = (self.problem.owner[self.problem.assignable] != NOBODY).all()
        return current_plan(self.problem).spread if self.against == MOVES and self.points[0].cost and owned else None

    def _since(self, today: Number) -> str:
        """Return the verdict on a group whose rules allow no plan without moves."""
        first, last, chosen = self.points[0], self.points[-1], self.points[self.knee]
        fewest = f"the rules take at least {quantity(first.cost, 'move')}"
        if today <= last.spread:
            change = "stays at" if today == last.spread else f"rises from {number(today)} to"
            return f"The spread {change} {messages(last.spread)}: {fewest}."
        verb = "brings" if chosen.cost == 1 else "bring"
        text = f"{quantity(chosen.cost, 'move')} {verb} the spread from {number(today)} to {messages(chosen.spread)}"
        if chosen is not last:
            share = percent(float(today - chosen.spread) / float(today - last.spread))
            text += f", {share} of the gain of {quantity(last.cost, 'move')}"
        return f"{text}; {fewest}."

    def _budget(self, cost: int) -> str:
        if self.against == MOVES:
            return quantity(cost, "move")
        return f"a budget of {cost:,} {self.cost_name}"

    def to_pandas(self) -> pd.DataFrame:
        """Return the points as a pandas DataFrame, one row per point, by rising cost.

        Columns: group; against (the cost); cost (its units); moves (partitions); spread, bound (messages; null if there
        is no plan); knee (true for that point); moved_size (units of `move_sizes`, null without sizes); crossings
        (traffic, or partitions if none is given; null if racks are unknown).

        Raises
        ------
        ModuleNotFoundError
            pandas is not installed.
        """
        return self._table().to_pandas()

    def to_arrow(self) -> pa.Table:
        """Return the points as a pyarrow Table with the columns of `to_pandas`."""
        return self._table().to_arrow()

    def _table(self) -> FigureTable:
        known = {name: pair_costs(self.problem, name) for name in (MOVED_SIZE, CROSSINGS)}
        given = {name: costs for name, costs in known.items() if costs is not None}
        rows = [
            {
                "group": self.problem.group,
                "against": self.against,
                "cost": point.cost,
                "moves": point.moves,
                "spread": None if self.empty else point.spread,
                "bound": None if self.empty else point.bound,
                "knee": place == self.knee,
                **{name: costs.total(point.plan.member_of) for name, costs in given.items()},
            }
            for place, point in enumerate(self.points)
        ]
        return FigureTable(FRONTIER_FIGURES, rows)

    def costs(self, plan: Plan) -> dict[str, int]:
        """Return a plan's units of each known cost of pairs."""
        return costs_of(plan.problem, plan.member_of)


class Curve:
    """Plans and bounds known so far. A plan serves all larger budgets, a bound all smaller ones.

    Parameters
    ----------
    cost : callable
        Returns a plan's units of the cost.
    """

    def __init__(self, plans: list[Plan], cost: CostOf) -> None:
        self.cost = cost
        self._plans: list[Plan] = []  # by rising cost and falling spread
        self._bounds: dict[int, Number] = {}  # lower bounds on the spread, by budget
        self.take(*plans)

    def best(self, budget: int) -> Plan:
        """Return the best plan within a budget; at least one must be known."""
        return self._plans[bisect_right(self._plans, budget, key=self.cost) - 1]

    def bound(self, budget: int) -> Number:
        """Return the proven lower bound on the spread within a budget."""
        proven = max((bound for most, bound in self._bounds.items() if most >= budget), default=0)
        return min(proven, self.best(budget).spread)

    def gap(self, budget: int) -> Number:
        """Return the possible improvement of the spread within a budget, in messages."""
        return self.best(budget).spread - self.bound(budget)

    def take(self, *plans: Plan) -> None:
        """Add plans; keep those that beat all plans of no higher cost."""
        known, self._plans = [*self._plans, *plans], []
        for plan in sorted(known, key=lambda plan: (self.cost(plan), plan.spread)):
            if not self._plans or plan.spread < self._plans[-1].spread:
                self._plans.append(plan)

    def prove(self, budget: int, bound: Number) -> None:
        """Add a lower bound on the spread within a budget."""
        self._bounds[budget] = max(self._bounds.get(budget, 0), bound)

    def points(self, budgets: Iterable[int]) -> list[FrontierPoint]:
        """Return the best plans for these budgets, each once and at its actual cost."""
        plans = {self.cost(plan): plan for plan in map(self.best, sorted(budgets))}
        return [FrontierPoint(plan.moves, plan.spread, self.bound(cost), plan, cost) for cost, plan in plans.items()]


def knee(points: list[FrontierPoint]) -> int:
    """Return the index of the point farthest below the line from the first to the last."""
    first, last = points[0], points[-1]
    across, down = last.cost - first.cost, float(first.spread - last.spread)
    if not across or not down:
        return 0
    below = [float(first.spread - point.spread) / down - (point.cost - first.cost) / across for point in points]
    return below.index(max(below))
