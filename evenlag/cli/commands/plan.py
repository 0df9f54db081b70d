"""`evenlag plan`: find the best assignment of one group."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenlag import model, report
from evenlag.cli import options, terms
from evenlag.cli.catalogue import command
from evenlag.cli.ending import end
from evenlag.cli.options import Ceiling, Source
from evenlag.cli.past_options import PastOptions
from evenlag.cli.planning import planned, planning
from evenlag.cli.terminal import print_json, show, show_notes

if TYPE_CHECKING:
    from evenlag.compare.traffic_price import TrafficPrice

LEFT_ALONE = 3  # exit status: the plan saves less than --only-if-better asks for


@command(
    "evenlag plan offsets.csv --members members.csv --group billing",
    "kafka-consumer-groups --bootstrap-server HOST:PORT --describe --group billing | evenlag plan -",
    "evenlag plan group.json --stickiness fewest-moves --json --out plan.json",
    "evenlag plan group.json --first crossings,moves --traffic-price 0.01/GB",
    "evenlag plan group.json --first moves --max-drain 15m --capacity 100",
)
@options.reading
@planning
@terms.traffic_price
@click.option(
    "--cooperative", is_flag=True, help="Also show the phases of a cooperative rebalance and how to roll it back."
)
@options.as_json
@options.out("File to write the result to.")
def plan(
    source: Source, ceiling: Ceiling, past: PastOptions, out: Path | None, cooperative: bool, as_json: bool,
    traffic_price: TrafficPrice | None, **parameters: Any,
) -> None:  # fmt: skip
    """Find the best assignment of one group.

    INPUT is a problem file, a snapshot table or the output of kafka-consumer-groups --describe; - is standard input.
    Ctrl-C ends the search and prints the best plan found so far.
    """
    source.keep(out)
    check = None if traffic_price is None else traffic_price.check
    found = planned(source, ceiling, past, check, parameters)
    result, worth = found.result, found.result.payoff
    document = report.plan_document(result, found.pace, found.notes)
    if traffic_price is not None:
        document["traffic_cost"] = report.traffic_document(result.plan, traffic_price)
    if cooperative:
        document |= result.rebalance.to_dict()
    if out is not None:
        model.problem_files.write_json(out, document)
    if as_json:
        print_json(document)
    else:
        assumed = past.assumes_pause(result.plan.problem.group)
        payoff_lines = () if worth is None else report.payoff_report(worth, found.pace, assumed)
        show(report.plan_report(result, payoff_lines, traffic_price))
        if cooperative:
            show(report.phases_report(result.rebalance))
        show_notes(found.notes)
    end(found.watch)
    if result.pays is False:
        raise click.exceptions.Exit(LEFT_ALONE)
