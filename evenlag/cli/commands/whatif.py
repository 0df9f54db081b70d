"""`evenlag whatif`: compare the best plans before and after a change of the group."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

import evenlag
from evenlag import model, report
from evenlag.cli import options, terms
from evenlag.cli.catalogue import Word, command
from evenlag.cli.decorators import into, pairs, weights_of_members
from evenlag.cli.ending import end, notes_of
from evenlag.cli.former_names import is_count
from evenlag.cli.options import Source
from evenlag.cli.terminal import print_json, show, show_notes, working
from evenlag.model.interrupt import ending_searches
from evenlag.model.literals import BalanceWord, NewPartitionsWord

if TYPE_CHECKING:
    from evenlag.compare.change import Change
    from evenlag.compare.traffic_price import TrafficPrice

_COUNT = re.compile(r"[+-][0-9]{1,9}", re.ASCII)
_BALANCES = click.Choice(get_args(BalanceWord))


def _sizes(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    named = pairs(values)
    for topic, size in named.items():
        if not re.fullmatch(r"-?[0-9]{1,12}", size, re.ASCII):
            raise click.BadParameter(f"{topic!r}: the number of partitions must be a whole number, not {size!r}")
    return {topic: int(size) for topic, size in named.items()}


def _count(_: click.Context, __: click.Parameter, value: str | None) -> int:
    if value is None:
        return 0
    if not _COUNT.fullmatch(value):
        raise click.BadParameter(f"{value!r}: write +2 to add two members, or -1 to remove one")
    return int(value)


def _added(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, list[str] | None]:
    added: dict[str, list[str] | None] = {}
    for value in values:
        name, equals, topics = value.partition("=")
        if name in added:
            raise click.BadParameter(f"{name!r} is given twice")
        added[name] = [topic.strip() for topic in topics.split(",") if topic.strip()] if equals else None
    return added


def _change(
    change_members: int, add: dict[str, list[str] | None], remove: tuple[str, ...], partitions: dict[str, int],
    new_partitions: NewPartitionsWord, weights: dict[str, float], balance: BalanceWord | None,
) -> Change:  # fmt: skip
    """Return the change that the options describe."""
    return evenlag.Change(
        members=change_members, add=add, remove=remove, partitions=partitions, weights=weights, balance=balance,
        new_partitions=new_partitions,
    )  # fmt: skip


@command(
    "evenlag whatif offsets.csv --members members.csv --group billing --change-members +2",
    "evenlag whatif group.json --remove c1 --partitions orders=12 --json",
    "evenlag whatif group.json --change-members +1 --rack-price 2 --traffic-price 0.01/GB",
)
@options.reading_unweighted
@click.option("--change-members", metavar="+N|-N", callback=_count,
              help="+N adds N members, -N removes the last N by name.")  # fmt: skip
@click.option("--add", multiple=True, metavar="NAME[=TOPIC,…]", callback=_added,
              help="Add a member that reads these topics; default: the topics of the others, if these are the same. "
              "Repeatable.")  # fmt: skip
@click.option("--remove", multiple=True, metavar="NAME", help="Remove a member. Repeatable.")
@click.option("--partitions", multiple=True, metavar="TOPIC=N", callback=_sizes,
              help="Grow a topic to N partitions. Repeatable.")  # fmt: skip
@click.option("--new-partitions", type=Word(get_args(NewPartitionsWord)),
              default="empty", show_default=True,
              help="Lag of a grown topic: empty leaves it in the old partitions, rehashed spreads it over all."
              )  # fmt: skip
@click.option("--weight", "weights", multiple=True, metavar="NAME=W", callback=weights_of_members,
              help="Change a member's weight. Repeatable.")  # fmt: skip
@click.option("--balance", type=_BALANCES, help="Count balance after the change; default: the one before it.")
@click.option("--balance-before", type=_BALANCES, default="both", show_default=True,
              help="Count balance before the change.")  # fmt: skip
@options.pricing
@options.across
@terms.asked
@terms.traffic_price
@options.method
@options.horizon_or_auto
@options.capacity
@options.limiting(10.0)
@options.gap(0.0)
@click.option("--out", "save", type=options.FILE, help="File to write the changed group to, as a problem file.")
@options.as_json
@into("change", dict, like=_change)
def whatif(
    source: Source, change: dict[str, Any], balance_before: BalanceWord, capacity: float | None, save: Path | None,
    as_json: bool, traffic_price: TrafficPrice | None, **parameters: Any,
) -> None:  # fmt: skip
    """Compare the best plans of one group before and after a change.

    The change is in members, partitions, weights or balance. It is only simulated: nothing is written to Kafka.
    """
    if is_count(source.members):
        raise click.UsageError(f"--members is the members table: write --change-members {source.members}")
    made = _change(**change)
    source.keep(save)
    problem, notes, record = source.read_with_record(capacity)
    if traffic_price is not None:
        traffic_price.check(problem)
    whatif = evenlag.whatif  # imported before the clock runs
    with ending_searches() as watch, working(f"solving {problem.group} before and after"):
        found = whatif(problem, made, record=record, capacity=capacity, balance=balance_before, **parameters)
    notes += notes_of(watch)
    if save is not None:
        model.problem_files.write_json(save, found.after.plan.problem.to_dict())
    if as_json:
        document = report.whatif_document(found, notes)
        if traffic_price is not None:
            document["traffic_cost"] = report.whatif_traffic(found, traffic_price)
        print_json(document)
    else:
        show(report.whatif_report(found, traffic_price))
        show_notes(notes)
    end(watch)
