"""Options with which `evenlag watch` publishes plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import click

from evenlag.cli import options
from evenlag.cli.decorators import into, together
from evenlag.figures import duration
from evenlag.tables.cluster_address import Brokers

if TYPE_CHECKING:
    from evenlag.watch.board import Board
    from evenlag.watch.inputs import Input
    from evenlag.watch.loop import Loop

PATTERN = "*?["  # signs of a pattern, as in a shell


@dataclass(frozen=True)
class LoopOptions:
    """The options `--publish`, `--horizon`, `--least`, `--max-moves` and `--dry-run`.

    Attributes
    ----------
    publish : str or None
        Where plans are published; None to publish none.
    horizon : str
        Time for which plans are made.
    least : str
        Time between two plans of a group.
    """

    publish: str | None
    horizon: str
    least: str
    max_moves: int | None
    dry_run: bool

    @property
    def ahead(self) -> Fraction:
        """Seconds for which plans are made; 0 if none are published."""
        return Fraction(0) if self.publish is None else options.seconds("horizon", self.horizon)

    @property
    def solving(self) -> dict[str, int]:
        """Keywords of `evenlag.solve`."""
        return {} if self.max_moves is None else {"max_moves": self.max_moves}

    def check(self, source: object, groups: Sequence[str], *, once: bool) -> None:
        """Refuse options that do not go together.

        Raises
        ------
        click.UsageError
            The message names them.
        """
        if self.publish is None:
            if self.dry_run or self.max_moves is not None:
                raise click.UsageError(f"{'--dry-run' if self.dry_run else '--max-moves'} needs --publish PLACE")
            return
        if not isinstance(source, Brokers):
            raise click.UsageError("--publish needs a cluster as INPUT: kafka://HOST:PORT")
        if once:
            raise click.UsageError("--publish goes on until it is ended; omit --once")
        if not groups:
            raise click.UsageError("--publish needs --group: the groups whose plans it may publish")
        one = len(groups) == 1 and not any(sign in groups[0] for sign in PATTERN)
        if not one and not self.publish.startswith("kafka://"):
            raise click.UsageError(
                f"--publish {self.publish}: a file has the plan of one group; name one with --group, or give a topic, "
                "kafka://HOST:PORT/TOPIC"
            )

    def started(
        self, source: Input, board: Board, groups: Sequence[str], config: dict[str, str], log: Callable[[str], None]
    ) -> Loop | None:
        """Return the loop, which the caller closes; None if no plans are published."""
        if self.publish is None:
            return None
        # Help does not need NumPy.
        from evenlag.live.followed_plan import place_of
        from evenlag.watch.loop import Loop
        from evenlag.watch.loop_decision import Caution
        from evenlag.watch.sole_writer import sole_writer

        text = self.publish
        caution = Caution(float(options.seconds("least", self.least)), self.max_moves, self.dry_run)
        place = place_of(text, groups[0], config)
        writer = None if self.dry_run else sole_writer(place)
        ahead = f", for the lags predicted in {duration(self.ahead)}" if self.ahead else ""
        log(f"{'dry run: publishes nothing to' if self.dry_run else 'publishes plans to'} {text}{ahead}")
        return Loop(caution, lambda group: place_of(text, group, config), source, log, writer, board.tallies)


publishing = together(
    click.option(
        "--publish", metavar="PLACE",
        help="Publish the plan of each group of --group where it pays: to kafka://HOST:PORT/TOPIC, or for one group to "
        "a file.",
    ),
    click.option(
        "--horizon", metavar="TIME", default="10m", show_default=True,
        help="With --publish: plan for the lag predicted for this far ahead (10m, 1h), from the rate since the "
        f"previous reading; {options.BARE}.",
    ),
    click.option(
        "--least", metavar="TIME", default="10m", show_default=True,
        help=f"With --publish: least time between two plans of a group; {options.BARE}.",
    ),
    click.option(
        "--max-moves", type=click.IntRange(0), metavar="N", help="With --publish: move at most N partitions at a time.",
    ),
    click.option(
        "--dry-run", is_flag=True, help="With --publish: publish nothing; the log shows what would be published.",
    ),
    into("loop", LoopOptions),
)  # fmt: skip
"""Add the options; the command gets them as `loop`."""
