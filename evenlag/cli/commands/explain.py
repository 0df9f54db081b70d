"""`evenlag explain`: the reasons for the best assignment of one group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import evenlag
from evenlag import compare, model, report
from evenlag.cli import options, terms
from evenlag.cli.catalogue import command
from evenlag.cli.ending import end, notes_of
from evenlag.cli.options import Ceiling, Source
from evenlag.cli.terminal import print_json, show, show_notes, working
from evenlag.model.interrupt import ending_searches


@command(
    "evenlag explain group.json",
    "evenlag explain offsets.csv orders-3 --members members.csv --group billing",
    "evenlag explain group.json c1 --json",
)
@options.reading
@click.argument("name", metavar="[PARTITION|MEMBER]", required=False)
@options.modelling
@options.across
@terms.asked_but_ceiling
@options.ceiling
@options.method
@options.horizon_or_auto
@options.only_if_better
@options.pause
@options.limiting(10.0)
@options.gap(0.0)
@options.as_json
@options.out("File to write the result to, as evenlag plan does.")
def explain(
    source: Source, name: str | None, horizon: str, ceiling: Ceiling, out: Path | None, as_json: bool, **parameters: Any
) -> None:
    """Explain the best plan of one group, or one partition or member.

    INPUT and the options are those of evenlag plan. Without a name, the command explains the plan: its gain, the reason
    why no plan is better, and the gain of each move. With a partition (orders-3) or a member (c1), it explains the
    assignment of that partition or member, and the cost of the best alternative.
    """
    source.keep(out)
    problem, notes, record = source.read_with_record(horizon, ceiling.capacity)
    if name is not None:
        model.named_part(problem, name)
    pace = compare.catch_up.pace_of(record, ceiling.capacity)
    most, of_ceiling = ceiling.of(problem, pace)
    notes += of_ceiling
    solve = evenlag.solve  # imported before the clock runs
    with ending_searches() as watch, working(f"solving {problem.group}"), ceiling.explained(most):
        result = solve(problem, rates=pace.rates, max_load=most, **parameters)
    notes += notes_of(watch)
    explanation = result.explain(name)
    if out is not None:
        model.files.write_json(out, result.to_dict() | {"warnings": [*notes, *result.warnings]})
    if as_json:
        print_json(explanation.to_dict() | {"warnings": [*notes, *result.warnings]})
    else:
        show(report.explanation_report(explanation))
        show_notes([*notes, *result.warnings])
    end(watch)
