"""`evenlag whatif`: the best plan before and after a change of the group."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from evenlag.cli import options
from evenlag.cli.options import Source
from evenlag.cli.paths import given
from evenlag.cli.terminal import show, show_notes, working
from evenlag.compare import Change
from evenlag.compare import whatif as compare_change
from evenlag.compare.change import NewPartitions
from evenlag.model.balance import Balance
from evenlag.model.files import write_json
from evenlag.model.words import BalanceWord, NewPartitionsWord
from evenlag.report.whatif_text import whatif_report

_COUNT = re.compile(r"[+-][0-9]{1,9}", re.ASCII)
_BALANCES = click.Choice([rule.value for rule in Balance])


def _named(values: Iterable[str]) -> dict[str, str]:
    """Read `NAME=VALUE`, each name once; a member's name may hold an equals sign."""
    pairs: dict[str, str] = {}
    for value in values:
        name, equals, said = value.rpartition("=")
        if not name or not equals:
            raise click.BadParameter(f"{value!r} is no NAME=VALUE")
        if name in pairs:
            raise click.BadParameter(f"{name!r} is given twice")
        pairs[name] = said
    return pairs


def _sizes(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    named = _named(values)
    for topic, size in named.items():
        if not re.fullmatch(r"-?[0-9]{1,12}", size, re.ASCII):
            raise click.BadParameter(f"{topic!r}: {size!r} is no number of partitions")
    return {topic: int(size) for topic, size in named.items()}


def _weights(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    weights: dict[str, float] = {}
    for name, weight in _named(values).items():
        try:
            weights[name] = int(weight) if weight.isdecimal() else float(weight)
        except ValueError as error:
            raise click.BadParameter(f"{name!r}: {weight!r} is no number") from error
    return weights


def _members(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[int, Path | None]:
    """Tell how many more or fewer members are asked for from the members table that goes with an offsets table."""
    counts = [int(value) for value in values if _COUNT.fullmatch(value)]
    tables = [Path(given(value)) for value in values if not _COUNT.fullmatch(value)]
    if len(counts) > 1 or len(tables) > 1:
        raise click.BadParameter("give one number such as +2, and one members table")
    for table in tables:
        if table.name.isdecimal():
            raise click.BadParameter(f"{str(table)!r}: say how many more or fewer, as +{table} or -{table}")
        if not table.exists():
            raise click.BadParameter(f"it is +2, -1 or a members table; there is no file {str(table)!r}")
    return counts[0] if counts else 0, tables[0] if tables else None


def _added(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, list[str] | None]:
    added: dict[str, list[str] | None] = {}
    for value in values:
        name, equals, topics = value.partition("=")
        if name in added:
            raise click.BadParameter(f"{name!r} is given twice")
        added[name] = [topic.strip() for topic in topics.split(",") if topic.strip()] if equals else None
    return added


@click.command()
@click.argument("path", metavar="INPUT", type=options.INPUT)
@click.option("--members", multiple=True, metavar="+N|-N|FILE", callback=_members,
              help="So many more members, or so many fewer, the last by name; given a file: the members table that "
              "goes with an offsets table.")  # fmt: skip
@click.option("--add", multiple=True, metavar="NAME[=TOPIC,…]", callback=_added,
              help="A new member, and what it reads; default: what all others do. May be given again.")  # fmt: skip
@click.option("--remove", multiple=True, metavar="NAME", help="A member that leaves; may be given again.")
@click.option("--partitions", multiple=True, metavar="TOPIC=N", callback=_sizes,
              help="More partitions for a topic, N in all; may be given again.")  # fmt: skip
@click.option("--new-partitions", type=click.Choice([each.value for each in NewPartitions]),
              default=NewPartitions.EMPTY.value, show_default=True,
              help="Lags of such a topic: new partitions are empty, or all as if the keys had been hashed over all."
              )  # fmt: skip
@click.option("--weight", "weights", multiple=True, metavar="NAME=W", callback=_weights,
              help="Another weight for a member; may be given again.")  # fmt: skip
@click.option("--balance", type=_BALANCES, help="The rule of counts after the change; default: the one before.")
@click.option("--balance-before", type=_BALANCES, default=Balance.BOTH.value, show_default=True,
              help="The rule of counts before the change.")  # fmt: skip
@click.option("--group", help="The group to take from a table of several.")
@options.auto_offset_reset
@options.pricing
@options.across
@options.method
@options.horizon_or_auto
@options.limiting(10.0)
@options.gap(0.0)
@click.option("--save", type=options.FILE, help="Write the changed group here, a problem file.")
@options.as_json
def whatif(
    path: Path, members: tuple[int, Path | None], add: dict[str, list[str] | None], remove: tuple[str, ...],
    partitions: dict[str, int], new_partitions: NewPartitionsWord, weights: dict[str, float],
    balance: BalanceWord | None, balance_before: BalanceWord, group: str | None, auto_offset_reset: str, horizon: str,
    save: Path | None, as_json: bool, **parameters: Any,
) -> None:  # fmt: skip
    """Compare the best plans of one group before and after a change.

    A change of members, partitions, weights or balance. Nothing is changed anywhere.
    """
    more, table = members
    change = Change(
        members=more, add=add, remove=remove, partitions=partitions, weights=weights, balance=balance,
        new_partitions=new_partitions,
    )  # fmt: skip
    source = Source(path, table, group, auto_offset_reset)
    source.keep(save)
    problem, notes = source.read(horizon)
    with working(f"solving {problem.group} before and after"):
        found = compare_change(problem, change, balance=balance_before, **parameters)
    if save is not None:
        write_json(save, found.after.plan.problem.to_dict())
    show(whatif_report(found), found.to_dict() | {"notes": [*notes, *found.notes]}, as_json)
    if not as_json:
        show_notes(notes)
