"""`evenlag mcp`: serve read-only tools to assistants."""

from __future__ import annotations

from pathlib import Path

import click

from evenlag.cli import options
from evenlag.cli.catalogue import command
from evenlag.cli.signals import leaving_at_once
from evenlag.cli.terminal import say
from evenlag.errors import SourceError
from evenlag.tables.cluster_address import Brokers

TIME_LIMIT = 60.0  # seconds of a search
ROWS = 100


@command(
    "evenlag mcp ~/snapshots",
    "evenlag mcp --cluster kafka://HOST:PORT --command-config client.properties",
    "evenlag mcp ~/snapshots --http 8765",
)
@click.argument("roots", metavar="[ROOT]...", nargs=-1, type=options.FILE)
@click.option("--http", "port", type=click.IntRange(0, 65_535), metavar="PORT",
              help="Serve streamable HTTP on this port of 127.0.0.1, instead of standard input and output; 0: any free "
              "port.")  # fmt: skip
@click.option("--cluster", "clusters", multiple=True, metavar="kafka://HOST:PORT", type=options.INPUT,
              help="A cluster that tools may read. Repeatable.")  # fmt: skip
@options.command_config("for the clusters")
@options.time_limit(TIME_LIMIT, "Most seconds for the search of a call; a call may ask for less.")
@click.option("--rows", type=click.IntRange(1), metavar="N", default=ROWS, show_default=True,
              help="Most values of a list in an answer.")  # fmt: skip
def mcp(
    roots: tuple[Path, ...], port: int | None, clusters: tuple[Brokers | Path, ...], command_config: Path | None,
    time_limit: float, rows: int,
) -> None:  # fmt: skip
    """Serve read-only tools to assistants (Model Context Protocol).

    Tools read texts that they are given, files below each ROOT, and each --cluster; they write nothing and publish
    nothing. Without a ROOT, no file can be read.
    """
    for root in roots:
        if not root.exists():
            raise SourceError(f"{root}: no such file or folder")
    for each in clusters:
        if not isinstance(each, Brokers):
            raise click.BadParameter(f"{str(each)!r} is not kafka://HOST:PORT", param_hint="--cluster")
    import mcp as _sdk  # noqa: F401 - imported here because help does not need it, and first because errors name it

    from evenlag.mcp.access import Access
    from evenlag.mcp.endpoint import serve_http, serve_stdio, server_of

    access = Access(
        tuple(str(root.resolve()) for root in roots),
        tuple(map(str, clusters)),
        None if command_config is None else str(command_config.resolve()),
    )
    server = server_of(access, time_limit, rows)
    if port is None:
        with leaving_at_once():  # a thread that waits for input would outlast an interrupt
            serve_stdio(server)
    else:
        serve_http(server, port, lambda address: say(f"evenlag: serving {address}", err=True))
