"""Costs of a plan other than loads, as lines of text: crossings, moved sizes, the user's own costs, money."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evenlag.compare.traffic_price import TrafficPrice
from evenlag.figures import number, quantity
from evenlag.model.objective import CROSSINGS, MOVED_SIZE, MOVES, units_of
from evenlag.model.plan import Number, Plan, current_plan
from evenlag.model.problem import NOBODY
from evenlag.model.result import Result


def objective_line(result: Result, kind: str) -> str:
    """Return the objective spelled out: spread or makespan under the name `kind`, costs in messages, and the sum."""
    priced = [(name, result.units_of(name), price) for name, price in result.priced.items()]
    parts = [(_units(name, units), units, price) for name, units, price in priced]
    base = result.objective - sum(units * price for _, units, price in parts)
    terms = [f"{name} × {_price(price)} message{'' if price == 1 else 's'}" for name, units, price in parts if units]
    first = f"{kind} {number(base)}"
    return f"{' + '.join([first, *terms])} = {number(result.objective)}" if terms else first


def _units(name: str, count: int) -> str:
    one = {CROSSINGS: "crossing", MOVES: "move"}.get(name)
    return quantity(count, one) if one else f"{count:,} {'moved size' if name == MOVED_SIZE else name}"


def _price(price: Number) -> str:
    """Return a price in messages; one below 10 gets three significant digits, as prices of bytes are small."""
    return f"{float(price):.3g}" if price < 10 and price != int(price) else number(price)


def cost_lines(result: Result, price: TrafficPrice | None = None) -> Iterator[str]:
    """Yield a line for each known cost, and for the criteria optimized first."""
    plan, problem = result.plan, result.plan.problem
    owned = bool((problem.owner != NOBODY).any())
    for name, cost in result.costs.items():
        if name == MOVED_SIZE:
            everything = int(problem.pairs.move_sizes[problem.owner != NOBODY].sum())  # type: ignore[index]
            yield f"moved size {cost:,} of {everything:,}" if owned else f"moved size {cost:,}"
            continue
        units = units_of(plan.today, name) if owned else None
        today = "" if units is None else f", today {units:,}"
        yield f"{_crossings(plan, cost) if name == CROSSINGS else f'{name} {cost:,}'}{today}"
    if price is not None:
        yield money_line(plan, price)
    if result.cost_bounds:
        yield f"first: {'; '.join(_criterion(result, name) for name in result.first)}"
    if result.max_load is not None:
        yield f"no member has more than {number(result.max_load)} messages (max_load)"


def _crossings(plan: Plan, cost: int) -> str:
    traffic = plan.problem.pairs.traffic
    if traffic is None:
        return f"crossings: {cost:,} of {quantity(len(plan.problem.lags), 'partition')} read across racks"
    return f"crossings: {cost:,} of {int(traffic.sum()):,} of traffic across racks"


def _criterion(result: Result, name: str) -> str:
    value = result.units_of(name)
    bound = result.cost_bounds[name]
    return f"{name} {value:,}, {'proven' if bound >= value else f'at least {bound:,}'}"


def money_line(plan: Plan, price: TrafficPrice) -> str:
    """Return a sentence on the monthly cost of traffic across racks, under the plan and today."""
    months = traffic_document(plan, price)
    today = months["today_month"]
    now = "" if today is None else f", today {number(today)}"
    return f"traffic across racks costs {number(months['planned_month'])} per month{now} (at {price.text})"


def traffic_document(plan: Plan, price: TrafficPrice) -> dict[str, Any]:
    """Return the monthly cost of traffic across racks, planned and today (null if no owner is known), for JSON."""
    today = current_plan(plan.problem) if (plan.problem.owner != NOBODY).any() else None
    return {
        "price": price.text,
        "planned_month": _month(plan, price),
        "today_month": None if today is None else _month(today, price),
    }


def traffic_fields(traffic: int | None, price: TrafficPrice | None) -> dict[str, float | None]:
    """Return the monthly cost of traffic across racks as a JSON field; empty without a price."""
    if price is None:
        return {}
    return {"traffic_month": None if traffic is None else float(price.month(traffic))}


def _month(plan: Plan, price: TrafficPrice) -> float | None:
    traffic = units_of(plan, CROSSINGS)
    return None if traffic is None else float(price.month(traffic))
