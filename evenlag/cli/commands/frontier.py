"""`evenlag frontier`: what each further move buys."""

from __future__ import annotations

from typing import Any

import evenlag
from evenlag import report
from evenlag.cli import options
from evenlag.cli.catalogue import command
from evenlag.cli.ending import end, notes_of
from evenlag.cli.options import Source
from evenlag.cli.terminal import print_json, progress, show, show_notes
from evenlag.model.interrupt import ending_searches


@command(
    "evenlag frontier offsets.csv --members members.csv --group billing",
    "evenlag frontier group.json --balance topic --json",
)
@options.reading
@options.balance
@options.limiting(10.0)
@options.as_json
def frontier(source: Source, as_json: bool, **parameters: Any) -> None:
    """Show how much spread each further move buys."""
    problem, notes = source.read()
    notes += problem.warnings
    with ending_searches() as watch, progress("budgets of moves solved") as told:
        curve = evenlag.frontier(problem, progress=told, **parameters)
    notes += notes_of(watch)
    if as_json:
        print_json(report.frontier_document(curve) | {"warnings": notes})
    else:
        show(report.frontier_report(curve))
        show_notes(notes)
    end(watch)
