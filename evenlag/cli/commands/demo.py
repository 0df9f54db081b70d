"""`evenlag demo`: the main job on a snapshot that comes with evenlag."""

from __future__ import annotations

from pathlib import Path

import click

from evenlag.cli import options
from evenlag.cli.terminal import err, show
from evenlag.report.progress import progress_bar


@click.command()
@options.out("Folder for the tables and the picture.", default=Path("out/demo"), show_default=True)
@options.group_time_limit(3.0)
def demo(out: Path, group_time_limit: float) -> None:
    """Plan and audit a recorded cluster on local Spark.

    The snapshot is of a real cluster, and comes with evenlag.
    """
    # PySpark takes a second to import, and most commands do without.
    from evenlag.cli.fleet import run_demo

    with progress_bar("groups audited", err) as progress:
        report = run_demo(out, group_time_limit=group_time_limit, progress=progress)
    show(report.report(), None, as_json=False)
