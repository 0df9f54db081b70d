"""`evenlag size`: find how many members a group needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import evenlag
from evenlag import compare, report
from evenlag.cli import options
from evenlag.cli.catalogue import command
from evenlag.cli.ending import end, notes_of
from evenlag.cli.options import Source
from evenlag.cli.past_options import PastOptions
from evenlag.cli.past_options import past as past_option
from evenlag.cli.terminal import print_json, progress, say, show, show_notes
from evenlag.errors import InvalidProblemError
from evenlag.model.interrupt import ending_searches

NO_SCENARIOS = "auto applies to plans; a size needs one lag: today's (0), or the lag predicted for a time ahead (1h)"


@command(
    "evenlag size offsets.csv --members members.csv --group billing --drain 15m --capacity 100",
    "evenlag size group.json --drain 15m --capacity 100 --plot size.png",
)
@options.reading
@options.drain
@options.capacity
@past_option
@options.horizon
@options.balance
@options.slack
@options.most
@options.limiting(10.0)
@options.plot("Picture to write")
@options.as_json
def size(
    source: Source, drain: str, capacity: float | None, past: PastOptions, plot: Path | None,
    as_json: bool, **parameters: Any,
) -> None:  # fmt: skip
    """Find the fewest members that can read all lag within a time.

    INPUT is a problem file, a snapshot table or the output of kafka-consumer-groups --describe; - is standard input.
    To size all groups of a table, use evenlag fleet size.
    """
    deadline = options.deadline(drain)
    if source.horizon == options.AUTO:
        raise click.BadParameter(NO_SCENARIOS, click.get_current_context(), param_hint="--horizon")
    options.seconds("horizon", source.horizon)  # checked here because later errors would suggest auto
    source.keep(plot)
    problem, notes, record = source.read_with_record()
    try:
        known = compare.speeds.speeds(problem, record, capacity, past.capacity_of(problem.group))
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{source.path}: {error}") from error
    with ending_searches() as watch, progress("group sizes tried") as update:
        found = evenlag.size(problem, deadline, known.capacity.rate, rates=known.rates, progress=update, **parameters)
    notes += [*problem.warnings, *notes_of(watch)]
    if plot is not None:
        report.draw_size(found, plot)
    if as_json:
        print_json(report.size_document(found, known, notes))
    else:
        show(report.size_report(found, report.speed_lines(known, problem)))
        if plot is not None:
            say(f"written: {plot}")
        show_notes(notes)
    end(watch)
