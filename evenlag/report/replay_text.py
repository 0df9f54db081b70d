"""Replays as tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from evenlag.compare.history import Capacity
from evenlag.compare.replay_result import RECORDED, Replay
from evenlag.figures import duration, messages, number, percent, quantity
from evenlag.report.sheet import Sheet
from evenlag.report.text import capacity_origin, facts_lines


def replay_report(replayed: Replay) -> RenderableType:
    """Return the verdict, the record, the table of strategies, the check of the model, and notes."""
    verdict = Text(replayed.verdict, style="bold green" if replayed.best else "bold")
    head = Text(f"{replayed.group}", style="bold")
    snapshots = quantity(replayed.snapshots, "snapshot")
    head.append(f"  {snapshots} from {replayed.since} to {replayed.until}\n", style="not bold")
    head.append(capacity_line(replayed.capacity), style="not bold")
    model = next((row.mean_lag for row in replayed.summary if row.strategy == RECORDED), None)
    check = f"check of the model: mean lag {number(replayed.recorded_lag)} as recorded, {number(model)} replayed"
    notes = [Text(f"note: {note}", style="yellow") for note in replayed.notes]
    return Group(verdict, head, *facts_lines(replayed.facts), strategies_table(replayed), Text(check), *notes)


def capacity_line(capacity: Capacity) -> str:
    """Return a sentence with the members' rate of reading and its source."""
    return f"members read {messages(float(capacity.rate))} per second (weight 1): {capacity_origin(capacity)}"


def strategies_table(replayed: Replay) -> Sheet:
    """Return the table of one group's strategies, with the best marked."""
    limited = replayed.lag_limit is not None
    table = Sheet()
    table.columns("name", "strategy")
    names = ["mean spread", "99 % below", "with moves", "mean lag", "moves", "rebalances"]
    table.columns("figure", *names, *([f"above {number(replayed.lag_limit)}"] if limited else []))
    table.columns("remark", "")
    for row in replayed.summary:
        figures = [number(each) for each in (row.mean_spread, row.p99_spread, row.cost, row.mean_lag)]
        counts = ["–" if each is None else f"{each:,}" for each in (row.moves, row.rebalances)]
        above = [duration(row.seconds_above)] if limited else []
        style = "bold green" if row.best else "dim" if row.strategy == RECORDED else ""
        mark = "← best" if replayed.best else "← tied"
        remark = Text(row.error, style="yellow") if row.error else Text(mark if row.best else "")
        table.row(row.strategy, *figures, *counts, *above, remark, style=style)
    return table


def fleet_table(rows: Iterable[Mapping[str, Any]]) -> Sheet:
    """Return the strategies' figures over many groups, from the rows that `evenlag fleet replay` computes."""
    table = Sheet("mean spread with moves, above that of each group's best strategy")
    table.columns("name", "strategy")
    table.columns("figure", "groups", "best in", "median", "worst", "moves", "rebalances", "above the limit", "failed")
    for row in rows:
        table.row(
            row["strategy"], f"{row['groups']:,}", f"{row['best']:,}", percent(row["median"]), percent(row["worst"]),
            f"{row['moves'] or 0:,}", f"{row['rebalances'] or 0:,}", duration(row["above"]), f"{row['failed']:,}",
            style="dim" if row["strategy"] == RECORDED else "",
        )  # fmt: skip
    return table
