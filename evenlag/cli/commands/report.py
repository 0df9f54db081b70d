"""`evenlag report`: write an HTML page about a group or a fleet."""

from __future__ import annotations

import shlex
from collections.abc import Container
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from evenlag import report as reports
from evenlag.cli import options, terms
from evenlag.cli.catalogue import GIVEN, command
from evenlag.cli.commands.plan import plan
from evenlag.cli.commands.verify import verify
from evenlag.cli.ending import end, notes_of
from evenlag.cli.options import OnSpark, Source
from evenlag.cli.page_writing import finish, report_fleet
from evenlag.cli.past_options import PastOptions, fleet_past_or_pause
from evenlag.cli.terminal import working
from evenlag.compare.overview import overview
from evenlag.model.interrupt import ending_searches

NOT_REPEATED = {"drain", "out", "as_json"}  # options that mean something else to other commands
AUDITED = ("groups", "audit", "plans")  # folders of a fleet audit's tables


@command(
    "evenlag report offsets.csv --members members.csv --group billing --out billing.html",
    "evenlag report group.json --drain 15m --capacity 100 --out group.html",
    "evenlag report out --out fleet.html",
)
@options.reading_tables
@options.modelling
@options.across
@terms.asked
@fleet_past_or_pause
@click.option("--drain", metavar="TIME", default="15m", show_default=True,
              help="Deadline for reading all lag; the page shows how many members meet it. "
              f"{options.BARE.capitalize()}.")  # fmt: skip
@options.capacity
@options.horizon_or_auto
@options.limiting(20.0)
@options.spark
@options.on_spark
@options.as_json
@options.out("File to write the page to.", required=True)
def report(
    source: Source, drain: str, capacity: float | None, past: PastOptions, out: Path, as_json: bool, on: OnSpark,
    **parameters: Any,
) -> None:  # fmt: skip
    """Write an HTML page about a group or a fleet.

    The page is one file that loads nothing, so it can be forwarded. For a group it shows the assignment today and in
    the best plan, the gain of each move, the proven limit, the other strategies, and the time to drain. If INPUT is the
    --out of evenlag fleet audit (a folder, an object store or table:CATALOG.NAMESPACE), the page lists the groups of
    the fleet by possible gain, and with --past those that rebalance most often; options for plans are ignored.
    """
    source.keep(out)
    deadline = options.deadline(drain)
    if (place := _audited(source.path)) is not None:
        report_fleet(place, out, on.settings, past=past.place, as_json=as_json)
        return
    problem, notes, record = source.read_with_record(capacity)
    pause, of_past = past.pause_of(problem.group)
    with ending_searches() as watch, working(f"reporting on {problem.group}") as update:
        seen = overview(
            problem, record=record, capacity=capacity, measured=past.capacity_of(problem.group),
            drain_seconds=deadline, progress=update, pause=float(pause), **parameters,
        )  # fmt: skip
    read, planned = ({option.name for option in each.params} for each in (verify, plan))
    where = f"{_input_given()} {_options_given(read - NOT_REPEATED)}".rstrip()
    asked = _options_given(planned - read - NOT_REPEATED)
    document = reports.group_document(seen, where, [*notes, *of_past, *notes_of(watch)], asked)
    finish(document, reports.group_page(seen, document, datetime.now(UTC)), out, as_json=as_json)
    end(watch)


def _audited(path: object) -> str | Path | None:
    """Return the place of a fleet audit's tables, if the input is one."""
    if isinstance(path, Path):
        return path if all((path / table).is_dir() for table in AUDITED) else None
    return path if isinstance(path, str) else None


def _input_given() -> str:
    """Return INPUT as given, quoted for a shell."""
    context = click.get_current_context()
    return shlex.join([str(_parsed(context)["path"])])


def _options_given(names: Container[str | None]) -> str:
    """Return the options of the running command that were given and are among `names`, quoted for a shell."""
    context = click.get_current_context()
    given = _parsed(context)
    words: list[str] = []
    for option in context.command.params:
        if not isinstance(option, click.Option) or option.name not in given or option.name not in names:
            continue
        flag = max(option.opts, key=len)
        values = given[option.name] if option.multiple else [given[option.name]]
        words += [flag] if option.is_flag else [word for value in values for word in (flag, str(value))]
    return shlex.join(words)


def _parsed(context: click.Context) -> dict[str, Any]:
    """Return the arguments by name, as written, before any conversion."""
    return dict(context.command.make_parser(context).parse_args(args=list(context.meta[GIVEN]))[0])
