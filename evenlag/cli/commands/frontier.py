"""`evenlag frontier`: show the best spread for each budget of moves, or of another cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import evenlag
from evenlag import report
from evenlag.cli import options, terms
from evenlag.cli.catalogue import command
from evenlag.cli.ending import end, notes_of
from evenlag.cli.options import Source
from evenlag.cli.terminal import print_json, progress, say, show, show_notes
from evenlag.model.interrupt import ending_searches

if TYPE_CHECKING:
    from evenlag.compare.traffic_price import TrafficPrice


@command(
    "evenlag frontier offsets.csv --members members.csv --group billing",
    "evenlag frontier group.json --balance topic --json",
    "evenlag frontier group.json --against crossings --plot frontier.png",
)
@options.reading
@click.option("--against", metavar="COST", default="moves", show_default=True,
              help="The cost to vary: moves, crossings, moved_size, or a cost in the problem file.")  # fmt: skip
@options.balance
@terms.traffic_price
@options.limiting(10.0)
@options.plot("Picture to write")
@options.as_json
def frontier(
    source: Source, traffic_price: TrafficPrice | None, plot: Path | None, as_json: bool, **parameters: Any
) -> None:
    """Show the best spread for each budget of moves.

    The budget may also be of another cost, named by --against: partitions or traffic that cross racks, state that
    moves, or a cost in the problem file.
    """
    source.keep(plot)
    problem, notes = source.read()
    if traffic_price is not None:
        traffic_price.check(problem)
    notes += problem.warnings
    with ending_searches() as watch, progress("budgets solved") as update:
        curve = evenlag.frontier(problem, progress=update, **parameters)
    notes += notes_of(watch)
    if plot is not None:
        report.draw_frontier(curve, plot, traffic_price)
    if as_json:
        print_json(report.frontier_document(curve, traffic_price) | {"warnings": notes})
    else:
        show(report.frontier_report(curve, traffic_price))
        if plot is not None:
            say(f"written: {plot}")
        show_notes(notes)
    end(watch)
