"""`evenlag explain`: the reasons for the best assignment of one group."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from evenlag import model, report
from evenlag.cli import options
from evenlag.cli.catalogue import command
from evenlag.cli.ending import end
from evenlag.cli.options import Ceiling, Source
from evenlag.cli.past_options import PastOptions
from evenlag.cli.planning import planned, planning
from evenlag.cli.terminal import print_json, show, show_notes


@command(
    "evenlag explain group.json",
    "evenlag explain offsets.csv orders-3 --members members.csv --group billing",
    "evenlag explain group.json c1 --json",
)
@options.reading
@click.argument("name", metavar="[PARTITION|MEMBER]", required=False)
@planning
@options.as_json
@options.out("File to write the result to, as evenlag plan does.")
def explain(
    source: Source, name: str | None, ceiling: Ceiling, past: PastOptions, out: Path | None,
    as_json: bool, **parameters: Any,
) -> None:  # fmt: skip
    """Explain the best plan of one group, or one partition or member.

    INPUT and the options are those of evenlag plan. Without a name, the command explains the plan: its gain, the reason
    why no plan is better, and the gain of each move. With a partition (orders-3) or a member (c1), it explains the
    assignment of that partition or member, and the cost of the best alternative.
    """
    source.keep(out)
    check = None if name is None else partial(model.named_part, name=name)
    found = planned(source, ceiling, past, check, parameters)
    explanation, warnings = found.result.explain(name), [*found.notes, *found.result.warnings]
    if out is not None:
        model.problem_files.write_json(out, found.result.to_dict() | {"warnings": warnings})
    if as_json:
        print_json(report.explanation_document(explanation, warnings))
    else:
        show(report.explanation_report(explanation))
        show_notes(warnings)
    end(found.watch)
