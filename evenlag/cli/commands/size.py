"""`evenlag size`: how many members a group needs."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from evenlag.cli import options
from evenlag.cli.options import Source
from evenlag.cli.terminal import err, show, show_notes
from evenlag.compare import size as find_size
from evenlag.compare.foresight import AUTO
from evenlag.compare.report import number
from evenlag.compare.size_report import answer_to, size_report
from evenlag.compare.speeds import Speeds, speeds
from evenlag.errors import InvalidProblemError
from evenlag.model.problem import Problem
from evenlag.model.rates import SECOND, horizon_micros
from evenlag.pipeline.spark.progress import progress_bar

NO_SCENARIOS = "auto is for plans, and a size is for one lag: that of now (0), or that of a time ahead, such as 1h"
_SOURCES = {
    "given": "as given",
    "backlog": "the median of {cases:,} times that one had a backlog in the record",
    "highest": "the most that was seen in the record; none ever had a backlog, so they may be faster",
}


@click.command()
@options.reading
@click.option("--drain", required=True, metavar="TIME", help="Time in which everything is to be read (90s, 15m, 2h).")
@options.capacity
@options.horizon
@options.balance
@options.slack
@click.option("--most", type=click.IntRange(1),
              help="The largest number of members to look at; default: up to where more bring little.")  # fmt: skip
@options.limiting(10.0)
@click.option("--plot", type=options.FILE, help="Picture to write (.png, .svg, .pdf).")
@options.as_json
def size(
    source: Source, drain: str, capacity: float | None, horizon: str, plot: Path | None, as_json: bool,
    **parameters: Any,
) -> None:  # fmt: skip
    """How many members does it take to read everything within a time?"""
    deadline = Fraction(horizon_micros(drain, "drain"), SECOND)
    if horizon == AUTO:
        raise click.BadParameter(NO_SCENARIOS, param_hint="--horizon")
    problem, notes, record = source.read_with_record(horizon)
    try:
        known = speeds(problem, record, capacity)
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{source.path}: {error}") from error
    with progress_bar("numbers of members looked at", err) as progress:
        found = find_size(problem, deadline, known.capacity.rate, rates=known.rates, progress=progress, **parameters)
    notes += problem.warnings
    document = found.to_dict() | {"answer": answer_to(found)}
    document |= {"capacity_source": known.capacity.source, "rates": "record" if known.recorded else "none"}
    document["warnings"] = [*notes, *found.notes]
    if plot is not None:
        # Matplotlib is an extra, and slow to import.
        from evenlag.compare.size_picture import draw_size

        draw_size(found, plot)
    show(size_report(found, _said(known, problem)), document, as_json)
    if not as_json:
        show_notes([*notes, *([f"picture: {plot}"] if plot is not None else [])])


def _said(known: Speeds, problem: Problem) -> list[str]:
    """Say where capacity and rates are from, in a sentence each."""
    weights = "" if problem.equal_weights else " for each unit of weight"
    how = _SOURCES[known.capacity.source].format(cases=known.capacity.cases)
    incoming = number(float(sum(known.rates, Fraction(0))))
    return [
        f"A member reads {number(float(known.capacity.rate))} messages a second{weights} ({how}).",
        f"Meanwhile {incoming} messages a second come in, as between the last two snapshots."
        if known.recorded
        else "Nothing is taken to come in meanwhile: a single snapshot tells no rates.",
    ]
