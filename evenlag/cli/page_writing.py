"""Pages that commands write: that of a fleet, and the end of any."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evenlag import report as reports
from evenlag.cli.terminal import print_json, say, working
from evenlag.model.problem_files import write_text

MOST_REBALANCING = 30  # groups listed that rebalance most often


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
