"""`evenlag fleet audit`: plan and audit all groups, and write the tables."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from evenlag.cli import options, terms
from evenlag.cli.catalogue import command
from evenlag.cli.failed_groups import allow_errors, end
from evenlag.cli.options import Ceiling, Fleet
from evenlag.cli.past_options import PastOptions, fleet_past_or_pause
from evenlag.cli.terminal import print_json, progress, show, show_notes
from evenlag.model.defaults import FLEET_GAP

if TYPE_CHECKING:
    from evenlag.compare.traffic_price import TrafficPrice


@command(
    "evenlag fleet audit offsets.csv --members members.csv --out out",
    "evenlag fleet audit offsets.csv --members members.csv --out out --first crossings,moves",
    "evenlag fleet audit offsets.csv --members members.csv --out out --first moves --max-drain 15m --capacity 1000",
    "evenlag fleet audit record/offsets --members record/members --out out --group-time-limit 1 --json",
)
@options.fleet
@options.spark_out(
    "Folder for the tables plans, audit, rejects, groups and summary, or table:CATALOG.NAMESPACE.", required=True
)
@options.overwrite
@terms.fleet_data
@options.modelling
@terms.asked_of_tables
@options.ceiling
@terms.traffic_price
@options.method
@options.horizon_or_auto
@options.only_if_better
@fleet_past_or_pause
@options.group_time_limit(2.0)
@options.time_limit(None, "Seconds from the start of Spark to the report; default: no limit but --group-time-limit.")
@options.gap(FLEET_GAP)
@options.repeating
@allow_errors("have no plan", "0%")
@options.tasks
@options.spark
@options.as_json
def fleet_audit(
    fleet: Fleet, ceiling: Ceiling, past: PastOptions, traffic_price: TrafficPrice | None, allow_errors: Fraction,
    as_json: bool, **parameters: Any,
) -> None:  # fmt: skip
    """Plan and audit every group of a fleet, and write the tables.

    OFFSETS is an offsets table: a file, a folder, kafka://HOST:PORT/TOPIC or table:CATALOG.NAMESPACE.NAME.
    """
    parameters |= ceiling.of_fleet | {"pause": past.default if past.pause is None else past.pause}
    options.check_solving(parameters)
    # NumPy takes a tenth of a second to import, and PySpark a second; help does not need them.
    from evenlag.spark.driver.local_out import AUDIT_TABLES

    fleet.check(parameters["out"], AUDIT_TABLES, parameters["overwrite"])
    from evenlag.spark.jobs.batch import audited
    from evenlag.spark.jobs.by_history import past_at

    given = fleet.opened()
    measured = past_at(given[0], past.place)
    parameters["past"] = measured if past.pause is None else measured.without_pauses()
    with progress("groups audited") as update:
        found = audited(*given, progress=update, options=fleet.on.kafka, traffic_price=traffic_price, **parameters)
    if as_json:
        print_json(found.to_dict())
    else:
        show(found.report())
        show_notes(past.remark(measured, measured))
    summary = found.summary
    end(summary.failed, summary.groups, allow_errors, summary.errors, "got no plan")
