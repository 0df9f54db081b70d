"""`evenlag diagnose`: find what is wrong with a group, and what to change."""

from __future__ import annotations

from typing import Any

import click

import evenlag
from evenlag import report
from evenlag.cli import options
from evenlag.cli.catalogue import command
from evenlag.cli.ending import end, notes_of
from evenlag.cli.options import Source
from evenlag.cli.past_options import PastOptions
from evenlag.cli.past_options import past as past_option
from evenlag.cli.terminal import print_json, show, show_notes, working
from evenlag.model.interrupt import ending_searches


@command(
    "evenlag diagnose group.json",
    "evenlag diagnose kafka://HOST:PORT --group billing --since 1h",
    "evenlag diagnose offsets.csv --members members.csv --group billing --drain 15m --capacity 300",
)
@options.reading
@click.option("--drain", metavar="TIME", help=f"Time in which all lag should be read (15m); {options.BARE}.")
@options.capacity
@past_option
@options.balance
@options.slack
@options.limiting(10.0)
@options.as_json
def diagnose(
    source: Source, drain: str | None, capacity: float | None, past: PastOptions, as_json: bool, **parameters: Any
) -> None:
    """Find what is wrong with a group, and what to change.

    INPUT is the output of kafka-consumer-groups --describe, a cluster (kafka://HOST:PORT), a snapshot table or a
    problem file; - is standard input. The answer is one verdict, its cause, and remedies in order of effort, each with
    the spread, makespan, drain time and moves that it brings. Times need several snapshots, or --capacity.
    """
    deadline = None if drain is None else options.deadline(drain)
    problem, notes, record = source.read_with_record()
    measured = past.capacity_of(problem.group)
    run = evenlag.diagnose  # imported before the clock runs
    with ending_searches() as watch, working(f"diagnosing {problem.group}"):
        found = run(problem, record=record, capacity=capacity, measured=measured, drain_seconds=deadline, **parameters)
    notes = [*(note for note in notes if note not in found.assumed), *found.warnings, *notes_of(watch)]
    if as_json:
        print_json(report.diagnosis_document(found, notes))
    else:
        show(report.diagnosis_report(found))
        show_notes(notes)
    end(watch)
