"""`evenlag audit`: compare every strategy with the optimum, for single groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import evenlag
from evenlag import compare, report
from evenlag.cli import options, terms
from evenlag.cli.catalogue import command
from evenlag.cli.ending import end, notes_of
from evenlag.cli.options import Ceiling, Source
from evenlag.cli.terminal import print_json, show, show_notes, working
from evenlag.model.interrupt import Watch, ending_searches
from evenlag.search.clock import LEAST_SECONDS, LONGEST, Clock

if TYPE_CHECKING:
    from evenlag.compare.traffic_price import TrafficPrice


@command(
    "evenlag audit offsets.csv --members members.csv --group billing",
    "evenlag audit group.json --group-time-limit 5 --json",
    "evenlag audit group.json --rack-price 2 --traffic-price 0.01/GB",
)
@options.reading_several
@options.horizon_or_auto
@terms.rack_terms
@options.ceiling
@terms.traffic_price
@options.group_time_limit(2.0)
@options.limiting(None, "Seconds for the whole call; default: no limit but --group-time-limit.")
@options.gap(0.0)
@options.as_json
def audit(
    sources: list[Source], ceiling: Ceiling, traffic_price: TrafficPrice | None, group_time_limit: float,
    time_limit: float | None, as_json: bool, **parameters: Any,
) -> None:  # fmt: skip
    """Compare every strategy with the optimum.

    Each INPUT is a problem file, a snapshot table or the output of kafka-consumer-groups --describe, for one group.
    Output files named by their time (20260131T130000Z.txt) form one record. To audit all groups of a table, use
    evenlag fleet audit.
    """
    from evenlag.compare.built_in import setting_notes  # imports NumPy, which help does not need

    clock, documents, ended = Clock(LONGEST if time_limit is None else time_limit), [], Watch()
    for number, source in enumerate(sources):
        problem, read, record = source.read_with_record(ceiling.capacity)
        most, of_ceiling = ceiling.of(problem, compare.catch_up.pace_of(record, ceiling.capacity))
        if traffic_price is not None:
            traffic_price.check(problem)
        seconds = max(min(group_time_limit, clock.left() / (len(sources) - number)), LEAST_SECONDS)
        with ending_searches() as watch, working(f"auditing {problem.group}"):
            audited = evenlag.audit(problem, time_limit=seconds, max_load=most, **parameters)
        ended, notes = watch, [*setting_notes(problem), *read, *of_ceiling, *notes_of(watch)]
        documents.append(report.audit_document(audited, notes, traffic_price))
        if not as_json:
            show(report.audit_report(audited, traffic_price))
            show_notes(notes)
        if ended.interrupted:
            break
    if as_json:
        print_json(documents)
    end(ended)
