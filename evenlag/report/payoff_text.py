"""Text on whether a plan pays: its saving, the cost of its moves, and the time to catch up."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from rich.text import Text

from evenlag.compare.catch_up import Pace
from evenlag.figures import duration, number, percent
from evenlag.model.check import plan_violation
from evenlag.model.payoff import Payoff
from evenlag.model.plan import current_plan
from evenlag.report.replay_text import capacity_line


def payoff_report(worth: Payoff, pace: Pace) -> list[Text]:
    """Return the plan's saving, the cost of its moves, the time to catch up, and the verdict if one was asked for."""
    lines = [Text(line) for line in _lines(worth, pace)]
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


def _lines(worth: Payoff, pace: Pace) -> Iterator[str]:
    if worth.unchanged:
        return
    current = current_plan(worth.plan.problem)
    comparable = plan_violation(current) is None  # otherwise today's loads lack the unowned partitions
    if comparable:
        gain = worth.today - worth.planned
        share = f" ({percent(float(gain / worth.today))})" if gain > 0 else ""
        saved = f"saves {number(gain)} messages" if gain >= 0 else f"adds {number(-gain)} messages"
        found = "" if worth.pays is not False else "the plan that was found "
        makespan = f"makespan {number(current.makespan)} → {number(worth.plan.makespan)}"
        yield f"{found}{saved} of {worth.what}{share}, {makespan}"
    if worth.moves:
        stand = "partition is" if worth.moves == 1 else "partitions are"
        still = f"{worth.moves:,} {stand} not read for {float(worth.pause):g} s"
        coming = "" if worth.pause_cost is None else f", during which {number(worth.pause_cost)} messages arrive"
        yield f"its moves cost {number(worth.move_cost)} messages, and {still}{coming}"
    if pace.capacity is not None and comparable:
        yield (
            f"caught up after {_time(pace.seconds(worth.plan))} instead of {_time(pace.seconds(current))}; "
            f"{capacity_line(pace.capacity)}"
        )


def _time(seconds: Fraction | None) -> str:
    return "never" if seconds is None else duration(seconds)
