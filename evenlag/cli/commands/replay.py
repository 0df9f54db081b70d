"""`evenlag replay`: every strategy over a recorded history."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

import click
from rich.console import Group
from rich.text import Text

from evenlag.cli import options
from evenlag.cli.replaying import Form, replay_fleet, summary_document, write_replay
from evenlag.cli.terminal import err, show, working
from evenlag.compare.foresight import AUTO
from evenlag.compare.simulation import CLOSE, STRATEGIES, ReplayOptions, run
from evenlag.errors import InvalidProblemError
from evenlag.report.progress import progress_bar
from evenlag.report.replay_text import replay_report
from evenlag.tables.read import holds_many_groups, read_history


class _Writing(NamedTuple):
    """Where and how tables are written."""

    out: Path | None
    form: Form
    overwrite: bool


@click.command()
@click.option("--offsets", type=options.place, metavar="PATH", required=True,
              help="Offsets table with snapshots of several times: a file or folder, kafka://HOST:PORT/TOPIC or "
              "table:CATALOG.NAMESPACE.NAME.")  # fmt: skip
@click.option("--members", type=options.place, metavar="PATH", help="Members table that goes with it.")
@options.kafka
@click.option("--group", help="The group to replay; without it all groups, on Spark where there are several.")
@options.auto_offset_reset
@click.option("--strategies", callback=options.names, default=",".join(STRATEGIES),
              help=f"Joined by commas; default all: {', '.join(STRATEGIES)}.")  # fmt: skip
@click.option("--horizon", default=AUTO, show_default=True, metavar="auto|TIME",
              help="auto: evenlag plans for the time until the next rebalance, as the record up to then lets expect; "
              "others see today's lag. A time (0, 10m, 1h): all see the lag predicted for then.")  # fmt: skip
@click.option("--lag-limit", type=click.FloatRange(0), help="Messages: count the time a member has more to read.")
@click.option("--rebalance-above", type=click.FloatRange(0),
              help="Assign anew where the spread is above this fraction of the mean load.")  # fmt: skip
@click.option("--capacity", type=options.POSITIVE,
              help="Messages per second of a member of weight 1; default: estimated.")  # fmt: skip
@options.balance
@options.slack
@options.stickiness
@options.group_time_limit(1.0, "Seconds for one rebalance by evenlag.")
@options.gap(CLOSE, "Stop a rebalance by evenlag within this fraction of the mean load of the bound.")
@options.repeating
@options.spark_out("Folder for the tables summary and steps, or table:CATALOG.NAMESPACE.")
@options.form(get_args(Form), default="parquet", show_default=True)
@options.overwrite
@options.tasks
@options.spark
@options.plot("Picture of one group's replay to write")
@options.as_json
def replay(
    offsets: str | Path, members: str | Path | None, group: str | None, auto_offset_reset: str,
    group_time_limit: float, plot: Path | None, out: str | Path | None, form: Form, overwrite: bool, as_json: bool,
    kafka_options: dict[str, str], tasks: int | None, master: str | None, conf: dict[str, str], **parameters: Any,
) -> None:  # fmt: skip
    """Run every strategy over the recorded history of a group.

    It shows which one would have served the group best.
    """
    if out is None:
        options.refuse(("--format", "--overwrite"), options.WRITES_NOTHING)
    replay_options = ReplayOptions.of(time_limit=group_time_limit, **parameters)
    alone = not (kafka_options or tasks or master or conf)
    if alone and isinstance(offsets, Path) and not isinstance(members, str) and not isinstance(out, str):
        if group is not None or not _holds_many(offsets):
            source = (offsets, members, group, auto_offset_reset)
            _replay_group(source, replay_options, plot, as_json, _Writing(out, form, overwrite))
            return
        if plot is not None:
            raise click.UsageError(f"--plot shows one group, and {offsets} holds several: choose one with --group")
    elif group is not None or plot is not None:
        raise click.UsageError("--group and --plot are for one group, which is replayed from a file, without Spark")
    with progress_bar("groups replayed", err) as progress:
        fleet = replay_fleet(
            offsets, members, progress=progress, auto_offset_reset=auto_offset_reset,
            group_time_limit=group_time_limit, out=out, form=form, overwrite=overwrite, tasks=tasks,
            options=kafka_options, spark_settings=options.spark_settings(master, conf), **parameters,
        )  # fmt: skip
    show(fleet.report(), vars(fleet), as_json)


def _holds_many(offsets: Path) -> bool:
    with working("reading"):
        return holds_many_groups(offsets)


def _replay_group(
    source: tuple[Path, Path | None, str | None, str], replay_options: ReplayOptions, plot: Path | None, as_json: bool,
    writing: _Writing,
) -> None:  # fmt: skip
    options.keep_inputs(plot, *source[:2])
    with working("reading"):
        history, notes = read_history(*source)
    try:
        with progress_bar("strategies replayed", err) as progress:
            replayed = run(history, replay_options, progress)
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{source[0]}: {error}") from error
    replayed = replace(replayed, notes=(*notes, *replayed.notes))
    written = [] if writing.out is None else write_replay(replayed, writing.out, writing.form, writing.overwrite)
    if plot is not None:
        # Matplotlib is an extra, and slow to import.
        from evenlag.report.replay_picture import draw_replay

        draw_replay(replayed, plot)
        written.append(plot)
    paths = [str(path) for path in written]
    report = replay_report(replayed)
    if paths:
        report = Group(report, Text(f"written: {', '.join(paths)}"))
    show(report, summary_document(replayed) | {"written": paths}, as_json)
