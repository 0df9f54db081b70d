"""`evenlag demo`: plan and audit the snapshot that comes with evenlag."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path

from evenlag.cli import options
from evenlag.cli.catalogue import command
from evenlag.cli.commands.fleet_report import report_fleet
from evenlag.cli.terminal import progress, show
from evenlag.errors import SourceError, to_get

PICTURE, PAGE = "picture.png", "report.html"


@command("evenlag demo", "evenlag demo --out demo --group-time-limit 1")
@options.out("Folder for the tables, the picture and the page.", default=Path("out/demo"), show_default=True)
@options.group_time_limit(3.0)
def demo(out: Path, group_time_limit: float) -> None:
    """Plan and audit a recorded cluster on local Spark.

    The snapshot was recorded from a real cluster and is part of evenlag.
    """
    # PySpark takes a second to import, and most commands do not need it.
    from evenlag.spark.driver.kafka import session_for
    from evenlag.spark.driver.local_out import AUDIT_TABLES, check_local_out
    from evenlag.spark.jobs.batch import audited, draw_most_gained

    _check_packages()
    picture, page = out / PICTURE, out / PAGE
    with as_file(files("evenlag.examples")) as folder, progress("groups audited") as update:
        tables = (folder / "offsets.csv", folder / "members.csv")
        if not tables[0].exists():
            raise SourceError(f"{tables[0]}: the recorded snapshot is missing; install evenlag from its repository")
        for each in (picture, page):  # left by an earlier demo; with overwrite, tables replace only tables
            each.unlink(missing_ok=True)
        check_local_out(out, AUDIT_TABLES, overwrite=True)
        spark = session_for(tables, None, None)
        found = audited(
            spark, *tables, out=out, overwrite=True, time_limit=None, group_time_limit=group_time_limit, progress=update
        )
    draw_most_gained(spark, found, picture)
    show(replace(found, written=[*found.written, str(picture)]).report())
    report_fleet(out, page)


def _check_packages() -> None:
    """Raise a SourceError for a missing package now, not after the fleet is audited."""
    for package in ("jinja2", "matplotlib"):
        if find_spec(package) is None:
            raise SourceError(f"evenlag demo needs {package}; {to_get(package)}")
