"""The document behind a group's page, which is also what `evenlag report --json` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenlag.compare.drain import NEVER
from evenlag.compare.overview import Overview, times_ahead
from evenlag.compare.strategies import CURRENT, OPTIMAL
from evenlag.model.plan import Plan, current_plan, plain
from evenlag.model.problem import NOBODY
from evenlag.report.costs_text import cost_lines
from evenlag.report.explanation_text import ON_MOVES
from evenlag.report.payoff_text import payoff_document
from evenlag.report.size_text import answer_to

MOST_CHANGES = 50_000  # most changes of owner in all plans of a frontier: some 500 kB
SHOWN = (
    "strategy", "balance", "status", "spread", "objective", "bound", "excess", "moves", "count_min", "count_max",
    "crossings", "violation", "error",
)  # fmt: skip
WHY = ("objective", "bound", "largest load", "smallest load", "limit", "first", "fewest moves", "ceiling")  # claims
MOST_TRIED = 1_000  # most moves for which the page lists the gain of each


def group_document(seen: Overview, source: str, notes: Sequence[str] = (), options: str = "") -> dict[str, Any]:
    """Return the document of a group's page.

    Parameters
    ----------
    seen : Overview
    source : str
        Where the group was read from, as given; shown in the commands that the page suggests.
    notes : sequence of str
        Assumptions made while reading.
    options : str
        Options of the plan as given; shown in these commands too.
    """
    result, problem, today = seen.result, seen.problem, seen.today
    explanation = result.explain()
    claims = [(claim.kind, text) for claim, text in zip(explanation.claims, explanation.sentences, strict=True)]
    headline, *reasons = [sentence for kind, sentence in claims if kind not in ON_MOVES]
    certified = result.to_dict()
    del certified["certificate"], certified["assignment"]
    return {
        "kind": "group",
        "group": problem.group,
        "source": source,
        "options": options,
        "diagnosis": seen.diagnosis.to_dict(),
        "headline": headline,
        "reasons": reasons,
        "result": certified,
        "costs": list(cost_lines(result)),
        "members": _members(seen),
        "partitions": _partitions(result.plan),
        "strategies": _strategies(seen),
        "moves": _moves(result.plan),
        "frontier": _frontier(seen),
        "drain": payoff_document(result.payoff, seen.pace) if result.payoff is not None else None,
        "size": None if seen.size is None else {**seen.size.to_dict(), "answer": answer_to(seen.size)},
        "forecast": _forecast(seen),
        "today": None if today is None else {"spread": plain(today.spread), "makespan": plain(today.makespan)},
        "assumptions": list(dict.fromkeys([*filter(None, [problem.facts.told()]), *notes, *result.warnings])),
        "missing": list(seen.notes),
        "explanation": [sentence for kind, sentence in claims if kind in WHY],
    }


def _members(seen: Overview) -> list[dict[str, Any]]:
    """Return each member's share today and planned; the latter alone if no partition has an owner."""
    problem, racks = seen.problem, seen.problem.pairs.racks
    planned = _shares(seen.result.plan, seen)
    before = [None] * len(planned) if seen.today is None else _shares(seen.today, seen)
    rows = zip(problem.members, problem.weights, planned, before, strict=True)
    return [
        {"member": name, "weight": float(weight), "planned": share, "today": today}
        | ({"rack": racks[m]} if racks else {})
        for m, (name, weight, share, today) in enumerate(rows)
    ]


def _shares(plan: Plan, seen: Overview) -> list[dict[str, Any]]:
    """Return each member's partitions, lag in messages and, if known, seconds to read it; null is never."""
    times = seen.pace.member_seconds(plan)
    shares: list[dict[str, Any]] = [
        {"partitions": count, "lag": int(load)}
        for count, load in zip(plan.counts.tolist(), plan.loads.tolist(), strict=True)
    ]
    for share, time in zip(shares, times or (), strict=False):
        share["seconds"] = None if time == NEVER else float(time)
    return shares


def _partitions(plan: Plan) -> list[list[Any]]:
    """Return `[topic, partition, lag, owner, member]` of each partition; members by index, -1 for none."""
    problem = plan.problem
    rows = zip(problem.partitions, problem.lags.tolist(), problem.owner.tolist(), plan.member_of.tolist(), strict=True)
    return [[topic, partition, int(lag), owner, member] for (topic, partition), lag, owner, member in rows]


def _strategies(seen: Overview) -> list[dict[str, Any]]:
    """Return the audit's rows, the optima first, then today's assignment and the published strategies by spread."""
    rows: list[dict[str, Any]] = [{name: getattr(row, name) for name in SHOWN} for row in seen.audit.rows]
    for row in rows:
        row["balance"], row["status"] = str(row["balance"]), str(row["status"])
    first = {OPTIMAL: 0, CURRENT: 1}
    rows.sort(key=lambda row: (first.get(row["strategy"], 1 if ":" in row["strategy"] else 2),
                               float("inf") if row["spread"] is None else row["spread"]))  # fmt: skip
    return rows


def _moves(plan: Plan) -> list[dict[str, Any]]:
    """Return what moves, the most lag first, each with the spread in messages that the plan would have without it."""
    problem = plan.problem
    moved = np.flatnonzero((plan.member_of != NOBODY) & (problem.owner != plan.member_of))
    moved = moved[np.argsort(-problem.lags[moved].astype(np.float64), kind="stable")]
    rows: list[dict[str, Any]] = []
    for p in moved.tolist():
        topic, partition = problem.partitions[p]
        owner = int(problem.owner[p])
        row: dict[str, Any] = {"topic": topic, "partition": partition, "lag": int(problem.lags[p]),
               "from": None if owner == NOBODY else problem.members[owner],
               "to": problem.members[plan.member_of[p]]}  # fmt: skip
        if owner != NOBODY and len(rows) < MOST_TRIED:
            member_of = plan.member_of.copy()
            member_of[p] = owner
            row["spread_without"] = plain(Plan(problem, member_of).spread)
        rows.append(row)
    return rows


def _frontier(seen: Overview) -> dict[str, Any] | None:
    """Return the frontier. A point's plan lists its changes of owners, as indices `[partition, member]`.

    Large groups have plans only at some of the points.
    """
    curve = seen.frontier
    if curve is None:
        return None
    points: list[dict[str, Any]] = []
    changed = [np.flatnonzero(point.plan.member_of != curve.problem.owner).tolist() for point in curve.points]
    every = max(-(-sum(map(len, changed)) // MOST_CHANGES), 1)
    for place, (point, parts) in enumerate(zip(curve.points, changed, strict=True)):
        row = {"moves": point.moves, "spread": plain(point.spread), "bound": plain(point.bound)}
        if place % every == 0 or place in (curve.knee, len(changed) - 1):
            row["changes"] = [[p, int(point.plan.member_of[p])] for p in parts]
        points.append(row)
    return {"knee": curve.knee, "balance": str(curve.balance), "points": points}


def _forecast(seen: Overview) -> dict[str, Any] | None:
    """Return the largest lag of a member in the past, as recorded, and ahead, today and planned; None if unknown."""
    today = seen.today
    if today is None or seen.pace.capacity is None:
        return None
    times = times_ahead([today, seen.result.plan], seen.pace)
    if not times:
        return None
    last = seen.record[-1].micros if seen.record else 0
    past = [[(each.micros - last) / 1e6, float(current_plan(each.problem).makespan)] for each in seen.record]
    return {
        "past": past,
        "seconds": [float(time) for time in times],
        "today": seen.pace.lags_ahead(today, times),
        "planned": seen.pace.lags_ahead(seen.result.plan, times),
        "rates": "record" if seen.pace.rates is not None else "none",
    }
