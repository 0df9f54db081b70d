"""`evenlag fleet replay`: replay the recorded histories of all groups."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from evenlag.cli import options
from evenlag.cli.catalogue import command
from evenlag.cli.failed_groups import allow_errors, end
from evenlag.cli.options import Fleet
from evenlag.cli.past_options import PastOptions, fleet_past_or_no_pause
from evenlag.cli.terminal import print_json, progress, show


@command(
    "evenlag fleet replay record/offsets --members record/members",
    "evenlag fleet replay record/offsets --strategies evenlag,range --out out --format csv",
)
@options.fleet
@options.replaying
@fleet_past_or_no_pause
@options.spark_out("Folder for the tables summary and steps, or table:CATALOG.NAMESPACE.")
@options.form(("parquet", "csv"), default="parquet", show_default=True)
@options.overwrite
@allow_errors("fail")
@options.tasks
@options.spark
@options.as_json
def fleet_replay(
    fleet: Fleet, out: str | Path | None, past: PastOptions, allow_errors: Fraction | None, as_json: bool,
    **parameters: Any,
) -> None:  # fmt: skip
    """Replay the recorded history of every group of a fleet.

    OFFSETS is an offsets table with snapshots of several times: a file, a folder, kafka://HOST:PORT/TOPIC or
    table:CATALOG.NAMESPACE.NAME.
    """
    if out is None:
        options.refuse_without_out("--format", "--overwrite")
    # NumPy takes a tenth of a second to import, and PySpark a second; help does not need them.
    from evenlag.spark.driver.local_out import REPLAY_TABLES

    fleet.check(out, [f"{name}.{parameters['form']}" for name in REPLAY_TABLES], parameters["overwrite"])
    from evenlag.spark.jobs.by_history import past_at, replayed_fleet

    given = fleet.opened()
    parameters |= {"pause": past.pause, "past": past_at(given[0], past.place)}
    with progress("groups replayed") as update:
        found = replayed_fleet(*given, out=out, progress=update, options=fleet.on.kafka, **parameters)
    if as_json:
        print_json(found.to_dict())
    else:
        show(found.report())
    end(found.failed, found.groups, allow_errors, found.reasons, "could not be replayed")
