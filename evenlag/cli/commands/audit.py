"""`evenlag audit`: every strategy beside the optimum, for single groups or for a whole fleet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evenlag.cli import options
from evenlag.cli.terminal import err, print_json, show, show_notes, working
from evenlag.compare import audit as audit_group
from evenlag.report.progress import progress_bar
from evenlag.report.text import audit_report
from evenlag.search.clock import LEAST_SECONDS, LONGEST, Clock
from evenlag.tables.read import read_group

FLEET_GAP = options.FLEET_GAP
OF_PLANS = ("--stickiness", "--max-moves", "--slack", "--objective", "--method", "--only-if-better", "--pause")


@click.command()
@click.argument("inputs", nargs=-1, type=options.INPUT)
@click.option("--offsets", type=options.place, metavar="PATH",
              help="Offsets table of many groups, a file, a folder, kafka://HOST:PORT/TOPIC or "
              "table:CATALOG.NAMESPACE.NAME: audited on Spark.")  # fmt: skip
@click.option("--members", type=options.place, metavar="PATH", help="Members table that goes with an offsets table.")
@click.option("--group", help="The group to take from a table of several, as the one INPUT; --offsets audits them all.")
@options.kafka
@options.spark_out("Folder for the tables plans, audit, rejects, groups and summary, or table:CATALOG.NAMESPACE.")
@options.overwrite
@options.modelling
@options.method
@options.auto_offset_reset
@options.horizon_or_auto
@options.only_if_better
@options.pause
@options.group_time_limit(2.0)
@options.limiting(None, "Seconds for the whole call; default: as many as the groups need.")
@options.gap(None, "Stop within this fraction of the mean load of the bound; default 0, for a fleet "
             f"{FLEET_GAP:g}.")  # fmt: skip
@options.tasks
@options.spark
@options.as_json
def audit(
    inputs: tuple[Path, ...], offsets: str | Path | None, group: str | None, as_json: bool, **parameters: Any
) -> None:  # fmt: skip
    """Put every strategy beside the optimum.

    Of single groups (INPUTS), or of a whole fleet on Spark (--offsets).
    """
    if bool(inputs) == (offsets is not None):
        raise click.UsageError(
            "give problem files, snapshot tables or kafka-consumer-groups text, or --offsets with --out for a fleet on "
            "Spark"
        )
    if offsets is not None:
        options.refuse(("--group",), "goes with INPUT, and --offsets is a fleet")
        _audit_fleet(offsets, as_json=as_json, **parameters)
    else:
        options.refuse(("--out",), "goes with --offsets; of single groups --json prints all that there is")
        options.refuse(("--balance",), "goes with --offsets; single groups are audited under every balance")
        options.refuse(OF_PLANS, "goes with --offsets; of single groups ask evenlag plan")
        options.refuse(options.OF_SPARK, "goes with --offsets; single groups need no Spark")
        if len(inputs) > 1:
            options.refuse(("--group",), f"goes with one INPUT, not {len(inputs)}")
        _audit_groups(inputs, group, as_json=as_json, **parameters)


def _audit_fleet(
    offsets: str | Path, *, out: str | Path | None, gap: float | None, threads: int | None,
    kafka_options: dict[str, str], master: str | None, conf: dict[str, str], as_json: bool, **parameters: Any,
) -> None:  # fmt: skip
    if out is None:
        raise click.UsageError("--offsets needs --out, the folder for the tables")
    if threads is not None:
        raise click.UsageError("--threads goes with single groups; on Spark every task has one")
    # PySpark takes a second to import, and only a fleet needs it.
    from evenlag.cli.fleet import audit_fleet

    with progress_bar("groups audited", err) as progress:
        report = audit_fleet(
            offsets, out=out, gap=FLEET_GAP if gap is None else gap, progress=progress,
            options=kafka_options, spark_settings=options.spark_settings(master, conf), **parameters
        )  # fmt: skip
    show(report.report(), report.to_dict(), as_json)


def _audit_groups(
    inputs: tuple[Path, ...], group: str | None, *, members: Path | str | None, auto_offset_reset: str, horizon: str,
    group_time_limit: float, time_limit: float | None, gap: float | None, seed: int, deterministic: bool,
    threads: int | None, as_json: bool, **_of_fleets: Any,
) -> None:  # fmt: skip
    table = options.file_of(members)
    clock = Clock(LONGEST if time_limit is None else time_limit)
    documents = []
    for number, path in enumerate(inputs):
        problem, notes = read_group(path, table, group, auto_offset_reset, horizon)
        seconds = max(min(group_time_limit, clock.left() / (len(inputs) - number)), LEAST_SECONDS)
        with working(f"auditing {problem.group}"):
            audited = audit_group(
                problem, time_limit=seconds, gap=gap or 0.0, seed=seed, deterministic=deterministic, threads=threads
            )
        rows = [vars(row) for row in audited.rows]
        documents.append({"group": problem.group, "rows": rows, "warnings": [*notes, *problem.warnings]})
        if not as_json:
            show(audit_report(audited), None, as_json=False)
            show_notes(notes)
    if as_json:
        print_json(documents)
