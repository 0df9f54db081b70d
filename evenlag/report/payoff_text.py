"""Text on whether a plan pays: its saving, the cost of its moves, and the time to catch up."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from rich.text import Text

from evenlag.compare.catch_up import Pace
from evenlag.figures import duration, messages, percent
from evenlag.model.check import plan_violation
from evenlag.model.payoff import Payoff
from evenlag.model.plan import current_plan
from evenlag.report.replay_text import capacity_line


def payoff_report(worth: Payoff, pace: Pace, pause_assumed: bool) -> list[Text]:
    """Return the plan's saving, the time to catch up, the cost of its moves, and whether it pays if that was asked."""
    lines = [Text(line) for line in _lines(worth, pace, pause_assumed)]
    if worth.pays is not None:
        verdict = "it pays" if worth.pays else "the group is left alone"
        lines.append(Text(f"{verdict}: {worth.reason}", style="bold green" if worth.pays else "bold yellow"))
    return lines


def payoff_document(worth: Payoff, pace: Pace) -> dict[str, Any] | None:
    """Return the times to catch up for JSON, in seconds; None if the members' rate of reading is unknown."""
    if pace.capacity is None:
        return None
    today, planned = pace.seconds(current_plan(worth.plan.problem)), pace.seconds(worth.plan)
    return {
        "capacity": float(pace.capacity.rate),
        "capacity_source": pace.capacity.source,
        "today_seconds": None if today is None else float(today),
        "planned_seconds": None if planned is None else float(planned),
    }


def _lines(worth: Payoff, pace: Pace, pause_assumed: bool) -> Iterator[str]:
    if worth.unchanged:
        return
    current = current_plan(worth.plan.problem)
    comparable = plan_violation(current) is None  # otherwise today's loads lack the unowned partitions
    if comparable:
        gain = worth.today - worth.planned
        share = f" ({percent(float(gain / worth.today))})" if gain > 0 else ""
        saved = f"saves {messages(gain)}" if gain >= 0 else f"adds {messages(-gain)}"
        found = "" if worth.pays is not False else "the plan that was found "
        yield f"{found}{saved} of {worth.what}{share}"
    if pace.capacity is not None and comparable:
        yield _catching_up(pace.seconds(worth.plan), pace.seconds(current))
        yield capacity_line(pace.capacity)
    if worth.moves:
        still = f"{worth.moves:,} partition{' is' if worth.moves == 1 else 's are'} not read during the pause"
        pause = f"{float(worth.pause):g} s{', assumed' if pause_assumed else ''}"
        arrive = "arrives" if worth.pause_cost == 1 else "arrive"
        coming = "" if worth.pause_cost is None else f", in which {messages(worth.pause_cost)} {arrive}"
        yield f"its moves cost {messages(worth.move_cost)}, and {still} ({pause}){coming}"


def _catching_up(planned: Fraction | None, today: Fraction | None) -> str:
    """Return a sentence on the times to catch up; None is never."""
    if planned is None:
        then = "nor does today's assignment" if today is None else f"today's assignment has after {duration(today)}"
        return f"the plan never catches up; {then}"
    now = (
        "as today" if planned == today else "today's assignment never" if today is None else f"today {duration(today)}"
    )
    return f"caught up after {duration(planned)}; {now}"
