"""`evenlag frontier`: what each further move buys."""

from __future__ import annotations

from typing import Any

import click

from evenlag.cli import options
from evenlag.cli.options import Source
from evenlag.cli.terminal import err, show, show_notes
from evenlag.compare import frontier as find_frontier
from evenlag.compare.budgets import Frontier
from evenlag.model.plan import plain
from evenlag.report.progress import progress_bar
from evenlag.report.text import frontier_report


@click.command()
@options.reading
@options.balance
@options.limiting(10.0)
@options.as_json
def frontier(source: Source, as_json: bool, **parameters: Any) -> None:
    """Show how much spread each further move buys."""
    problem, notes = source.read()
    notes += problem.warnings
    with progress_bar("budgets of moves solved", err) as progress:
        curve = find_frontier(problem, progress=progress, **parameters)
    show(frontier_report(curve), _document(curve) | {"warnings": notes}, as_json)
    if not as_json:
        show_notes(notes)


def _document(curve: Frontier) -> dict[str, Any]:
    points = [
        {
            "moves": point.moves,
            "spread": plain(point.spread),
            "bound": plain(point.bound),
            "assignment": {member: [list(name) for name in names] for member, names in point.assignment.items()},
        }
        for point in curve.points
    ]
    return {"group": curve.problem.group, "balance": curve.balance, "knee": curve.knee, "points": points}
