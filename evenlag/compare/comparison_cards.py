"""HTML cards of audits and frontiers for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenlag.figures import number, percent, quantity
from evenlag.markup import Bars, Cell, Figure, Remark, card, figures, line, table
from evenlag.model.cards import listed_notes
from evenlag.model.explanation.phrases import joined

if TYPE_CHECKING:
    from evenlag.compare.curve import Frontier
    from evenlag.compare.strategies import Audit

MOST_POINTS = 16  # rows shown at most, about


def audit_card(audit: Audit) -> str:
    """Return a card with every strategy next to the best plan under the balance that it promises."""
    problem = audit.problem
    highest = max([float(row.spread) for row in audit.rows if row.spread is not None], default=0.0) or 1.0
    rows: list[list[Cell]] = []
    for row, names, balances in audit.distinct:
        proof = f"{row.status}, gap {percent(row.gap)}" if row.gap is not None else ""
        wrong = row.error or row.violation
        counts = "–" if row.count_min is None else f"{row.count_min:,}–{row.count_max:,}"
        spread, bar = Figure(number(row.spread)), Bars(float(row.spread or 0) / highest)
        moves, remark = Figure("–" if row.moves is None else f"{row.moves:,}"), Remark(wrong or proof, not wrong)
        cells: list[Cell] = [joined(names), balances, Figure(counts), spread, bar, Figure(number(row.excess))]
        rows.append([*cells, moves, remark])
    best = [place for place, alike in enumerate(audit.distinct) if alike.row.strategy == "optimal"]
    headers = ["strategy", "balance", "per member", "spread", "", "above best", "moves", ""]
    size = f"{quantity(len(problem.lags), 'partition')}, {quantity(len(problem.members), 'member')}"
    shown = figures(_headline(audit))
    return card(
        problem.group, f"audit of {size}", line(audit.verdict), shown,
        table(headers, rows, right=(2, 3, 5, 6), best=best), listed_notes(problem.warnings),
    )  # fmt: skip


def _headline(audit: Audit) -> list[tuple[str, str]]:
    """Return today's spread, and the best spread under the first balance."""
    today = [("spread today", number(row.spread)) for row in audit.rows if row.strategy == "current"]
    best = [(f"best, balance {balance}", number(result.spread)) for balance, result in audit.optima.items()]
    return today + best[:1]


def frontier_card(curve: Frontier) -> str:
    """Return a card with the least spread for each budget of the cost, with the knee marked."""
    highest = max([float(point.spread) for point in curve.points], default=0.0) or 1.0
    last = len(curve.points) - 1
    step = max(-(-len(curve.points) // MOST_POINTS), 1)
    places = [place for place in range(last + 1) if place % step == 0 or place in (curve.knee, last)]
    rows: list[list[Cell]] = []
    for place in places:
        point = curve.points[place]
        knee = Remark("knee: a larger budget brings little", True) if place == curve.knee and last > 1 else ""
        spread, bound = Figure(number(point.spread)), Figure(number(point.bound))
        rows.append([Figure(f"{point.cost:,}"), spread, bound, Bars(float(point.spread) / highest), knee])
    shown = table(
        [curve.cost_name, "spread", "proven bound", "", ""], rows, right=(0, 1, 2), best=[places.index(curve.knee)]
    )
    left = len(curve.points) - len(places)
    more = line(f"{quantity(left, 'point')} between these are not shown" if left else "")
    return card(
        curve.problem.group,
        f"{curve.title}, balance {curve.balance}",
        line(curve.verdict),
        "" if curve.empty else shown,
        more,
    )
