"""`evenlag replay`: run every strategy over the recorded history of a group."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import click

from evenlag import compare, report, tables
from evenlag.cli import options
from evenlag.cli.catalogue import command
from evenlag.cli.decorators import into
from evenlag.cli.options import Source
from evenlag.cli.past_options import PastOptions, past_or_no_pause
from evenlag.cli.terminal import print_json, progress, say, show
from evenlag.errors import InvalidProblemError


@command(
    "evenlag replay record/offsets --members record/members --group billing",
    "evenlag replay record/offsets --group billing --strategies evenlag,range --plot replay.png",
)
@click.argument("path", metavar="INPUT", type=options.TABLE)
@click.option("--members", type=options.FILE, help="Members table for the offsets table.")
@click.option("--group", metavar="NAME", help="Group to read from a table with several groups.")
@options.input_format("--input-format")
@options.auto_offset_reset
@options.replaying
@into("source", Source)
@past_or_no_pause
@options.out("Folder for the tables summary and steps.")
@options.form(("parquet", "csv"), default="parquet", show_default=True)
@options.overwrite
@options.plot("Picture of the replay to write")
@options.as_json
def replay(
    source: Source, group_time_limit: float, past: PastOptions, plot: Path | None, out: Path | None,
    form: Literal["parquet", "csv"], overwrite: bool, as_json: bool, **parameters: Any,
) -> None:  # fmt: skip
    """Run every strategy over the recorded history of a group.

    The report shows which strategy would have served the group best. INPUT is an offsets table, a file or a folder,
    with snapshots of several times. To replay all groups of a table, use evenlag fleet replay.
    """
    if out is None:
        options.refuse_without_out("--format", "--overwrite")
    else:
        tables.replay_files(out, form, overwrite)  # checked here because a replay takes minutes
    source.keep(plot)
    how = compare.simulation.ReplayOptions.of(time_limit=group_time_limit, horizon=source.horizon, **parameters)
    history, notes = source.read_history()
    name = history[0].problem.group
    how, of_past = how.with_past(past.pause_of(name), past.capacity_of(name))
    try:
        with progress("strategies replayed") as update:
            found = compare.simulation.run(history, how, update)
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{source.path}: {error}") from error
    found = replace(found, notes=(*notes, *of_past, *found.notes))
    written = [] if out is None else tables.write_replay(found, out, form, overwrite)
    if plot is not None:
        report.draw_replay(found, plot)
        written.append(plot)
    paths = [str(each) for each in written]
    if as_json:
        print_json(tables.replay_document(found) | {"written": paths})
        return
    show(report.replay_report(found))
    if paths:
        say(f"written: {', '.join(paths)}")
