"""`evenlag watch`: serve metrics on the gain of a rebalance for each group."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from evenlag.cli import options
from evenlag.cli.catalogue import command
from evenlag.cli.decorators import FloatRange
from evenlag.cli.ending import FAILED
from evenlag.cli.groups_input import MOST_GROUPS, GroupsInput, Questions, questions, reading_groups
from evenlag.cli.loop_options import LoopOptions, publishing
from evenlag.cli.past_options import past_or_pause
from evenlag.cli.terminal import say
from evenlag.errors import InvalidProblemError, printable

PORT = 9779
TERMINATED = 128 + 15  # exit status of --once that SIGTERM ended, by the convention of shells


class Address(click.ParamType):  # type: ignore[type-arg, unused-ignore] # not generic in earlier versions of click
    """An address to listen on: HOST:PORT, or [HOST]:PORT for IPv6."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """Return host and port."""
        if isinstance(value, tuple):
            return value
        host, colon, port = str(value).rpartition(":")
        if not (colon and host and port.isascii() and port.isdigit() and int(port) < 65_536):
            self.fail(f"{value!r} is not HOST:PORT, such as 127.0.0.1:{PORT}", param, ctx)
        return host.removeprefix("[").removesuffix("]"), int(port)


@command(
    "evenlag watch kafka://HOST:PORT --drain 15m --capacity 300",
    "evenlag watch kafka://HOST:PORT --group 'billing*' --metrics 0.0.0.0:9779",
    "evenlag watch offsets.csv --members members.csv --once",
    "evenlag watch kafka://HOST:PORT --group billing --publish kafka://HOST:PORT/plans --dry-run",
)
@reading_groups(
    " to watch",
    options.timeout(
        None,
        "Seconds to wait for the brokers; default: half of --every, and at most "
        f"{options.FIRST_ANSWER:g} for their first answer.",
    ),
    "for kafka:// sources and places",
)
@click.option(
    "--every",
    metavar="TIME",
    default="60s",
    show_default=True,
    help=f"Time from one reading to the next; {options.BARE}.",
)
@click.option(
    "--metrics",
    type=Address(),
    metavar="HOST:PORT",
    default=f"127.0.0.1:{PORT}",
    show_default=True,
    help="Address to listen on.",
)
@click.option("--once", is_flag=True, help="Read once, print the metrics and end.")
@click.option(
    "--drain",
    metavar="TIME",
    help=f"Also find the fewest members that read all lag within this time (15m); {options.BARE}.",
)
@options.capacity
@options.balance
@options.stickiness
@click.option(
    "--only-if-better",
    metavar="SHARE",
    default="10%",
    show_default=True,
    help="A rebalance pays if it saves this share of today's spread.",
)
@past_or_pause
@options.group_time_limit(2.0, "Most seconds for the plan of a group.")
@click.option(
    "--most-groups",
    type=click.IntRange(1),
    metavar="N",
    default=MOST_GROUPS,
    show_default=True,
    help="Limit of groups to watch, in order of name; metrics and log list the others.",
)
@click.option(
    "--stale-after",
    type=FloatRange(1),
    metavar="N",
    default=3.0,
    show_default=True,
    help="Stop serving the figures of a group after N intervals without newer ones.",
)
@publishing
@questions
def watch(
    source: GroupsInput, questions: Questions, loop: LoopOptions, every: str, metrics: tuple[str, int], once: bool,
    stale_after: float, **solving: Any,
) -> None:  # fmt: skip
    """Serve metrics on the gain of a rebalance for each group, and publish plans where they pay.

    INPUT is a cluster (kafka://HOST:PORT), or a file or folder that others write: a snapshot table, a problem file or
    the output of kafka-consumer-groups --describe. It is only read. Prometheus reads http://HOST:PORT/metrics, and
    KEDA reads http://HOST:PORT/groups/NAME. Plans are published only with --publish.
    """
    loop.check(source.path, source.groups, once=once)
    interval = float(options.seconds("every", every))
    if interval <= 0:
        raise InvalidProblemError(f"every must be a time > 0, such as 60s, not {every!r}")
    from evenlag.watch.exposition import text_of  # imported here because help does not need NumPy
    from evenlag.watch.rounds import Terminated, Watcher
    from evenlag.watch.server import serving

    past, asked = questions.past, questions.asked(solving | loop.solving, loop.ahead)
    given = source.opened(repeated=not once, timeout=interval / 2)
    board = source.board(float("inf") if once else stale_after * interval)
    looping = loop.started(given, board, source.groups, source.config, _log)
    watcher = Watcher(given, board, asked, interval, questions.group_time_limit, _log, looping)
    for note in past.remark(past.measured, past.measured):
        _log(note)
    try:
        if once:
            if watcher.round() is not None:
                raise click.exceptions.Exit(FAILED)  # the log has the error
            say(text_of(board, interval), nl=False)
            if board.unmatched or board.failures:
                raise click.exceptions.Exit(FAILED)
            return
        with serving(board, *metrics, interval) as address:
            _log(f"serving {address}/metrics")
            watcher.run()
    except Terminated:
        _log("terminated")
        if once:
            raise click.exceptions.Exit(TERMINATED) from None
    finally:
        if looping is not None:
            looping.close()


def _log(line: str) -> None:
    """Print a line with its time on stderr."""
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    say(f"{now} evenlag watch: {printable(line)}", err=True)
