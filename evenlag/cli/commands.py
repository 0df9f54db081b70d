"""The `evenlag` command: it owns the terminal; all it does is a call to the library."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from evenlag import __version__
from evenlag.cli.inputs import AUTO_OFFSET_RESETS, holds_many_groups, read_group, read_history
from evenlag.compare import audit as audit_group
from evenlag.compare import frontier as frontier_curve
from evenlag.compare.replay import CLOSE, STRATEGIES, ReplayOptions
from evenlag.compare.replay import run as run_replay
from evenlag.compare.replay_report import replay_report
from evenlag.compare.report import audit_report, frontier_report, phases_report, plan_report
from evenlag.errors import EvenlagError
from evenlag.model.backends.pulp_models import write as write_mip
from evenlag.model.balance import Balance, count_rule
from evenlag.model.files import write_json, written_aside
from evenlag.model.formulation import Mip, formulate
from evenlag.model.objective import DEFAULT_STICKINESS, ObjectiveKind, resolve_objective
from evenlag.model.plan import plain
from evenlag.pipeline.spark.progress import progress_bar
from evenlag.search.options import METHODS
from evenlag.solve import solve

FLEET_GAP = 1e-4  # of the mean load: closer is not worth a fleet's time
WIDE = 132  # columns where there is no terminal to ask
err = Console(stderr=True)
out = Console(highlight=False)
if not out.is_terminal and "COLUMNS" not in os.environ:
    out = Console(highlight=False, width=WIDE)

Command = Callable[..., Any]
FILE = click.Path(path_type=Path)


def main() -> None:
    """Run the command; input errors are one line on stderr and exit status 1."""
    try:
        commands(standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.UsageError as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("evenlag: interrupted", err=True)
        sys.exit(130)
    except EvenlagError as error:
        click.echo(f"evenlag: {' '.join(str(error).split())}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="evenlag")
def commands() -> None:
    """Provably good partition assignments for Kafka consumer groups that lag unevenly."""


# ---- options that several commands share -------------------------------------------------------------------------


def _options(*options: Command) -> Command:
    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def _stickiness(_: click.Context, __: click.Parameter, value: str) -> str | float:
    try:
        return float(value) if "." in value else int(value)
    except ValueError:
        return value


def _names(_: click.Context, __: click.Parameter, value: str | None) -> list[str] | None:
    return None if value is None else [name.strip() for name in value.split(",") if name.strip()]


auto_offset_reset_option = click.option(
    "--auto-offset-reset", type=click.Choice(AUTO_OFFSET_RESETS), default="latest", show_default=True,
    help="What the lag of a partition without a commit is.",
)  # fmt: skip
horizon_option = click.option("--horizon", default="0", show_default=True, metavar="TIME",
                              help="Balance the lag predicted for then (10m, 1h), by the rate since the snapshot "
                              "before.")  # fmt: skip
stickiness_option = click.option("--stickiness", default=DEFAULT_STICKINESS, show_default=True, callback=_stickiness,
                                 help="Messages one move must save, a share of the mean load, or "
                                 "fewest-moves.")  # fmt: skip


def _settings(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    for name, equals, _value in pairs:
        if not name or not equals:
            raise click.BadParameter(f"{name!r} is no NAME=VALUE")
    return {name: value for name, _equals, value in pairs}


def _place(text: str) -> str | Path:
    """Return a topic as the text it is, and anything else as a path."""
    return text if text.startswith("kafka:") else Path(text)


reading = _options(
    click.argument("input", type=FILE),
    click.option("--members", type=FILE, help="Members table that goes with an offsets table."),
    click.option("--group", help="The group to take from a table of several."),
    auto_offset_reset_option,
)  # fmt: skip
BALANCES, OBJECTIVES = ([name.value for name in names] for names in (Balance, ObjectiveKind))
balancing = click.option("--balance", type=click.Choice(BALANCES), default="both", show_default=True)
modelling = _options(
    balancing,
    stickiness_option,
    click.option("--max-moves", type=click.IntRange(0), help="Hard budget of moves."),
    click.option("--slack", type=click.IntRange(0), default=0, show_default=True,
                 help="Partitions by which a count may leave its range."),
    click.option("--objective", type=click.Choice(OBJECTIVES), default="spread", show_default=True),
)  # fmt: skip
POSITIVE = click.FloatRange(0, min_open=True)


repeating = _options(
    click.option("--seed", type=int, default=0, show_default=True),
    click.option("--deterministic", is_flag=True, help="Work limits in place of the wall clock."),
)


def limiting(default: float | None, what: str = "Seconds for the whole call.") -> Command:
    """Return the options that every solving command has."""
    return _options(
        click.option("--time-limit", type=POSITIVE, default=default, show_default=default is not None, help=what),
        repeating,
        click.option("--threads", type=click.IntRange(1), help="For the MIP; default all processors, at most 8."),
    )


as_json = click.option("--json", "json_wanted", is_flag=True, help="Print JSON and nothing else on stdout.")
gap_option = click.option("--gap", type=click.FloatRange(0), default=0.0, show_default=True,
                          help="Stop within this fraction of the mean load of the bound.")  # fmt: skip


# ---- commands ----------------------------------------------------------------------------------------------------


@commands.command()
@reading
@modelling
@click.option("--method", type=click.Choice(METHODS), default="auto", show_default=True, metavar="METHOD",
              help=f"One of {', '.join(METHODS)}.")  # fmt: skip
@horizon_option
@limiting(10.0)
@gap_option
@click.option("--cooperative", is_flag=True, help="Also the phases of a cooperative rebalance, and the way back.")
@as_json
@click.option("--out", "out_file", type=FILE, help="Write the result file here.")
def plan(
    input: Path, members: Path | None, group: str | None, auto_offset_reset: str, json_wanted: bool,  # noqa: A002
    horizon: str, out_file: Path | None, cooperative: bool, **parameters: Any,
) -> None:  # fmt: skip
    """Find the best assignment of one group: a problem file, a snapshot table or kafka-consumer-groups text."""
    with working("reading"):
        problem, notes = read_group(input, members, group, auto_offset_reset, horizon)
    with working(f"solving {problem.group}"):
        result = solve(problem, **parameters)
    document = result.to_dict() | {"warnings": [*notes, *result.warnings]}
    if cooperative:
        document |= result.rebalance.to_dict()
    if out_file is not None:
        write_json(out_file, document)
    if json_wanted:
        click.echo(json.dumps(document))
        return
    out.print(plan_report(result))
    if cooperative:
        out.print(phases_report(result.rebalance))
    for note in notes:
        out.print(f"note: {note}", style="yellow")


@commands.command()
@reading
@balancing
@limiting(10.0)
@as_json
def frontier(
    input: Path, members: Path | None, group: str | None, auto_offset_reset: str, json_wanted: bool,  # noqa: A002
    **parameters: Any,
) -> None:  # fmt: skip
    """Show how much spread each further move buys."""
    problem, _ = read_group(input, members, group, auto_offset_reset)
    with progress_bar("budgets of moves solved", err) as progress:
        curve = frontier_curve(problem, progress=progress, **parameters)
    if not json_wanted:
        out.print(frontier_report(curve))
        return
    points = [
        {
            "moves": point.moves,
            "spread": plain(point.spread),
            "bound": plain(point.bound),
            "assignment": {member: [list(name) for name in names] for member, names in point.assignment.items()},
        }
        for point in curve.points
    ]
    click.echo(json.dumps({"group": problem.group, "balance": curve.balance, "knee": curve.knee, "points": points}))


@commands.command()
@reading
@modelling
@click.option("--format", "form", type=click.Choice(["lp", "mps"]), required=True)
@click.option("--out", "out_file", type=FILE, help="File to write; default: standard output.")
def export(
    input: Path, members: Path | None, group: str | None, auto_offset_reset: str, form: str,  # noqa: A002
    out_file: Path | None, balance: str, slack: int, objective: str, stickiness: str | float, max_moves: int | None,
) -> None:  # fmt: skip
    """Write the MIP of one group as LP or MPS, for any solver."""
    problem, _ = read_group(input, members, group, auto_offset_reset)
    rule = count_rule(problem, balance, slack)
    mip = formulate(problem, rule, resolve_objective(rule, objective, stickiness, max_moves))
    if out_file is not None:
        with written_aside(out_file) as part:
            write_mip(mip, part, form)
    else:
        with working("writing the model"):
            text = _mip_text(mip, form)
        click.echo(text, nl=False)


def _mip_text(mip: Mip, form: str) -> str:
    with tempfile.TemporaryDirectory(prefix="evenlag-") as folder:
        path = Path(folder) / f"model.{form}"
        write_mip(mip, path, form)
        return path.read_text()


@commands.command()
@click.argument("inputs", nargs=-1, type=FILE)
@click.option(
    "--offsets",
    type=_place,
    metavar="PATH",
    help="Offsets table of many groups, a file, a folder or kafka://HOST:PORT/TOPIC: audited on Spark.",
)
@click.option("--members", type=_place, metavar="PATH", help="Members table that goes with --offsets.")
@click.option("--out", "out_folder", type=FILE, help="Folder for the tables plans, audit, rejects and summary.")
@click.option("--overwrite", is_flag=True, help="Replace tables that are in the folder.")
@balancing
@auto_offset_reset_option
@horizon_option
@click.option("--group-time-limit", type=POSITIVE, default=2.0, show_default=True, help="Seconds for one group.")
@limiting(None, "Seconds for the whole call; default: as many as the groups need.")
@click.option("--gap", type=click.FloatRange(0), help="Stop within this fraction of the mean load of the bound; "
              f"default 0, for a fleet {FLEET_GAP:g}.")  # fmt: skip
@as_json
def audit(
    inputs: tuple[Path, ...], offsets: Path | None, members: Path | None, out_folder: Path | None, overwrite: bool,
    balance: str, auto_offset_reset: str, horizon: str, group_time_limit: float, time_limit: float | None,
    gap: float | None, threads: int | None, json_wanted: bool, **parameters: Any,
) -> None:  # fmt: skip
    """Hold every strategy to the optimum: of single groups (INPUTS), or of a whole fleet on Spark (--offsets)."""
    if bool(inputs) == (offsets is not None):
        raise click.UsageError("give problem files, or --offsets with --out for a fleet on Spark")
    if offsets is not None:
        if out_folder is None:
            raise click.UsageError("--offsets needs --out, the folder for the tables")
        if threads is not None:
            raise click.UsageError("--threads goes with single groups; on Spark every task has one")
        from evenlag.cli.fleet import audit_fleet

        with progress_bar("groups audited", err) as progress:
            summary = audit_fleet(
                offsets, members, out_folder, overwrite=overwrite, balance=balance,
                auto_offset_reset=auto_offset_reset, horizon=horizon, group_time_limit=group_time_limit,
                time_limit=time_limit, gap=FLEET_GAP if gap is None else gap, progress=progress, **parameters,
            )  # fmt: skip
        click.echo(json.dumps(summary.to_dict())) if json_wanted else out.print(summary.report())
        return
    documents = []
    for path in inputs:
        problem, notes = read_group(path, members, None, auto_offset_reset, horizon)
        with working(f"auditing {problem.group}"):
            audited = audit_group(
                problem, time_limit=group_time_limit, gap=gap or 0.0, threads=threads, **parameters
            )  # fmt: skip
        documents.append({"group": problem.group, "rows": [vars(row) for row in audited.rows], "warnings": notes})
        if not json_wanted:
            out.print(audit_report(audited))
    if json_wanted:
        click.echo(json.dumps(documents))


@commands.command()
@click.option("--bootstrap-server", required=True, metavar="HOST:PORT", help="Brokers, joined by commas.")
@click.option("--group", "groups", multiple=True, help="A group to take; may be given again. Default: all.")
@click.option("--out", "out_folder", type=FILE, required=True, help="Folder for the offsets and members tables.")
@click.option("--format", "form", type=click.Choice(["csv", "jsonl", "parquet"]), default="csv", show_default=True)
@click.option("--timeout", type=POSITIVE, default=10.0, show_default=True, help="Seconds.")
@click.option("--command-config", type=FILE, help="Properties file with more client settings (TLS, SASL, …).")
@as_json
def snapshot(
    bootstrap_server: str, groups: tuple[str, ...], out_folder: Path, form: Any, timeout: float,
    command_config: Path | None, json_wanted: bool,
) -> None:  # fmt: skip
    """Record the offsets and members of consumer groups from a running cluster."""
    from evenlag import live

    config = live.read_client_config(command_config) if command_config is not None else None
    with working(f"asking {bootstrap_server}"):
        taken = live.snapshot(bootstrap_server, groups or None, timeout=timeout, config=config)
    files = live.write_snapshot(taken, out_folder, form)
    names = {str(row["group"]) for row in [*taken.offsets, *taken.members]}
    document = {
        "groups": sorted(names),
        "partitions": len(taken.offsets),
        "members": len(taken.members),
        "warnings": taken.warnings,
        "files": [str(path) for path in files],
    }
    if json_wanted:
        click.echo(json.dumps(document))
        return
    click.echo(f"{len(names)} groups, {len(taken.offsets)} partitions, {len(taken.members)} members")
    for path in files:
        click.echo(f"  {path}")
    for warning in taken.warnings:
        click.echo(f"note: {warning}", err=True)


@commands.command()
@click.argument("topic", metavar="kafka://HOST:PORT/TOPIC")
@click.option("--out", "out_folder", type=FILE, required=True, help="Folder for the tables plans, audit and rejects.")
@click.option("--checkpoint", type=FILE, help="Folder for Spark's notes of what was read; default: in --out.")
@click.option("--once", is_flag=True, help="Read what is there, take every snapshot for whole then, and end.")
@click.option("--interval", type=POSITIVE, default=10.0, show_default=True, help="Seconds between looks at the topic.")
@click.option(
    "--settle",
    type=click.FloatRange(0),
    default=300.0,
    show_default=True,
    help="Seconds without further rows after which a snapshot is taken for whole.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_settings,
    help="An option of Spark's Kafka source, as kafka.security.protocol=SSL; may be given again.",
)
@modelling
@auto_offset_reset_option
@click.option("--group-time-limit", type=POSITIVE, default=2.0, show_default=True, help="Seconds for one group.")
@click.option(
    "--gap",
    type=click.FloatRange(0),
    default=FLEET_GAP,
    show_default=True,
    help="Stop within this fraction of the mean load of the bound.",
)
@repeating
@click.option("--json", "json_wanted", is_flag=True, help="Print a JSON object for each batch.")
def stream(topic: str, out_folder: Path, json_wanted: bool, **parameters: Any) -> None:
    """Plan and audit snapshots as they come through a topic, each once, on Spark; go on after an interruption."""
    from evenlag.cli.fleet import batch_line, stream_fleet

    def show(batch: Any) -> None:
        click.echo(json.dumps(vars(batch)) if json_wanted else batch_line(batch))

    stream_fleet(topic, out_folder, progress=show, **parameters)


@commands.command()
@click.option("--out", "out_folder", type=FILE, default=Path("out/demo"), show_default=True)
@click.option("--group-time-limit", type=POSITIVE, default=3.0, show_default=True, help="Seconds for one group.")
def demo(out_folder: Path, group_time_limit: float) -> None:
    """Run the main job on a snapshot recorded from a real cluster, on local Spark."""
    from evenlag.cli.fleet import run_demo

    with progress_bar("groups audited", err) as progress:
        summary = run_demo(out_folder, group_time_limit=group_time_limit, progress=progress)
    out.print(summary.report())


@commands.command()
@click.option("--offsets", type=FILE, required=True, help="Offsets table with snapshots of several times.")
@click.option("--members", type=FILE, help="Members table that goes with it.")
@click.option("--group", help="The group to replay; without it all groups, on Spark where there are several.")
@auto_offset_reset_option
@click.option("--strategies", callback=_names, help=f"Joined by commas; default all: {', '.join(STRATEGIES)}.")
@horizon_option
@click.option("--lag-limit", type=click.FloatRange(0), help="Messages: count the time a member has more to read.")
@click.option(
    "--rebalance-above",
    type=click.FloatRange(0),
    help="Assign anew where the spread is above this fraction of the mean load.",
)
@click.option("--capacity", type=POSITIVE, help="Messages per second of a member of weight 1; default: estimated.")
@balancing
@stickiness_option
@click.option(
    "--group-time-limit", type=POSITIVE, default=1.0, show_default=True, help="Seconds for one rebalance by evenlag."
)
@click.option(
    "--gap",
    type=click.FloatRange(0),
    default=CLOSE,
    show_default=True,
    help="Stop a rebalance by evenlag within this fraction of the mean load of the bound.",
)
@repeating
@click.option("--out", "out_folder", type=FILE, help="Folder for the tables summary and steps.")
@click.option("--format", "form", type=click.Choice(["parquet", "csv"]), default="parquet", show_default=True)
@click.option("--overwrite", is_flag=True, help="Replace tables that are in the folder.")
@click.option("--plot", type=FILE, help="Picture of one group's replay to write (.png, .svg, .pdf).")
@as_json
def replay(
    offsets: Path, members: Path | None, group: str | None, auto_offset_reset: str, strategies: list[str] | None,
    group_time_limit: float, out_folder: Path | None, form: Any, overwrite: bool, plot: Path | None, json_wanted: bool,
    **parameters: Any,
) -> None:  # fmt: skip
    """Run every strategy over the recorded history of a group: which one would have served it best?"""
    from evenlag.cli.replaying import replay_fleet, summary_document, write_replay

    parameters["strategies"] = STRATEGIES if strategies is None else strategies
    options = ReplayOptions(time_limit=group_time_limit, **parameters)
    options.check()
    with working("reading"):
        many = group is None and holds_many_groups(offsets)
    if many:
        if plot is not None:
            raise click.UsageError(f"--plot shows one group, and {offsets} holds several: choose one with --group")
        with progress_bar("groups replayed", err) as progress:
            fleet = replay_fleet(
                offsets, members, out=out_folder, form=form, overwrite=overwrite, progress=progress,
                auto_offset_reset=auto_offset_reset, group_time_limit=group_time_limit, **parameters,
            )  # fmt: skip
        click.echo(json.dumps(vars(fleet))) if json_wanted else out.print(fleet.report())
        return
    with working("reading"):
        history = read_history(offsets, members, group, auto_offset_reset)
    with progress_bar("strategies replayed", err) as progress:
        replayed = run_replay(history, options, progress)
    written = [] if out_folder is None else write_replay(replayed, out_folder, form, overwrite)
    if plot is not None:
        from evenlag.compare.replay_picture import draw_replay

        draw_replay(replayed, plot)
        written.append(plot)
    if json_wanted:
        click.echo(json.dumps(summary_document(replayed) | {"written": [str(path) for path in written]}))
        return
    out.print(replay_report(replayed))
    if written:
        out.print(f"written: {', '.join(str(path) for path in written)}")


# ---- progress ----------------------------------------------------------------------------------------------------


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show that work goes on, on a terminal only."""
    with Progress(
        SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=err, transient=True,
        disable=not err.is_terminal,
    ) as progress:  # fmt: skip
        progress.add_task(what)
        yield
