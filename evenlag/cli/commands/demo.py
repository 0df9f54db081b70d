"""`evenlag demo`: diagnose the groups of the snapshot that comes with evenlag, and audit them on Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path

import click

import evenlag
from evenlag import report
from evenlag.cli import options
from evenlag.cli.catalogue import command
from evenlag.cli.page_writing import report_fleet
from evenlag.cli.terminal import progress, say, show, working
from evenlag.errors import SourceError, printable, to_get

PICTURE, PAGE = "picture.png", "report.html"
SHOWN = "billing"  # group whose diagnosis is shown whole
EACH = 0.5  # seconds for the diagnosis of a group


@command("evenlag demo", "evenlag demo --fleet --out demo --group-time-limit 1")
@click.option("--fleet", is_flag=True, help="Then plan and audit all groups on local Spark; write tables and a page.")
@options.out("With --fleet: folder for the tables, the picture and the page.", default=Path("out/demo"),
             show_default=True)  # fmt: skip
@options.group_time_limit(3.0, "With --fleet: seconds per group.")
def demo(fleet: bool, out: Path, group_time_limit: float) -> None:
    """Diagnose the groups of a recorded cluster.

    The snapshot was recorded from a real cluster and is part of evenlag.
    """
    if fleet:
        _check_packages()
    with _recorded() as tables:
        _diagnose(*tables)
        if fleet:
            _audit(tables, out, group_time_limit)
        else:
            say("evenlag demo --fleet plans and audits them all on local Spark, and draws the strategies.")


@contextmanager
def _recorded() -> Iterator[tuple[Path, Path]]:
    """Yield the paths of the recorded offsets and members tables.

    Raises
    ------
    SourceError
        The tables are not installed.
    """
    with as_file(files("evenlag.examples")) as folder:
        tables = (folder / "offsets.csv", folder / "members.csv")
        if not tables[0].exists():
            raise SourceError(f"{tables[0]}: the recorded snapshot is missing; install evenlag from its repository")
        yield tables


def _diagnose(offsets: Path, members: Path) -> None:
    """Print the verdict on each group, and the whole diagnosis of one."""
    with working("diagnosing the recorded groups"):
        groups = evenlag.read_groups(offsets, members=members)
        found = {name: evenlag.diagnose(group, time_limit=EACH) for name, group in groups.items()}
    for name, diagnosis in found.items():
        say(f"{printable(name)}: {printable(diagnosis.verdict)}")
    say("")
    show(report.diagnosis_report(found[SHOWN]))


def _audit(tables: tuple[Path, Path], out: Path, group_time_limit: float) -> None:
    """Plan and audit the groups on local Spark, and write the tables, the picture and the page."""
    # PySpark takes a second to import, and most commands do not need it.
    from evenlag.spark.driver.kafka import session_for
    from evenlag.spark.driver.local_out import AUDIT_TABLES, check_local_out
    from evenlag.spark.jobs.batch import audited, draw_most_gained

    picture, page = out / PICTURE, out / PAGE
    with progress("groups audited") as update:
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
    """Raise an error for a missing package now, not after the fleet is audited."""
    import_module("pyspark")
    for package in ("jinja2", "matplotlib"):
        if find_spec(package) is None:
            raise SourceError(f"evenlag demo needs {package}; {to_get(package)}")
