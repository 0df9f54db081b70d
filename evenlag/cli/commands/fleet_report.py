"""`evenlag fleet report`: write an HTML page about the groups of a fleet audit."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from evenlag import report as reports
from evenlag.cli import options
from evenlag.cli.catalogue import command
from evenlag.cli.terminal import print_json, say, working
from evenlag.model.files import write_text

MOST_REBALANCING = 30  # groups listed that rebalance most often


@command("evenlag fleet report out --out fleet.html")
@click.argument("tables", type=options.PLACE)
@options.out("File to write the page to.", required=True)
@click.option("--past", type=options.PLACE, metavar="PATH",
              help="Output of evenlag history: also show the groups that rebalance most often.")  # fmt: skip
@options.spark
@options.as_json
def fleet_report(
    tables: str | Path, out: Path, past: str | Path | None, master: str | None, conf: dict[str, str], as_json: bool
) -> None:
    """Write an HTML page about the groups of a fleet audit.

    TABLES is the --out of evenlag fleet audit: a folder, an object store or table:CATALOG.NAMESPACE. The page is one
    file that loads nothing. It lists the groups by possible gain, each with its members, the strategies over all
    groups, and the rules that limit the best plans.
    """
    report_fleet(tables, out, options.spark_settings(master, conf), past=past, as_json=as_json)


def report_fleet(
    tables: str | Path, out: Path, settings: Mapping[str, str] | None = None, *, past: str | Path | None = None,
    as_json: bool = False,
) -> None:  # fmt: skip
    """Write the page about a fleet's tables; start Spark if it is not running."""
    # PySpark takes a second to import, and pages about groups do not need it.
    from evenlag.spark.driver.session import local_session
    from evenlag.spark.jobs.batch import page_rows
    from evenlag.spark.jobs.history import past_figures

    with working("reading the tables"):
        spark = local_session(settings=settings)
        rows = page_rows(spark, tables)
        figures = None if past is None else past_figures(spark, past, MOST_REBALANCING)
    section = None if figures is None else reports.past_document(figures, str(past))
    document = reports.fleet_document(rows.groups, rows.audit, rows.loads, rows.totals, str(tables), past=section)
    finish(document, reports.fleet_page(document, datetime.now(UTC)), out, as_json=as_json)


def finish(document: dict[str, Any], page: str, out: Path, *, as_json: bool) -> None:
    """Write a page, and print its first sentence or its document."""
    write_text(out, page)
    if as_json:
        print_json(document)
    else:
        say(document["headline"])
        say(f"written: {out}")
