"""What-if comparisons as tables for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from evenlag.compare.before_after import WhatIf
from evenlag.compare.traffic_price import TrafficPrice
from evenlag.figures import duration, number, percent, quantity
from evenlag.model.objective import CROSSINGS, Objective
from evenlag.model.plan import Number, Plan, whole
from evenlag.model.result import Result
from evenlag.report.costs_text import monthly, months_document
from evenlag.report.sheet import Bar, Sheet
from evenlag.report.text import MOST_ROWS, facts_lines


def whatif_report(found: WhatIf, price: TrafficPrice | None = None) -> RenderableType:
    """Return the verdict, the figures of the group and its members, today, before and after the change, and notes.

    With a price, the figures include the monthly cost of traffic across racks.
    """
    verdict = Text(found.verdict, style="bold")
    group = Text(found.before.plan.problem.group, style="bold")
    notes = [Text(f"note: {note}", style="yellow") for note in _notes(found)]
    facts = facts_lines(found.before.plan.problem.facts)
    return Group(verdict, group, *facts, _figures(found, price), _members(found), _proofs(found), *notes)


def _notes(found: WhatIf) -> Iterable[str]:
    notes = (*found.notes, *found.before.warnings, *found.after.warnings)
    yield from dict.fromkeys(notes)
    for when, result in (("before", found.before), ("after", found.after)):
        left_over = result.plan.problem.facts.left_over_topics
        if without := sum(topic not in left_over for topic, _ in result.unassigned):
            yield f"{when}: {quantity(without, 'partition')} without a subscriber"
        if result.violation is not None:
            yield f"{when}: breaks {result.balance} balance: {result.violation}"


def _figures(found: WhatIf, price: TrafficPrice | None) -> Sheet:
    today, before, after = found.today, found.before, found.compared
    table = Sheet()
    table.columns("name", "")
    table.columns("figure", *(["today"] if today is not None else []), "before", "after", "change")

    def line(name: str, of: Callable[[Result], str], now: str = "–") -> None:
        table.row(name, *([] if today is None else [now]), of(before), of(after), "")

    def figure(name: str, of: Callable[[Plan], Number], in_unit: Callable[[Number], Number] = whole) -> None:
        then, now = of(before.plan), in_unit(of(after.plan))
        mine = [] if today is None else [number(of(today))]
        table.row(name, *mine, number(then), number(now), _difference(then, now))

    figure("makespan", lambda plan: plan.makespan, found.in_unit)
    if (times := found.drain_seconds) is not None:
        shown = {side: "never" if time is None else duration(time) for side, time in times.items()}
        table.row("time to drain", *([] if today is None else [shown["today"]]), shown["before"], shown["after"], "")
    figure("spread", lambda plan: plan.spread, found.in_unit)
    table.section()
    figure("partitions", lambda plan: len(plan.problem.lags))
    figure("active members", lambda plan: int(plan.problem.active.sum()))
    counts = "" if today is None else _counts(today)
    line("partitions per member", lambda result: _counts(result.plan), counts)
    line("balance", lambda result: str(result.balance))
    table.section()
    if before.plan.problem.futures:
        goal = Objective(before.kind, across=before.across)
        figure(f"{goal.across} {goal.kind} of scenarios", goal.base, found.in_unit)
    line("moves", lambda result: f"{result.moves:,}")
    line("newly assigned", lambda result: f"{result.forced_moves:,}")
    for name in {**before.costs, **after.costs}:
        _cost(line, found, name)
    if price is not None:
        now = number(monthly(found.costs_today.get(CROSSINGS), price))
        line("traffic per month", lambda result: number(monthly(result.crossings, price)), now)
    return table


def _proofs(found: WhatIf) -> Sheet:
    """Return the table of objectives, bounds and gaps of both plans."""
    sides = (found.before, found.compared)
    table = Sheet()
    table.columns("name", "")
    table.columns("figure", "before", "after")
    table.row("status", *(str(side.status) for side in sides))
    table.row("objective", *(number(side.objective) for side in sides))
    table.row("bound", *(number(side.bound) for side in sides))
    table.row("gap", *(percent(side.gap) for side in sides))
    table.row("limited by", *("\n".join(side.binding) or "–" for side in sides))
    return table


def _cost(line: Callable[..., None], found: WhatIf, name: str) -> None:
    """Add the line of one cost of pairs."""
    now = found.costs_today.get(name)
    line(
        name.replace("_", " "),
        lambda result: "–" if name not in result.costs else f"{result.costs[name]:,}",
        "–" if now is None else f"{now:,}",
    )


def _members(found: WhatIf) -> Sheet:
    plans = [plan for plan in (found.today, found.before.plan, found.after.plan) if plan is not None]
    before, after = found.before.plan, found.after.plan
    weighted = not (before.problem.equal_weights and after.problem.equal_weights)
    names = ("today", "before", "after")[-len(plans) :]
    table = Sheet()
    table.columns("name", "member")
    table.columns("figure", *(["weight"] if weighted else []), "partitions", *(f"lag {name}" for name in names))
    table.columns("bar", "")
    loads = [dict(zip(plan.problem.members, plan.loads.tolist(), strict=True)) for plan in plans]
    counts = [dict(zip(plan.problem.members, plan.counts.tolist(), strict=True)) for plan in (before, after)]
    weights = [dict(zip(p.problem.members, p.problem.weights, strict=True)) for p in (before, after)]
    highest = max((load for each in loads for load in each.values()), default=1) or 1
    everybody = {*before.problem.members, *after.problem.members}
    order = sorted(everybody, key=lambda name: (-loads[-1].get(name, -1), name))
    for name in order[:MOST_ROWS]:
        load = loads[-1].get(name)
        remark = "gone" if load is None else "" if name in counts[0] else "new"
        bar = Bar.of(load or 0, highest, remark)
        figures = [_pair([f"{float(each[name]):g}" if name in each else "–" for each in weights])] if weighted else []
        figures.append(_pair([f"{each[name]:,}" if name in each else "–" for each in counts]))
        figures += [number(each[name]) if name in each else "–" for each in loads]
        table.row(name, *figures, bar)
    if len(order) > MOST_ROWS:
        table.below(f"… {len(order) - MOST_ROWS:,} more")
    return table


def _counts(plan: Plan) -> str:
    counts = plan.counts[plan.problem.active]
    return f"{counts.min():,}–{counts.max():,}" if len(counts) else "–"


def _pair(sides: list[str]) -> str:
    return sides[0] if sides[0] == sides[1] else " → ".join(sides)


def _difference(before: Number, after: Number) -> str:
    if before == after:
        return ""
    sign, by = ("+", after - before) if after > before else ("−", before - after)
    share = f" ({sign}{float(by) / float(before):.0%})".replace("%", " %") if before else ""
    return f"{sign}{number(by)}{share}"


def whatif_traffic(found: WhatIf, price: TrafficPrice) -> dict[str, Any]:
    """Return the monthly cost of traffic across racks today, before and after, for JSON; null where unknown."""
    sides = {"today": found.costs_today, "before": found.before.costs, "after": found.after.costs}
    return months_document({f"{when}_month": side.get(CROSSINGS) for when, side in sides.items()}, price)
