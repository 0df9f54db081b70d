"""`evenlag check`: report groups that need action, for cron and CI."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from evenlag import compare
from evenlag.cli import options
from evenlag.cli.catalogue import command
from evenlag.cli.decorators import FloatRange
from evenlag.cli.ending import FAILED
from evenlag.cli.groups_input import READING_LIMIT, GroupsInput, Questions, questions, reading_groups
from evenlag.cli.past_options import past_or_pause
from evenlag.cli.terminal import print_json, say, show_notes, working
from evenlag.errors import InvalidProblemError, printable
from evenlag.figures import messages, quantity

if TYPE_CHECKING:
    from evenlag.watch.findings import Finding
    from evenlag.watch.group_figures import Figures
    from evenlag.watch.standing import Standing

FOUND = 3  # exit status: something can be done about a group


@command(
    "evenlag check group.json --only-if-better 20%",
    "evenlag check offsets.csv --members members.csv --drain 15m --capacity 300 --json",
    "evenlag check kafka://HOST:PORT --group 'billing*' --only-if-better 20%",
)
@reading_groups(" to check", READING_LIMIT)
@options.weighing
@click.option("--only-if-better", metavar="SHARE", default="20%", show_default=True,
              help="Report a group if a rebalance saves this share of today's spread, moves paid.")  # fmt: skip
@click.option("--drain", metavar="TIME",
              help=f"Report a group that cannot read all lag within this time (15m); {options.BARE}.")  # fmt: skip
@options.capacity
@click.option("--at-least", type=FloatRange(0), metavar="MESSAGES", default=0.0, show_default=True,
              help="Do not report a rebalance that recovers less.")  # fmt: skip
@options.balance
@options.stickiness
@past_or_pause
@options.group_time_limit(2.0, "Most seconds for each group.")
@click.option("--quiet", is_flag=True, help="Print nothing if there is nothing to report, for cron.")
@options.as_json
@questions
def check(
    source: GroupsInput, questions: Questions, at_least: float, quiet: bool, as_json: bool, **solving: Any
) -> None:
    """Report groups that need action, for cron and CI.

    INPUT is a cluster (kafka://HOST:PORT), a problem file, a snapshot table or the output of kafka-consumer-groups
    --describe. The exit status is 0 if no group is reported, 3 if one is, and 1 if a group cannot be read or planned.
    A group that is rebalancing is named but not judged.
    """
    # Help does not need NumPy.
    from evenlag.watch.findings import Finding, Kind, findings
    from evenlag.watch.rounds import Watcher

    past, deadline, asked = questions.past, questions.deadline, questions.asked(solving)
    given = source.opened(whole=True)
    board, notes = source.board(), list[str]()
    watcher = Watcher(given, board, asked, float("inf"), questions.group_time_limit, notes.append)
    with working("checking"):
        failure = watcher.round()
    if failure is not None:
        raise failure
    standings = {name: entry.standing for name, entry in sorted(board.entries.items())}
    figures = {name: each.figures for name, each in standings.items()}
    told = {name: each.problem.facts for name, each in standings.items()}
    if deadline is not None:
        _check_capacity(figures.values())
    found = [Finding(pattern, Kind.FAILED, board.no_match(pattern)) for pattern in board.unmatched]
    found += [Finding(name, Kind.FAILED, why) for name, why in sorted(board.failures.items())]
    for name, each in figures.items():
        of_group = list(findings(name, each, deadline, at_least, told[name]))
        found += of_group
        if (len(figures) == 1 or of_group) and not quiet:  # among several, only groups with findings get notes
            more = [note for note in told[name].notes() if note != told[name].unsettled]
            unlike = None if questions.weighing else compare.unlike_speeds(standings[name].record)
            more += [] if unlike is None else [unlike]
            notes += more if len(figures) == 1 else [f"{name}: {note}" for note in more]
    notes += past.remark(past.measured, board.entries)
    if as_json:
        documents = {name: each.document() for name, each in standings.items()}
        listed = [{"group": each.group, "kind": str(each.kind), "text": each.text} for each in found]
        print_json({"findings": listed, "groups": documents, "notes": notes})
    else:
        _report(found, standings, notes, quiet=quiet)
    kinds = {each.kind for each in found}
    if Kind.FAILED in kinds:
        raise click.exceptions.Exit(FAILED)
    if kinds - {Kind.UNSETTLED}:
        raise click.exceptions.Exit(FOUND)


def _check_capacity(figures: Iterable[Figures]) -> None:
    """Refuse a deadline if no group's rate of reading is known.

    Raises
    ------
    InvalidProblemError
        The message says how to give the rate.
    """
    with_members = [each for each in figures if each.members]
    if with_members and all(each.capacity_messages_per_second is None for each in with_members):
        raise InvalidProblemError(options.NO_RATE.format(option="--drain"))


def _report(found: list[Finding], standings: Mapping[str, Standing], notes: list[str], *, quiet: bool) -> None:
    """Print each finding below its group's diagnosis, or a line with the groups that were judged and have none."""
    said = set[str]()
    unsettled = {each.group for each in found if each.kind == "unsettled"}
    for each in found:
        if quiet and each.kind == "unsettled":
            continue
        diagnosis = standings[each.group].diagnosis if each.group in standings else None
        if diagnosis is not None and each.kind in ("rebalance", "drain") and each.group not in said:
            said.add(each.group)
            say(f"{printable(each.group)}: {printable(diagnosis.verdict)}")
        say(f"{printable(each.group)}: {'failed: ' if each.kind == 'failed' else ''}{printable(each.text)}")
    judged = [each.figures.lag_messages for name, each in standings.items() if name not in unsettled]
    if len(unsettled) == len(found) and not quiet and (judged or not standings):
        say(f"nothing to report: {quantity(len(judged), 'group')} checked, with a lag of {messages(sum(judged))}")
    reported = {f"{each.group}: {each.text}" for each in found}
    show_notes(note for note in notes if not note.startswith("group ") and note not in reported)
