"""HTML cards of problems, plans and results for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from evenlag.figures import number, percent, quantity, some
from evenlag.markup import Bars, Cell, Figure, card, figures, line, notes, table
from evenlag.model.arrays import NOBODY, Ints, held_loads

if TYPE_CHECKING:
    from evenlag.model.plan import Plan
    from evenlag.model.problem import Problem
    from evenlag.model.result import Result

MOST_MEMBERS, MOST_TOPICS, MOST_MOVES = 12, 8, 6  # rows shown before the rest are counted
MOST_NOTES = 8


def problem_card(problem: Problem) -> str:
    """Return a card of a group: today's assignment, its topics, and assumptions."""
    owned = int((problem.owner != NOBODY).sum())
    shown = [("lag", number(problem.total_lag)), ("partitions with an owner", f"{owned:,} of {len(problem.lags):,}")]
    if owned:
        loads = held_loads(problem.lags, problem.owner, len(problem.members))
        shown.insert(1, ("largest lag of a member", number(int(max(loads)))))
    if problem.assignor is not None:
        shown.append(("assignor today", problem.assignor))
    if problem.scenario_weights:
        shown.append(("scenarios", f"{len(problem.scenario_weights):,}"))
    parts = [figures(shown), _topics(problem)]
    if owned:
        parts.append(_members(problem, loads, None, np.bincount(problem.owner[problem.owner != NOBODY])))
    elif problem.members:
        parts.append(line(f"members: {some(problem.members)}"))
    return card(problem.group, _size(problem), *parts, listed_notes(problem.warnings))


def why_empty(problem: Problem) -> str:
    """Return why there is nothing to assign, and what to do about it."""
    if not len(problem.lags):
        return "the group has no partitions, so there is nothing to assign"
    if problem.members:
        return "no member can take anything, so there is nothing to assign"
    return (
        "no member can take anything, because no member of the group is known: take the text or snapshot while its "
        "consumers run, or name them by --members (consumers that assign partitions to themselves, as Flink and Spark "
        "do, are not members)"
    )


def plan_card(plan: Plan) -> str:
    """Return a card of a plan: its figures, its members before and after, and its largest moves."""
    shown = [*_measured(plan, "spread"), ("makespan", number(plan.makespan)), *_moves_made(plan)]
    return card(plan.problem.group, _size(plan.problem), figures(shown), *_details(plan))


def result_card(result: Result) -> str:
    """Return a card of a result: its verdict, its plan's figures, members before and after, largest moves, proof."""
    plan, below = result.plan, f"{_size(result.plan.problem)}, balance {result.balance}"
    if result.status == "EMPTY":
        parts = (line(result.verdict), line(why_empty(plan.problem)))
        return card(plan.problem.group, below, *parts, badge="EMPTY", good=False)
    shown = [*_measured(plan, result.kind), *_moves_made(plan)]
    proof = [("objective", number(result.objective)), ("proven bound", number(result.bound))]
    proof.append(("gap", percent(result.gap)))
    shown += [(name.replace("_", " "), f"{cost:,}") for name, cost in result.costs.items()]
    if result.pays is not None:
        shown.append(("pays", "yes" if result.pays else "no"))
    found = f"found by {result.method} in {result.seconds:.2f} s"
    if result.left_alone:
        found = "today's assignment: the best plan found does not pay"
    if result.stopped_by is not None:
        found += f", stopped by {result.stopped_by}"
    if result.binding:
        found += f"; limited by {', '.join(result.binding)}"
    remarks = list(result.warnings)
    if result.violation is not None:
        remarks.insert(0, f"breaks {result.balance} balance: {result.violation}")
    shown_first = (line(result.verdict), figures(shown), line(_scenarios(result)))
    rest = (*_details(plan), figures(proof), line(found), listed_notes(remarks))
    return card(
        plan.problem.group, below, *shown_first, *rest, badge=str(result.status), good=result.status == "OPTIMAL"
    )


def listed_notes(texts: Sequence[str]) -> str:
    """Return notes as a list, limited to the first ones."""
    more = len(texts) - MOST_NOTES
    return notes([*texts[:MOST_NOTES], *([f"… {more:,} more notes"] if more > 0 else [])])


def _size(problem: Problem) -> str:
    topics = quantity(len(problem.topics) + len(problem.empty_topics), "topic")
    return f"{quantity(len(problem.lags), 'partition')} of {topics}, {quantity(len(problem.members), 'member')}"


def _measured(plan: Plan, what: str) -> list[tuple[str, str]]:
    """Return the spread or the makespan, with today's value if any partition has an owner."""
    planned = number(plan.spread if what == "spread" else plan.makespan)
    if (plan.problem.owner == NOBODY).all():
        return [(what, planned)]
    today = number(plan.today.spread if what == "spread" else plan.today.makespan)
    return [(f"{what} today", today), (f"{what} planned", planned)]


def _scenarios(result: Result) -> str:
    """Return a line on the objective if there are scenarios, because the other figures are by current lags."""
    count = len(result.plan.problem.scenario_weights)
    return f"objective: the {result.across} {result.kind} of {quantity(count, 'scenario')}, moves paid" if count else ""


def _moves_made(plan: Plan) -> list[tuple[str, str]]:
    forced = [("newly assigned", f"{plan.forced_moves:,}")] if plan.forced_moves else []
    return [("moves", f"{plan.moves:,}"), *forced]


def _details(plan: Plan) -> list[str]:
    problem = plan.problem
    today = plan.today.loads if (problem.owner != NOBODY).any() else None
    unassigned = line(nobody_takes(plan.problem, plan.unassigned))
    return [_members(problem, plan.loads, today, plan.counts), _moves(plan), unassigned]


def nobody_takes(problem: Problem, unassigned: Sequence[tuple[str, int]]) -> str:
    """Return a line on partitions to whose topics no member subscribes, without those left over; "" for none."""
    names = [f"{topic}-{partition}" for topic, partition in unassigned if topic not in problem.facts.left_over_topics]
    if not names or not problem.members:
        return ""
    return f"no member subscribes to {some(names)}"


def _members(problem: Problem, loads: Ints, before: Ints | None, counts: Ints) -> str:
    """Return the members by falling load, each with a thin bar for its load today if known."""
    highest = max(int(max(loads, default=0)), int(max(before, default=0)) if before is not None else 0, 1)
    order = np.argsort(-loads.astype(np.float64), kind="stable").tolist()
    weighted = not problem.equal_weights
    rows: list[list[Cell]] = []
    for m in order[:MOST_MEMBERS]:
        load, was = int(loads[m]), None if before is None else int(before[m])
        row: list[Cell] = [problem.members[m]]
        row += [Figure(f"{float(problem.weights[m]):g}")] if weighted else []
        row += [] if was is None else [Figure(number(was))]
        count = int(counts[m]) if m < len(counts) else 0
        bars = Bars(load / highest, None if was is None else was / highest)
        rows.append([*row, Figure(number(load)), Figure(f"{count:,}"), bars])
    known = ["lag"] if before is None else ["lag today", "lag planned"]
    legend = "" if before is None else "today (thin) and planned"
    headers = ["member", *(["weight"] if weighted else []), *known, "partitions", legend]
    more = ""
    if rest := order[MOST_MEMBERS:]:
        low, high = number(int(min(loads[rest]))), number(int(max(loads[rest])))
        more = f"… {len(rest):,} more, with a lag of {low} to {high} each"
    return table(headers, rows, right=range(1, len(headers) - 1)) + line(more)


def _topics(problem: Problem) -> str:
    """Return the topics by falling lag, each with its largest partition."""
    sums = [int(problem.lags[problem.topic_slice(t)].sum()) for t in range(len(problem.topics))]
    order = sorted(range(len(sums)), key=lambda t: -sums[t])
    highest = max([*sums, 1])
    rows: list[list[Cell]] = []
    for t in order[:MOST_TOPICS]:
        here = problem.topic_slice(t)
        hottest = here.start + int(np.argmax(problem.lags[here]))
        share = f"{problem.partition_ids[hottest]}: {number(int(problem.lags[hottest]))}" if sums[t] else "–"
        size, bar = Figure(f"{problem.topic_sizes[t]:,}"), Bars(sums[t] / highest)
        rows.append([problem.topics[t], size, Figure(number(sums[t])), bar, Figure(share)])
    more = f"… {quantity(len(order) - MOST_TOPICS, 'topic')} more" if len(order) > MOST_TOPICS else ""
    headers = ["topic", "partitions", "lag", "", "largest partition"]
    return (table(headers, rows, right=(1, 2, 4)) + line(more)) if rows else ""


def _moves(plan: Plan) -> str:
    """Return the largest moves, by falling lag."""
    problem = plan.problem
    moved = np.flatnonzero((problem.owner != NOBODY) & (problem.owner != plan.member_of))
    if not len(moved):
        return ""
    rows: list[list[Cell]] = []
    for p in moved[np.argsort(-problem.lags[moved].astype(np.float64), kind="stable")][:MOST_MOVES].tolist():
        topic, partition = problem.partitions[p]
        target = plan.member_of[p]
        to = "nobody" if target == NOBODY else problem.members[target]
        rows.append(
            [f"{topic}-{partition}", Figure(number(int(problem.lags[p]))), problem.members[problem.owner[p]], to]
        )
    more = f"… {quantity(len(moved) - MOST_MOVES, 'more move')}" if len(moved) > MOST_MOVES else ""
    return table(["moves", "lag", "from", "to"], rows, right=(1,)) + line(more)
