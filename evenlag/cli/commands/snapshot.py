"""`evenlag snapshot`: record the groups of a running cluster as tables."""

from __future__ import annotations

from pathlib import Path

import click

from evenlag import live
from evenlag.cli import options
from evenlag.cli.catalogue import command
from evenlag.cli.terminal import print_json, say, warn, working
from evenlag.figures import quantity


@command(
    "evenlag snapshot --bootstrap-server HOST:PORT --out snapshot",
    "evenlag snapshot --bootstrap-server HOST:PORT --group billing --append --out record",
    "evenlag snapshot --bootstrap-server HOST:PORT --command-config client.properties --out snapshot",
)
@click.option("--bootstrap-server", required=True, metavar="HOST:PORT", help="Brokers, separated by commas.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="Group to record; default: all. Repeatable.")
@options.out("Folder for the offsets and members tables.", required=True)
@options.form(("csv", "jsonl", "parquet"), default="csv", show_default=True)
@click.option("--append", is_flag=True, help="Keep earlier snapshots: add one file to each of the folders "
              "offsets and members in --out. The folders together are the record.")  # fmt: skip
@click.option(
    "--timeout",
    type=options.POSITIVE,
    metavar="SECONDS",
    default=10.0,
    show_default=True,
    help="Seconds to wait for the brokers.",
)
@options.command_config()
@options.as_json
def snapshot(
    bootstrap_server: str, groups: tuple[str, ...], out: Path, form: str, append: bool, timeout: float,
    command_config: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Record the consumer groups of a running cluster.

    It reads subscriptions, offsets and members, and changes nothing in the cluster.
    """
    config = live.read_client_config(command_config) if command_config is not None else None
    with working(f"asking {bootstrap_server}") as progress:
        taken = live.snapshot(bootstrap_server, groups or None, timeout=timeout, config=config, progress=progress)
    files = [str(path) for path in live.write_snapshot(taken, out, form, append=append)]
    names = sorted({str(row["group"]) for row in [*taken.offsets, *taken.members]})
    partitions, members = len(taken.offsets), len(taken.members)
    if as_json:
        print_json(
            {
                "groups": names,
                "partitions": partitions,
                "members": members,
                "requests": taken.requests,
                "warnings": taken.warnings,
                "files": files,
            }
        )
        return
    said = [quantity(len(names), "group"), quantity(partitions, "partition"), quantity(members, "member")]
    say(", ".join(said))
    for path in files:
        say(f"  {path}")
    if append:
        say(f"to read the whole record: {out / 'offsets'} --members {out / 'members'}")
    warn(taken.warnings)
