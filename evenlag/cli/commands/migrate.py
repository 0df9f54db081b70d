"""`evenlag migrate`: what groups get under KIP-848, what changes, and the steps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

import evenlag
from evenlag import live, report
from evenlag.cli import options
from evenlag.cli.catalogue import Word, command
from evenlag.cli.ending import FAILED, end, notes_of
from evenlag.cli.groups_input import READING, READING_LIMIT, GroupsInput, reading_groups
from evenlag.cli.terminal import print_json, show, show_notes, working
from evenlag.errors import InfeasibleError, InvalidProblemError
from evenlag.model.interrupt import Watch, ending_searches
from evenlag.model.literals import BrokerWord

if TYPE_CHECKING:
    from evenlag.compare.migration import Migration
    from evenlag.tables.cluster_address import Brokers


@command(
    "evenlag migrate offsets.csv --members members.csv --group billing",
    "evenlag migrate kafka://HOST:PORT --group billing",
    "evenlag migrate kafka://HOST:PORT --group 'billing*' --json",
)
@reading_groups("", READING_LIMIT)
@click.option("--assignor", type=Word(get_args(BrokerWord)), default="uniform", show_default=True,
              help="The broker's assignor in the steps; both are forecast.")  # fmt: skip
@options.balance
@options.stickiness
@options.group_time_limit(2.0, "Most seconds for evenlag's plan of each group.")
@options.repeating
@options.as_json
def migrate(source: GroupsInput, group_time_limit: float, as_json: bool, **parameters: Any) -> None:
    """Forecast what groups get under KIP-848, and what breaks.

    INPUT is a cluster (kafka://HOST:PORT), a problem file, a snapshot table or the output of kafka-consumer-groups
    --describe. One group gets a full report, several get a line each.
    """
    given, board, notes = source.opened(), source.board(), list[str]()
    with working("reading"):
        seen = list(given.read(board.choose, notes.append))
        topic_ids = None if isinstance(source.path, Path) else _topic_ids(source.path, source, notes)
    if board.unmatched:
        raise InvalidProblemError("; ".join(f"{each}: {board.no_match(each)}" for each in board.unmatched))
    found: list[Migration] = []
    failed: list[str] = []
    ended = Watch()
    for each in seen:
        if isinstance(each.found, InvalidProblemError):
            failed.append(f"group {each.name!r} is left out: {each.found}")
            continue
        notes += each.found.notes if len(seen) == 1 else ()
        try:
            with ending_searches() as ended, working(f"solving {each.name}"):
                found.append(
                    evenlag.migrate(each.found.problem, topic_ids=topic_ids, time_limit=group_time_limit, **parameters)
                )
        except InfeasibleError as error:
            failed.append(f"group {each.name!r} is left out: {error}")
        if ended.interrupted:
            break
    if failed and not (found or ended.interrupted):
        raise InvalidProblemError("; ".join(failed))
    notes += [*failed, *notes_of(ended)]
    if as_json:
        print_json(report.migration_document(found, notes))
    else:
        show(report.migration_report(found[0]) if len(found) == 1 else report.migration_lines(found))
        show_notes(notes)
    end(ended)
    if failed:
        raise click.exceptions.Exit(FAILED)


def _topic_ids(brokers: Brokers, source: GroupsInput, notes: list[str]) -> dict[str, str] | None:
    timeout = source.timeout or READING
    return live.topic_ids(brokers.servers, notes.append, timeout=timeout, config=source.config)
