"""`evenlag fleet size`: find how many members each group needs."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from evenlag.cli import options, terms
from evenlag.cli.catalogue import command
from evenlag.cli.failed_groups import allow_errors, end
from evenlag.cli.options import Fleet
from evenlag.cli.past_options import PastOptions, fleet_past
from evenlag.cli.terminal import print_json, progress, show
from evenlag.tables.call_defaults import GROUP_TIME_LIMIT


@command(
    "evenlag fleet size offsets.csv --members members.csv --drain 15m --capacity 2000",
    "evenlag fleet size record/offsets --members record/members --drain 15m --out out",
)
@options.fleet
@terms.fleet_move_data
@options.drain
@options.capacity
@fleet_past
@options.balance
@options.slack
@options.most
@options.group_time_limit(GROUP_TIME_LIMIT)
@options.repeating
@options.spark_out("Folder for the tables groups and sizes, or table:CATALOG.NAMESPACE.")
@options.overwrite
@allow_errors("fail")
@options.tasks
@options.spark
@options.as_json
def fleet_size(
    fleet: Fleet, drain: str, out: str | Path | None, past: PastOptions, allow_errors: Fraction | None, as_json: bool,
    **parameters: Any,
) -> None:  # fmt: skip
    """Find how many members each group of a fleet needs.

    A group needs enough members to read all its lag within the time --drain. OFFSETS is an offsets table: a file, a
    folder, kafka://HOST:PORT/TOPIC or table:CATALOG.NAMESPACE.NAME.
    """
    if out is None:
        options.refuse_without_out("--overwrite")
    deadline = options.deadline(drain)
    options.check_solving(parameters | {"drain_seconds": deadline})
    # NumPy takes a tenth of a second to import, and PySpark a second; help does not need them.
    from evenlag.spark.driver.local_out import SIZE_TABLES

    fleet.check(out, SIZE_TABLES, parameters["overwrite"])
    from evenlag.spark.jobs.by_history import past_at, sized_fleet

    given = fleet.opened()
    parameters |= {"past": past_at(given[0], past.place), "drain_seconds": deadline, "out": out}
    with progress("groups sized") as update:
        found = sized_fleet(*given, progress=update, options=fleet.on.kafka, **parameters)
    if as_json:
        print_json(found.to_dict())
    else:
        show(found.report())
    end(found.failed, found.total, allow_errors, found.reasons, "could not be sized")
