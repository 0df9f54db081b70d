"""Costs of a plan other than loads, as lines of text: crossings, moved sizes, the user's own costs, money."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from evenlag.compare.traffic_price import TrafficPrice
from evenlag.figures import messages, number, quantity
from evenlag.model.explanation.phrases import priced
from evenlag.model.objective import CROSSINGS, MOVED_SIZE, MOVES, units_of
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY
from evenlag.model.result import Result


def objective_line(result: Result) -> str:
    """Return the objective spelled out: spread or makespan, costs in messages, and the sum."""
    scenarios = len(result.plan.problem.futures)
    kind = f"{result.across} {result.kind} of {quantity(scenarios, 'scenario')}" if scenarios else result.kind
    costs = [(name, result.units_of(name), price) for name, price in result.priced.items()]
    base = result.objective - sum(units * price for _, units, price in costs)
    terms = [
        f"{_units(name, units)} × {priced(price)} message{'' if price == 1 else 's'}"
        for name, units, price in costs if units
    ]  # fmt: skip
    first = f"{kind} {number(base)}"
    return f"{' + '.join([first, *terms])} = {number(result.objective)}" if terms else first


def _units(name: str, count: int) -> str:
    one = {CROSSINGS: "crossing", MOVES: "move"}.get(name)
    return quantity(count, one) if one else f"{count:,} {'moved size' if name == MOVED_SIZE else name}"


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
        yield _money_line(plan, price)
    if result.cost_bounds:
        yield f"first: {'; '.join(_criterion(result, name) for name in result.first)}"
    if result.max_load is not None:
        yield f"no member has more than {messages(result.max_load)} (max_load)"


def _crossings(plan: Plan, cost: int) -> str:
    traffic = plan.problem.pairs.traffic
    if traffic is None:
        return f"crossings: {cost:,} of {quantity(len(plan.problem.lags), 'partition')} read across racks"
    return f"crossings: {cost:,} of {int(traffic.sum()):,} of traffic across racks"


def _criterion(result: Result, name: str) -> str:
    value = result.units_of(name)
    bound = result.cost_bounds[name]
    return f"{name} {value:,}, {'proven' if bound >= value else f'at least {bound:,}'}"


def _money_line(plan: Plan, price: TrafficPrice) -> str:
    """Return a sentence on the monthly cost of traffic across racks, under the plan and today."""
    months = traffic_document(plan, price)
    today = months["today_month"]
    now = "" if today is None else f", today {number(today)}"
    return f"traffic across racks costs {number(months['planned_month'])} per month{now} (at {price.text})"


def traffic_document(plan: Plan, price: TrafficPrice) -> dict[str, Any]:
    """Return the monthly cost of traffic across racks, planned and today (null if no owner is known), for JSON."""
    today = owned_today(plan)
    crossings = None if today is None else units_of(today, CROSSINGS)
    return months_document({"planned_month": units_of(plan, CROSSINGS), "today_month": crossings}, price)


def months_document(traffic: Mapping[str, int | None], price: TrafficPrice) -> dict[str, Any]:
    """Return the price and the monthly cost of each traffic across racks for JSON; null where unknown."""
    months = {name: monthly(amount, price) for name, amount in traffic.items()}
    return {"price": price.text} | {name: None if month is None else float(month) for name, month in months.items()}


def traffic_fields(traffic: int | None, price: TrafficPrice | None) -> dict[str, float | None]:
    """Return the monthly cost of traffic across racks as a JSON field; empty without a price."""
    if price is None:
        return {}
    month = monthly(traffic, price)
    return {"traffic_month": None if month is None else float(month)}


def monthly(traffic: int | None, price: TrafficPrice) -> Fraction | None:
    """Return the monthly cost of traffic across racks; None if the traffic is unknown."""
    return None if traffic is None else price.month(traffic)


def owned_today(plan: Plan) -> Plan | None:
    """Return today's assignment of a plan's group; None if no partition has an owner."""
    return plan.today if (plan.problem.owner != NOBODY).any() else None
