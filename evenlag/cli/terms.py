"""Options for racks, state that moves, traffic and the user's own costs: data, prices, budgets and order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from evenlag.cli.catalogue import Word
from evenlag.cli.decorators import Command, FloatRange, into, names, price, settings, together
from evenlag.cli.paths import given
from evenlag.errors import InvalidProblemError
from evenlag.model.literals import CostWord, FetchFromWord, listed

if TYPE_CHECKING:
    from evenlag.compare.traffic_price import TrafficPrice
    from evenlag.model.problem import Problem
    from evenlag.tables.amounts import Amounts

_AMOUNT = re.compile(r"[0-9]{1,16}", re.ASCII)


# ---- callbacks -------------------------------------------------------------------------------------------------------


def _amounts(_: click.Context, __: click.Parameter, value: str | None) -> Amounts | None:
    """Parse a path or comma-separated `TOPIC=N`; an existing file of that name is a path."""
    if value is None or "=" not in value or Path(value).exists():
        return None if value is None else Path(given(value))
    amounts: dict[str, int] = {}
    for each in value.split(","):
        topic, _equals, number = each.strip().rpartition("=")
        if not topic or not _AMOUNT.fullmatch(number):
            raise click.BadParameter(f"{each.strip()!r} is not TOPIC=N, and there is no file {value!r}")
        amounts[topic] = int(number)
    return amounts


def _topics(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> list[list[str]]:
    return [names(context, parameter, value) or [] for value in values]


def _first(context: click.Context, parameter: click.Parameter, value: str | None) -> list[str]:
    return names(context, parameter, value) or []


def _prices(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str | float]:
    return {name: price(context, parameter, value) for name, value in settings(context, parameter, values).items()}


def _budgets(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    budgets = settings(context, parameter, values)
    for name, most in budgets.items():
        if not _AMOUNT.fullmatch(most):
            raise click.BadParameter(f"{name!r}: the budget must be a whole number >= 0, not {most!r}")
    return {name: int(most) for name, most in budgets.items()}


def _traffic_price(_: click.Context, __: click.Parameter, value: str | None) -> TrafficPrice | None:
    if value is None:
        return None
    # This import takes NumPy, which help and completion do not need.
    from evenlag.compare.traffic_price import TrafficPrice

    try:
        return TrafficPrice.of(value)
    except InvalidProblemError as error:
        raise click.BadParameter(str(error)) from error


# ---- data of partitions ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MoreData:
    """Data of a group's partitions and subscriptions, given by options."""

    subscribed: tuple[str, ...] = ()
    move_sizes: Amounts | None = None
    traffic: Amounts | None = None
    together: Sequence[list[str]] = ()
    fetch_from: FetchFromWord | None = None

    def added(self, problem: Problem) -> tuple[Problem, list[str]]:
        """Return the group with the data added, and any notes; see `evenlag.tables.amounts.with_amounts`."""
        problem = problem.subscribing(self.subscribed).with_pair_data(fetch_from=self.fetch_from)
        if self.move_sizes is None and self.traffic is None and not self.together:
            return problem, []
        from evenlag.tables.amounts import with_amounts

        return with_amounts(problem, move_sizes=self.move_sizes, traffic=self.traffic, together=self.together)

    @property
    def files(self) -> Iterable[Path]:
        """The files among the inputs."""
        return (each for each in (self.move_sizes, self.traffic) if isinstance(each, Path))


_move_sizes = click.option(
    "--move-sizes", metavar="FILE|TOPIC=N,…", callback=_amounts,
    help="State that moves with each partition, in any unit: a table with topic, partition and move_size, JSON, "
    "or one number for all partitions of a topic.",
)  # fmt: skip
_traffic = click.option(
    "--traffic", metavar="FILE|TOPIC=N,…", callback=_amounts,
    help="Traffic per partition: a table with topic, partition and traffic, JSON, or one number for all partitions of "
    "a topic. To price traffic, give it in bytes per second.",
)  # fmt: skip


subscribed = click.option(
    "--subscribed", metavar="TOPIC", multiple=True,
    help="A topic to which all members subscribe although none of its partitions has an owner. Repeatable.",
)  # fmt: skip


_together = click.option(
    "--together", metavar="TOPIC,TOPIC…", multiple=True, callback=_topics,
    help="Assign the same partition number of these topics to one member, for every number. Repeatable.",
)  # fmt: skip


_fetch_from = click.option(
    "--fetch-from", type=Word(get_args(FetchFromWord)),
    help="Replicas that members can read: all of them (the default), or the leader alone. Overrides a problem file's "
    "fetch_from.",
)  # fmt: skip
fleet_data = together(_move_sizes, _traffic, _together, _fetch_from)
fleet_move_data = together(_move_sizes, _together)


data = together(subscribed, _move_sizes, _traffic, _together, _fetch_from, into("more", MoreData))
"""Options for data of partitions; the command gets them as `more`."""


# ---- prices, budgets and order ---------------------------------------------------------------------------------------

traffic_price = click.option(
    "--traffic-price", metavar="MONEY/UNIT", callback=_traffic_price,
    help="Price of traffic between racks, such as 0.01/GB: reports add its cost per month. Plans do not depend on it.",
)  # fmt: skip
_rack_price = click.option(
    "--rack-price", metavar="PRICE", default="0", show_default=True, callback=price,
    help="Saving of spread that justifies a unit of traffic between racks: messages or a share of the mean load. If "
    "no traffic is given, a unit is a partition.",
)  # fmt: skip
_max_crossings = click.option(
    "--max-crossings", type=click.IntRange(0), metavar="N", help="Let at most N units of traffic cross racks."
)
_max_moved = click.option(
    "--max-moved", type=click.IntRange(0), metavar="N", help="Move at most N units of state, as given by --move-sizes."
)


def _prices_and_budgets(of: str) -> Command:
    return together(
        click.option("--price", "prices", metavar="NAME=PRICE", multiple=True, callback=_prices,
                     help=f"Price of a unit of {of}: messages or a share of the mean load. Repeatable."),
        click.option("--budget", "budgets", metavar="NAME=N", multiple=True, callback=_budgets,
                     help=f"Spend at most N units of {of}. Repeatable."),
    )  # fmt: skip


_own = _prices_and_budgets("one of the problem file's costs")
_of_tables = _prices_and_budgets(" or ".join(listed(CostWord)))


_moves_or_crossings = "moves (by state size, if given), crossings"
_or_own = ", or costs in the problem file"


def _first_of(which: str) -> Command:
    return click.option(
        "--first", metavar="NAME,…", callback=_first,
        help=f"Minimize these first, in this order, and the spread last: {which}.",
    )  # fmt: skip


max_load = click.option(
    "--max-load", type=FloatRange(0), metavar="MESSAGES",
    help="Give no member more lag than this. If weights differ, a member's limit is proportional to its weight.",
)  # fmt: skip
max_drain = click.option(
    "--max-drain", metavar="TIME",
    help="Give no member more lag than it can read within this time (15m; a bare number is seconds) at its --capacity; "
    "messages that arrive meanwhile are not counted.",
)  # fmt: skip
rack_terms = together(_rack_price, _max_crossings, _own, _first_of(f"crossings{_or_own}"))
asked_but_ceiling = together(
    _rack_price, _max_crossings, _max_moved, _own, _first_of(f"{_moves_or_crossings}{_or_own}")
)
asked = together(asked_but_ceiling, max_load)
asked_without_racks = together(_max_moved, _first_of("moves (by state size, if given)"), max_load)
asked_of_tables = together(_rack_price, _max_crossings, _max_moved, _of_tables, _first_of(_moves_or_crossings))
