"""`evenlag plan`: the best assignment of one group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Group

from evenlag.cli import options
from evenlag.cli.options import Source
from evenlag.cli.terminal import show, show_notes, working
from evenlag.compare.catch_up import pace_of
from evenlag.model.files import write_json
from evenlag.report.payoff_text import payoff_document, payoff_report
from evenlag.report.text import phases_report, plan_report
from evenlag.search.entry import solve

LEFT_ALONE = 3  # exit status: the plan does not save what --only-if-better asks for


@click.command()
@options.reading
@options.modelling
@options.across
@options.method
@options.horizon_or_auto
@options.only_if_better
@options.pause
@options.capacity
@options.limiting(10.0)
@options.gap(0.0)
@click.option("--cooperative", is_flag=True, help="Also the phases of a cooperative rebalance, and the way back.")
@options.as_json
@options.out("Write the result file here.")
def plan(
    source: Source, horizon: str, capacity: float | None, out: Path | None, cooperative: bool, as_json: bool,
    **parameters: Any,
) -> None:  # fmt: skip
    """Find the best assignment of one group.

    INPUT is a problem file, a snapshot table or the text of kafka-consumer-groups --describe; - is standard input.
    """
    source.keep(out)
    problem, notes, record = source.read_with_record(horizon, capacity)
    pace = pace_of(record, capacity)
    with working(f"solving {problem.group}"):
        result = solve(problem, rates=pace.rates, **parameters)
    worth = result.payoff
    document = result.to_dict() | {"warnings": [*notes, *result.warnings]}
    document["catch_up"] = None if worth is None else payoff_document(worth, pace)
    report = plan_report(result, () if worth is None else payoff_report(worth, pace))
    if cooperative:
        document |= result.rebalance.to_dict()
        report = Group(report, phases_report(result.rebalance))
    if out is not None:
        write_json(out, document)
    show(report, document, as_json)
    if not as_json:
        show_notes(notes)
    if result.pays is False:
        raise click.exceptions.Exit(LEFT_ALONE)
