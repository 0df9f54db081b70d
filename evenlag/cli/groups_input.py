"""INPUT of commands that read many groups, once or again and again, and the questions they answer on each."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenlag import tables
from evenlag.cli import options, terms
from evenlag.cli.decorators import Command, into, together
from evenlag.cli.past_options import PastOptions

if TYPE_CHECKING:
    from evenlag.compare import Weighing
    from evenlag.tables.cluster_address import Brokers
    from evenlag.watch.board import Board
    from evenlag.watch.inputs import Input
    from evenlag.watch.standing import Asked

MOST_GROUPS = 2_000  # if no other number is given
READING = 30.0  # seconds for the brokers' answers about all groups, without --timeout
READING_LIMIT = options.timeout(
    None, f"{options.OF_CLUSTER[:-1]}; default: {READING:g}, and {options.FIRST_ANSWER:g} for their first answer."
)  # fmt: skip


@dataclass(frozen=True)
class GroupsInput:
    """A cluster or files, the groups to read, and the options that say how to read them."""

    path: Brokers | Path
    members: Path | None
    groups: tuple[str, ...]
    input_format: str | None
    auto_offset_reset: str
    subscribed: tuple[str, ...]
    command_config: Path | None
    timeout: float | None
    most_groups: int = MOST_GROUPS

    @cached_property
    def config(self) -> dict[str, str]:
        """Properties of the client, by librdkafka's names."""
        return options.client_config(self.command_config)

    def board(self, stale: float = float("inf")) -> Board:
        """Return a board of the groups; their figures are served for `stale` seconds."""
        from evenlag.watch.board import Board  # imports NumPy, which help does not need

        return Board(self.most_groups, self.groups, stale, of_cluster=not isinstance(self.path, Path))

    def opened(self, *, whole: bool = False, repeated: bool = False, timeout: float = READING) -> Input:
        """Return the input, to be read once or repeatedly.

        Parameters
        ----------
        whole : bool
            As in `FileInput`.
        timeout : float
            Seconds for the brokers' answers without `--timeout`.

        Raises
        ------
        SourceError
            An option does not apply to a cluster.
        """
        from evenlag.live.cluster.stopped import Pulse
        from evenlag.watch.inputs import ClusterInput, FileInput

        if isinstance(self.path, Path):
            source, members = tables.both_tables(self.path, self.members)
            return FileInput(source, members, self.input_format, self.auto_offset_reset, self.subscribed, whole=whole)
        self.path.check_alone(self.members, self.input_format)
        pulse = Pulse() if repeated else None
        return ClusterInput(
            self.path.servers, self.timeout or timeout, self.config, self.auto_offset_reset, pulse,
            self.timeout or min(options.FIRST_ANSWER, timeout),
        )  # fmt: skip


def reading_groups(use: str, timeout: Command, config: str = "for kafka:// inputs") -> Command:
    """Return the argument and options for many groups; the command gets them as `source`.

    Parameters
    ----------
    use : str
        The purpose of the groups, for the help.
    timeout : decorator
        The option for the time to wait for brokers.
    config : str
        The places for which client settings are used.
    """
    return together(
        click.argument("path", metavar="INPUT", type=options.INPUT),
        options.members,
        click.option("--group", "groups", multiple=True, metavar="PATTERN",
                     help=f"Groups{use}, by a name or a pattern such as 'billing*'; default: all. Repeatable."),
        options.input_format(),
        options.auto_offset_reset,
        terms.subscribed,
        options.command_config(config),
        timeout,
        into("source", GroupsInput),
    )  # fmt: skip


@dataclass(frozen=True)
class Questions:
    """The questions on each group: whether a rebalance pays, and whether its members read all lag in time."""

    only_if_better: str
    drain: str | None
    capacity: float | None
    group_time_limit: float
    past: PastOptions
    weighing: Weighing | None = None

    @property
    def deadline(self) -> Fraction | None:
        """The seconds of `--drain`."""
        return None if self.drain is None else options.deadline(self.drain)

    def asked(self, solving: dict[str, Any], horizon: Fraction = Fraction(0)) -> Asked:
        """Return the checked questions, with keywords of `evenlag.solve` and the seconds that plans look ahead.

        Raises
        ------
        InvalidProblemError
            A parameter has an invalid value.
        """
        # They import NumPy, which help does not need.
        from evenlag.compare.history import Capacity
        from evenlag.watch.standing import Asked

        given = Capacity.of_user(self.capacity)
        asked = Asked(
            solving=solving, past=self.past.measured, pause=self.past.pause, only_if_better=self.only_if_better,
            capacity=None if given is None else given.rate, drain_seconds=self.deadline,
            weighing=self.weighing, horizon=horizon,
        )  # fmt: skip
        asked.check()
        return asked


questions = into("questions", Questions)
"""The last decorator of a command, which gets the options named like the attributes of `Questions` as one object."""
