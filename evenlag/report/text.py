"""Results as text and tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from evenlag.compare.curve import Frontier
from evenlag.compare.history import Capacity
from evenlag.compare.strategies import MOST_NAMED, OPTIMAL, TODAY, Audit, AuditRow
from evenlag.compare.traffic_price import TrafficPrice
from evenlag.figures import messages, number, percent, quantity, some
from evenlag.model.cards import nobody_takes, why_empty
from evenlag.model.explanation.phrases import listed
from evenlag.model.facts import Facts
from evenlag.model.objective import CROSSINGS, MOVES
from evenlag.model.phases import Phase, Rebalance
from evenlag.model.plan import Plan, plain
from evenlag.model.problem import NOBODY
from evenlag.model.result import Result
from evenlag.report.costs_text import cost_lines, monthly, objective_line, owned_today, traffic_fields
from evenlag.report.sheet import BAR, Bar, Cell, Sheet

MOST_ROWS = 30  # members or moves listed before the rest are counted

# by `Capacity.source`: with all snapshots at hand, and with a past of commits
_SOURCES = {
    "given": "as given",
    "backlog": "the median of {cases} that a member had a backlog",
    "highest": "the highest rate seen; no member ever had a backlog, so they may be faster",
}
_IN_PAST = {
    "backlog": "the median of {cases} in which a member had a backlog, by the commits in {place}",
    "highest": "99 % of {cases} are below, by the commits in {place}; no member ever had a backlog, so they may be "
    "faster",
}


def capacity_origin(capacity: Capacity) -> str:
    """Return the source of the capacity, in words."""
    if capacity.place:
        return _IN_PAST[capacity.source].format(cases=quantity(capacity.cases, "minute"), place=capacity.place)
    return _SOURCES[capacity.source].format(cases=quantity(capacity.cases, "time"))


def plan_report(
    result: Result, worth: Sequence[RenderableType] = (), price: TrafficPrice | None = None
) -> RenderableType:
    """Return the verdict, the figures and the worth of the plan, members before and after, moves, and the proof."""
    empty = result.status == "EMPTY"
    parts: list[RenderableType] = [*_headline(result)]
    if not empty:
        parts += [Text(line) for line in (_figures(result), *cost_lines(result, price))]
    parts += worth
    if not empty:
        parts += [_members(result.plan), _moves(result.plan), *_proof(result)]
    if line := nobody_takes(result.plan.problem, result.unassigned):
        parts.append(Text(line, style="yellow"))
    if result.violation is not None:
        parts.append(Text(f"breaks {result.balance} balance: {result.violation}", style="yellow"))
    parts += [Text(f"note: {warning}", style="yellow") for warning in result.warnings]
    return Group(*parts)


def _headline(result: Result) -> Iterator[Text]:
    """Yield the verdict, the group, and its facts."""
    problem = result.plan.problem
    yield Text(result.verdict, style="bold" if result.objection is None else "bold yellow")
    size = f"{quantity(len(problem.lags), 'partition')}, {quantity(int(problem.active.sum()), 'active member')}"
    yield Text.assemble((problem.group, "bold"), f"  {size}, balance: {result.balance}")
    yield from facts_lines(problem.facts)
    if result.status == "EMPTY":
        yield Text(f"EMPTY: {why_empty(problem)}", style="yellow")


def _figures(result: Result) -> str:
    """Return the spread and the makespan, today and planned, and the moves."""
    sides = [side for side in (owned_today(result.plan), result.plan) if side is not None]
    spread = " → ".join(number(side.spread) for side in sides)
    makespan = " → ".join(number(side.makespan) for side in sides)
    moves = f"{quantity(result.moves, 'move')}, {result.forced_moves:,} newly assigned"
    return f"spread {spread}, makespan {makespan}; {moves}"


def _proof(result: Result) -> Iterator[Text]:
    """Yield the status, the objective with its bound, the rules that limit it, and the search."""
    text = Text()
    text.append(result.status, style="bold green" if result.status == "OPTIMAL" else "bold yellow")
    by = "" if result.attested_by is None else f" (two runs of {result.attested_by} agree)"
    text.append(f"  {objective_line(result)}, bound {number(result.bound)}{by}, gap {percent(result.gap)}")
    yield text
    if result.binding:
        yield Text(f"limited by {', '.join(result.binding)}")
    found = "today's assignment, kept after a search of" if result.left_alone else f"found by {result.method} in"
    stopped = f", stopped by {result.stopped_by}" if result.stopped_by else ""
    yield Text(f"{found} {result.seconds:.2f} s{stopped}")


def _members(plan: Plan) -> Sheet:
    problem, today = plan.problem, owned_today(plan)
    weighted = not problem.equal_weights
    table = Sheet()
    racks = problem.pairs.racks
    table.columns("name", "member", *(["rack"] if racks else []))
    before = ["partitions today", "lag today"] if today is not None else []
    table.columns("figure", *(["weight"] if weighted else []), *before, "partitions", "lag")
    table.columns("bar", "")
    highest = max([*plan.loads.tolist(), *(today.loads.tolist() if today is not None else []), 1])
    order = np.argsort(-plan.loads.astype(np.float64), kind="stable").tolist()
    for m in order[:MOST_ROWS]:
        row: list[Cell] = [problem.members[m], *([racks[m] or "–"] if racks else [])]
        if weighted:
            row.append(f"{float(problem.weights[m]):g}")
        if today is not None:
            row += [f"{today.counts[m]:,}", number(int(today.loads[m]))]
        table.row(*row, f"{plan.counts[m]:,}", number(int(plan.loads[m])), Bar.of(int(plan.loads[m]), highest))
    if len(order) > MOST_ROWS:
        rest = order[MOST_ROWS:]
        table.below(f"… {len(rest):,} more, the lightest with {number(int(plan.loads[rest].min()))}")
    return table


def _moves(plan: Plan) -> RenderableType:
    problem = plan.problem
    moved = np.flatnonzero((problem.owner != NOBODY) & (problem.owner != plan.member_of))
    if not len(moved):
        return Text("")
    table = Sheet()
    racks = problem.pairs.partition_racks
    table.columns("name", "move", "from", "to", *(["racks"] if racks else []))
    table.columns("figure", "lag")
    for p in moved[np.argsort(-problem.lags[moved].astype(np.float64), kind="stable")][:MOST_ROWS]:
        topic, partition = problem.partitions[p]
        source, target = problem.members[problem.owner[p]], problem.members[plan.member_of[p]]
        here = [", ".join(rack or "–" for rack in racks[p] or ("",))] if racks else []
        table.row(f"{topic}-{partition}", source, target, *here, number(int(problem.lags[p])))
    if len(moved) > MOST_ROWS:
        table.below(f"… {len(moved) - MOST_ROWS:,} more")
    return table


def phases_report(rebalance: Rebalance) -> RenderableType:
    """Return the partitions that each member keeps, revokes and gets in each phase, and a summary of the rollback."""
    total = len(rebalance.phases)
    parts: list[RenderableType] = [
        _phase(phase, f"phase {n} of {total}") for n, phase in enumerate(rebalance.phases, start=1)
    ]
    back = rebalance.rollback.phases
    revoked, given = (sum(len(names) for names in lists.values()) for lists in (back[0].revoke, back[-1].assign))
    way = f"rollback: {quantity(len(back), 'phase')}, {quantity(revoked, 'partition')} revoked, {given:,} given back"
    parts.append(Text(way + (f", {revoked - given:,} unowned as before" if revoked > given else "")))
    return Group(*parts)


def _phase(phase: Phase, title: str) -> RenderableType:
    changed = [member for member in phase.problem.members if phase.revoke[member] or phase.assign[member]]
    if not changed:
        return Text(f"{title}: every member keeps its partitions\n")
    table = Sheet(title)
    table.columns("name", "member")
    table.columns("figure", "keeps")
    table.columns("name", "revokes", "gets")
    for member in changed[:MOST_ROWS]:
        lists = [[f"{topic}-{p}" for topic, p in names[member]] for names in (phase.revoke, phase.assign)]
        table.row(member, f"{len(phase.keep[member]):,}", *(some(names) or "–" for names in lists))
    if len(changed) > MOST_ROWS:
        table.below(f"… {len(changed) - MOST_ROWS:,} more")
    if others := len(phase.problem.members) - len(changed):
        table.below(f"unchanged: {quantity(others, 'member')}")
    return table


def audit_report(audit: Audit, price: TrafficPrice | None = None) -> RenderableType:
    """Return one group's strategies compared with the optimum, with the monthly cost of traffic if a price is given."""
    notes = [Text(f"note: {warning}", style="yellow") for warning in audit.problem.warnings]
    scenarios = len(audit.problem.futures)
    title = f"{audit.problem.group}, means over {quantity(scenarios, 'scenario')}" if scenarios else audit.problem.group
    head = Text(audit.verdict, style="bold")
    parts = [
        *facts_lines(audit.problem.facts),
        *(_in_use(row, audit) for row in audit.rows if row.strategy.startswith(TODAY)),
    ]
    return Group(head, _audit_table(audit, title, price), *parts, *notes)


def facts_lines(facts: Facts) -> list[Text]:
    """Return a line with the facts about a group; none if its input has none."""
    line = facts.told()
    return [Text(line)] if line else []


def _in_use(row: AuditRow, audit: Audit) -> Text:
    """Return a sentence that compares today's assignment with the best plan under the balance of its assignor."""
    finding, style = ", for which no best plan is known", "yellow"
    if row.violation is not None:
        finding = f", but it breaks the {row.balance} balance that this assignor promises: {row.violation}"
    elif row.excess is not None:
        (best,) = (each for each in audit.rows if each.strategy == OPTIMAL and each.balance == row.balance)
        share = percent(float(row.excess) / max(float(best.makespan or 0), 1.0))
        above = f"{messages(row.excess)} above the best plan of its balance, {share} of that plan's largest load"
        finding, style = f", {above if row.excess > 0 else 'at the best plan of its balance'}", "bold"
    return Text(row.strategy + finding, style=style)


def _audit_table(audit: Audit, title: str, price: TrafficPrice | None) -> Sheet:
    """Return an audit as a table: strategies with equal figures share a row, columns that no row uses are left out."""
    rows = audit.rows
    priced = any(row.objective != row.spread for row in rows if row.status not in ("EMPTY", "ERROR"))
    more = {
        name: name.replace("_", " ") for name in ("moved_size", "crossings") if any(getattr(row, name) for row in rows)
    }
    table = Sheet(title)
    table.columns("name", "strategy", "balance")
    table.columns("figure", "per member", "spread", *(["objective"] if priced else []), "above best", "above bound")
    table.columns("figure", "moves", *more.values(), *([] if price is None else ["per month"]))
    table.columns("remark", "")
    for row, names, balances in audit.distinct:
        counts = spread = excess = bound_excess = "–"  # if nobody reads the group
        bound = ""
        if row.count_min is not None:
            counts, bound = f"{row.count_min:,}–{row.count_max:,}", f", bound {number(row.bound)}"
            spread, excess, bound_excess = map(number, (row.spread, row.excess, row.bound_excess))
        proof = f"{row.status}{bound}" if row.strategy == OPTIMAL else ""
        wrong = row.error or row.violation
        table.row(
            listed(names[:MOST_NAMED], len(names)), balances, counts, spread,
            *([number(row.objective)] if priced else []), excess, bound_excess,
            number(row.moves), *(number(getattr(row, name)) for name in more),
            *([] if price is None else [number(monthly(row.crossings, price))]),
            Text(wrong or proof, style="yellow" if wrong else "green"), style="bold" if row.strategy == OPTIMAL else "",
        )  # fmt: skip
        if len(names) > MOST_NAMED:
            table.below(f"alike: {', '.join(names)}")
    return table


def frontier_report(curve: Frontier, price: TrafficPrice | None = None) -> RenderableType:
    """Return the spread for each budget as a table with the knee marked; at a price, crossings also cost money."""
    priced = price if curve.against == CROSSINGS else None
    table = Sheet(f"{curve.problem.group}: {curve.title}")
    table.columns("figure", curve.cost_name, *([] if curve.against == MOVES else ["moves"]), "spread", "bound")
    table.columns("figure", *([] if priced is None else ["per month"]))
    table.columns("bar", "")
    highest = max(float(curve.points[0].spread), 1.0)
    for place, point in enumerate(curve.points):
        remark = "← knee" if place == curve.knee and len(curve.points) > 2 else ""
        bar = Bar(round(BAR * float(point.spread) / highest), remark)
        moves = [] if curve.against == MOVES else [f"{point.moves:,}"]
        month = [] if priced is None else [number(monthly(point.cost, priced))]
        table.row(f"{point.cost:,}", *moves, number(point.spread), number(point.bound), *month, bar)
    shown = Text(f"EMPTY: {why_empty(curve.problem)}", style="yellow") if curve.empty else table
    return Group(Text(curve.verdict, style="bold"), shown, *facts_lines(curve.problem.facts))


def frontier_document(curve: Frontier, price: TrafficPrice | None = None) -> dict[str, Any]:
    """Return a frontier as a document for JSON; at a price, also with the monthly cost of crossings."""
    points = []
    for point in curve.points:
        costs = curve.costs(point.plan)
        spread, bound = (None, None) if curve.empty else (plain(point.spread), plain(point.bound))
        points.append(
            {"cost": point.cost, "moves": point.moves, "spread": spread, "bound": bound}
            | ({"costs": costs} if costs else {})
            | traffic_fields(costs.get(CROSSINGS), price)
            | {"assignment": point.plan.listed}
        )
    head = {
        "group": curve.problem.group,
        "facts": curve.problem.facts.to_dict(),
        "verdict": curve.verdict,
        "balance": curve.balance,
        "against": curve.against,
    }
    return head | {"knee": curve.knee, "points": points}
