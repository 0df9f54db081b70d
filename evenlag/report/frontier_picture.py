"""Plot of the least spread against moves, crossings or another cost (needs matplotlib)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenlag.compare.curve import Frontier
from evenlag.compare.traffic_price import TrafficPrice
from evenlag.figures import number
from evenlag.model.check import plan_violation
from evenlag.model.objective import CROSSINGS, MOVED_SIZE, units_of
from evenlag.model.plan import current_plan
from evenlag.report.picture import BEST, GREY, LINE, MARKED, TODAY, blank_figure, head, save, tick_label

FAR = 2  # if today's spread exceeds the curve's highest by this factor, it becomes a note at the edge
BEYOND = 0.04  # share of the width by which the line goes on after the last plan


def draw_frontier(curve: Frontier, path: Path, price: TrafficPrice | None = None) -> None:
    """Write `frontier_figure` to a file whose suffix decides the format.

    Raises
    ------
    SourceError
        matplotlib is missing, or the file cannot be written.
    """
    save(frontier_figure(curve, price), path)


def frontier_figure(curve: Frontier, price: TrafficPrice | None = None) -> Any:
    """Return a figure of the frontier, the region that no plan can reach, and today's assignment.

    Parameters
    ----------
    price : TrafficPrice, optional
        If given, crossings are also shown as money per month.

    Raises
    ------
    SourceError
        matplotlib is missing.
    """
    figure, axes = blank_figure(9, 5)
    costs = [point.cost for point in curve.points]
    spreads, bounds = ([float(value) for value in values] for values in zip(
        *((point.spread, point.bound) for point in curve.points), strict=True))  # fmt: skip
    last = costs[-1] + max(BEYOND * (costs[-1] - costs[0]), 0.5)
    axes.fill_between([*costs, last], 0, [*bounds, 0.0], step="pre", color=BEST, alpha=0.12, linewidth=0,
                      label="no plan gets here")  # fmt: skip
    axes.step([*costs, last], [*spreads, spreads[-1]], color=BEST, linewidth=2, label="best plan", where="post")
    if len(costs) <= MARKED:
        axes.plot(costs, spreads, "o", color=BEST, markersize=4)
    _today(axes, curve)
    if len(curve.points) > 2:
        knee = curve.points[curve.knee]
        axes.plot([knee.cost], [float(knee.spread)], "o", color=LINE, markersize=8, zorder=5)
        axes.annotate("knee", (knee.cost, float(knee.spread)), xytext=(8, 6), textcoords="offset points", color=LINE)
    _frame(axes, curve, price)
    return figure


def _today(axes: Any, curve: Frontier) -> None:
    """Mark today's assignment if it is complete; if it lies far above the curve, as a note at the edge."""
    today = current_plan(curve.problem)
    axes.set_ylim(0, max(1.15 * float(curve.points[0].spread), 1.0))
    if plan_violation(today) is not None or not len(today.member_of):
        return
    cost = units_of(today, curve.against)
    spread = float(today.spread)
    if spread > FAR * float(curve.points[0].spread):
        axes.annotate(f"today: {number(today.spread)} ↑", (cost, 0.99), xycoords=("data", "axes fraction"), va="top",
                      ha="center", fontsize=9, color=GREY)  # fmt: skip
        axes.plot([cost], [0], alpha=0)  # invisible: extends the axis to where the note stands
        return
    axes.set_ylim(0, max(1.15 * spread, axes.get_ylim()[1]))
    axes.plot([cost], [spread], "D", color=TODAY, markeredgecolor=GREY, markersize=8, label="today", zorder=4)


def _frame(axes: Any, curve: Frontier, price: TrafficPrice | None) -> None:
    across = "partitions read across racks" if curve.problem.pairs.traffic is None else "traffic across racks"
    cost = {CROSSINGS: across, MOVED_SIZE: "moved size"}.get(curve.against, curve.against)
    head(axes, curve.problem.group, f"least spread for a budget of {cost}")
    axes.set_xlabel(f"budget of {cost}")
    axes.set_ylabel("spread, messages")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(tick_label)
    axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    if price is not None and curve.against == CROSSINGS:
        by = float(price.month(1)) or 1.0
        above = axes.secondary_xaxis("top", functions=(lambda traffic: traffic * by, lambda money: money / by))
        above.set_xlabel(f"per month at {price.text}", fontsize=9)
    axes.legend(frameon=False, fontsize=9)
