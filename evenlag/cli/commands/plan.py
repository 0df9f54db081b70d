"""`evenlag plan`: find the best assignment of one group."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import evenlag
from evenlag import compare, model, report
from evenlag.cli import options, terms
from evenlag.cli.catalogue import command
from evenlag.cli.ending import end, notes_of
from evenlag.cli.options import Ceiling, Source
from evenlag.cli.terminal import print_json, show, show_notes, working
from evenlag.model.interrupt import ending_searches

if TYPE_CHECKING:
    from evenlag.compare.traffic_price import TrafficPrice

LEFT_ALONE = 3  # exit status: the plan saves less than --only-if-better asks for


@command(
    "evenlag plan offsets.csv --members members.csv --group billing",
    "kafka-consumer-groups --bootstrap-server HOST:PORT --describe --group billing | evenlag plan -",
    "evenlag plan group.json --stickiness fewest-moves --json --out plan.json",
    "evenlag plan group.json --first crossings,moves --traffic-price 0.01/GB",
    "evenlag plan group.json --first moves --drain 15m --capacity 100",
)
@options.reading
@options.modelling
@options.across
@terms.asked_but_ceiling
@options.ceiling
@terms.traffic_price
@options.method
@options.horizon_or_auto
@options.only_if_better
@options.pause
@options.limiting(10.0)
@options.gap(0.0)
@click.option(
    "--cooperative", is_flag=True, help="Also show the phases of a cooperative rebalance and how to roll it back."
)
@options.as_json
@options.out("File to write the result to.")
def plan(
    source: Source, horizon: str, ceiling: Ceiling, out: Path | None, cooperative: bool, as_json: bool,
    traffic_price: TrafficPrice | None, **parameters: Any,
) -> None:  # fmt: skip
    """Find the best assignment of one group.

    INPUT is a problem file, a snapshot table or the output of kafka-consumer-groups --describe; - is standard input.
    Ctrl-C ends the search and prints the best plan found so far.
    """
    source.keep(out)
    problem, notes, record = source.read_with_record(horizon, ceiling.capacity)
    if traffic_price is not None:
        traffic_price.check(problem)
    pace = compare.catch_up.pace_of(record, ceiling.capacity)
    most, of_ceiling = ceiling.of(problem, pace)
    notes += of_ceiling
    solve = evenlag.solve  # imported before the clock runs
    with ending_searches() as watch, working(f"solving {problem.group}"), ceiling.explained(most):
        result = solve(problem, rates=pace.rates, max_load=most, **parameters)
    notes += notes_of(watch)
    worth = result.payoff
    document = result.to_dict() | {"warnings": [*notes, *result.warnings]}
    document["catch_up"] = None if worth is None else report.payoff_document(worth, pace)
    if traffic_price is not None:
        document["traffic_cost"] = report.traffic_document(result.plan, result.fetch_from, traffic_price)
    if cooperative:
        document |= result.rebalance.to_dict()
    if out is not None:
        model.files.write_json(out, document)
    if as_json:
        print_json(document)
    else:
        payoff_lines = () if worth is None else report.payoff_report(worth, pace)
        show(report.plan_report(result, payoff_lines, traffic_price))
        if cooperative:
            show(report.phases_report(result.rebalance))
        show_notes(notes)
    end(watch)
    if result.pays is False:
        raise click.exceptions.Exit(LEFT_ALONE)
