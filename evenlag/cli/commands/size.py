"""`evenlag size`: how many members a group needs."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import click
from rich.console import Group
from rich.text import Text

from evenlag.cli import options
from evenlag.cli.options import Source
from evenlag.cli.terminal import err, show, show_notes
from evenlag.compare import size as find_size
from evenlag.compare.foresight import AUTO
from evenlag.compare.speeds import Speeds, speeds
from evenlag.errors import InvalidProblemError
from evenlag.figures import number
from evenlag.model.problem import Problem
from evenlag.model.rates import SECOND, horizon_micros
from evenlag.model.words import BalanceWord
from evenlag.report.progress import progress_bar
from evenlag.report.size_text import answer_to, size_report
from evenlag.report.text import how_known
from evenlag.tables.defaults import GROUP_TIME_LIMIT

TIME_LIMIT = 10.0
NO_SCENARIOS = "auto is for plans, and a size is for one lag: that of now (0), or that of a time ahead, such as 1h"


@click.command()
@click.argument("path", metavar="[INPUT]", required=False, type=options.INPUT)
@click.option("--offsets", type=options.place, metavar="PATH",
              help="Offsets table of many groups, a file, a folder, kafka://HOST:PORT/TOPIC or "
              "table:CATALOG.NAMESPACE.NAME: sized on Spark.")  # fmt: skip
@click.option("--members", type=options.place, metavar="PATH", help="Members table that goes with an offsets table.")
@click.option("--group", help="The group to take from a table of several, as INPUT.")
@options.auto_offset_reset
@options.kafka
@click.option("--drain", required=True, metavar="TIME", help="Time in which everything is to be read (90s, 15m, 2h).")
@options.capacity
@options.horizon
@options.balance
@options.slack
@click.option("--most", type=click.IntRange(1),
              help="The largest number of members to look at; default: up to where more bring little.")  # fmt: skip
@options.limiting(None, f"Seconds for the whole call, of INPUT; default {TIME_LIMIT:g}.")
@options.group_time_limit(GROUP_TIME_LIMIT, "Seconds for one group of a fleet.")
@options.spark_out("Folder for the tables groups and sizes of a fleet, or table:CATALOG.NAMESPACE.")
@options.overwrite
@options.tasks
@options.spark
@options.plot("Picture of INPUT to write")
@options.as_json
def size(path: Path | None, offsets: str | Path | None, drain: str, as_json: bool, **parameters: Any) -> None:
    """Say how many members it takes to read everything in time.

    Of one group (INPUT), or of a fleet on Spark (--offsets).
    """
    if (path is None) == (offsets is None):
        raise click.UsageError("give one INPUT, or --offsets for a fleet on Spark")
    deadline = Fraction(horizon_micros(drain, "drain"), SECOND)
    if not deadline:
        raise InvalidProblemError(f"drain must be a time > 0, such as 15m, not {drain!r}")
    if offsets is not None:
        options.refuse(("--group", "--plot", "--threads", "--time-limit"), "goes with INPUT, and --offsets is a fleet")
        if parameters["horizon"] != "0":
            raise click.UsageError("--horizon goes with INPUT: a fleet is sized for its lag of now")
        if parameters["out"] is None:
            options.refuse(("--overwrite",), options.WRITES_NOTHING)
        _size_fleet(offsets, deadline, as_json=as_json, **parameters)
    elif path is not None:
        options.refuse(options.OF_SPARK, "goes with --offsets; one group needs no Spark")
        options.refuse(("--group-time-limit",), "goes with --offsets; for INPUT there is --time-limit")
        _size_group(path, deadline, as_json=as_json, **parameters)


def _size_fleet(
    offsets: str | Path, deadline: Fraction, *, members: str | Path | None, out: str | Path | None, overwrite: bool,
    auto_offset_reset: str, kafka_options: dict[str, str], capacity: float | None, balance: str, slack: int,
    most: int | None, group_time_limit: float, seed: int, deterministic: bool, tasks: int | None, master: str | None,
    conf: dict[str, str], as_json: bool, **_of_one: Any,
) -> None:  # fmt: skip
    # PySpark takes a second to import, and only a fleet needs it.
    from evenlag.cli.sizing import size_fleet

    with progress_bar("groups sized", err) as progress:
        fleet = size_fleet(
            offsets, members, out=out, overwrite=overwrite, auto_offset_reset=auto_offset_reset, progress=progress,
            options=kafka_options, spark_settings=options.spark_settings(master, conf), drain_seconds=deadline,
            capacity=capacity, balance=balance, slack=slack, most=most, group_time_limit=group_time_limit, seed=seed,
            deterministic=deterministic, tasks=tasks,
        )  # fmt: skip
    show(fleet.report(), vars(fleet), as_json)


def _size_group(
    path: Path, deadline: Fraction, *, members: Path | str | None, group: str | None, auto_offset_reset: str,
    capacity: float | None, horizon: str, balance: BalanceWord, slack: int, most: int | None, time_limit: float | None,
    seed: int, deterministic: bool, threads: int | None, plot: Path | None, as_json: bool, **_of_fleets: Any,
) -> None:  # fmt: skip
    if horizon == AUTO:
        raise click.BadParameter(NO_SCENARIOS, param_hint="--horizon")
    horizon_micros(horizon)  # so that an error does not offer auto
    source = Source(path, options.file_of(members), group, auto_offset_reset)
    source.keep(plot)
    problem, notes, record = source.read_with_record(horizon)
    try:
        known = speeds(problem, record, capacity)
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{path}: {error}") from error
    with progress_bar("numbers of members looked at", err) as progress:
        found = find_size(
            problem, deadline, known.capacity.rate, rates=known.rates, balance=balance, slack=slack, most=most,
            time_limit=TIME_LIMIT if time_limit is None else time_limit, seed=seed, deterministic=deterministic,
            threads=threads, progress=progress,
        )  # fmt: skip
    notes += problem.warnings
    document = found.to_dict() | {"answer": answer_to(found)}
    document |= {"capacity_source": known.capacity.source, "rates": "record" if known.recorded else "none"}
    document["warnings"] = [*notes, *found.notes]
    if plot is not None:
        # Matplotlib is an extra, and slow to import.
        from evenlag.report.size_picture import draw_size

        draw_size(found, plot)
    report = size_report(found, _said(known, problem))
    if plot is not None:
        report = Group(report, Text(f"written: {plot}"))
    show(report, document, as_json)
    if not as_json:
        show_notes(notes)


def _said(known: Speeds, problem: Problem) -> list[str]:
    """Say where capacity and rates are from, in a sentence each."""
    weights = "" if problem.equal_weights else " for each unit of weight"
    rate, incoming = (number(float(each)) for each in (known.capacity.rate, sum(known.rates, Fraction(0))))
    return [
        f"A member reads {rate} messages a second{weights} ({how_known(known.capacity)}).",
        f"Meanwhile {incoming} messages a second come in, as between the last two snapshots."
        if known.recorded
        else "Nothing is taken to come in meanwhile: a single snapshot tells no rates.",
    ]
