"""`evenlag snapshot`: record the groups of a running cluster as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evenlag import live
from evenlag.cli import options
from evenlag.cli.catalogue import command
from evenlag.cli.decorators import into
from evenlag.cli.ending import FAILED
from evenlag.cli.terminal import print_json, say, warn, working
from evenlag.figures import quantity
from evenlag.tables.cluster_address import Brokers

EVERY = "15m"
MOST_FILES = 2  # files listed on a terminal


def _brokers(bootstrap_server: str, command_config: Path | None, since: str | None, timeout: float) -> Brokers:
    return Brokers(bootstrap_server, options.client_config(command_config), since, timeout)


@command(
    "evenlag snapshot --bootstrap-server HOST:PORT --out snapshot",
    "evenlag snapshot --bootstrap-server HOST:PORT --group billing --append --out record",
    "evenlag snapshot --bootstrap-server HOST:PORT --since 7d --every 15m --append --out record",
    "evenlag snapshot --bootstrap-server HOST:PORT --command-config client.properties --out snapshot",
)
@click.option("--bootstrap-server", required=True, metavar="HOST:PORT", help="Brokers, separated by commas.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="Group to record; default: all. Repeatable.")
@options.out("Folder for the offsets and members tables.", required=True)
@options.form(("csv", "jsonl", "parquet"), default="csv", show_default=True)
@click.option("--append", is_flag=True, help="Keep earlier snapshots: add one file to each of the folders "
              "offsets and members in --out. The folders together are the record.")  # fmt: skip
@click.option("--since", metavar="TIME", help="Add the log ends of the past, from the brokers: of the last 7d, for "
              "example, or since a date. They show what was produced, but not commits or members.")  # fmt: skip
@click.option("--every", metavar="TIME", help="With --since: distance of the past times.  [default: 15m]")
@options.timeout(options.FIRST_ANSWER, "Seconds to wait for the brokers; with --since, also for each past time.")
@options.command_config()
@into("brokers", _brokers)
@options.as_json
def snapshot(
    brokers: Brokers, groups: tuple[str, ...], out: Path, form: str, append: bool, every: str | None, as_json: bool
) -> None:
    """Record the consumer groups of a running cluster.

    It reads subscriptions, offsets and members, and changes nothing in the cluster.
    """
    if every is not None and brokers.since is None:
        raise click.UsageError("--every needs --since", click.get_current_context())
    servers, since = brokers.servers, brokers.since
    recorded: live.Recorded | None = None
    with working(f"asking {servers}") as progress:
        asked: dict[str, Any] = {"timeout": brokers.timeout, "config": brokers.config, "progress": progress}
        if since is None:
            taken = live.snapshot(servers, groups or None, **asked)
        else:
            recorded = live.snapshot_since(
                servers, out, groups or None, since=since, every=every or EVERY, format=form, append=append, **asked
            )
            taken = recorded.taken
    written = live.write_snapshot(taken, out, form, append=append) if recorded is None else recorded.files
    files = [str(path) for path in written]
    names = sorted({str(row["group"]) for row in [*taken.offsets, *taken.members]})
    if as_json:
        print_json(
            {
                "groups": names,
                "partitions": len(taken.offsets),
                "members": len(taken.members),
                "requests": taken.requests,
                "warnings": taken.warnings,
                "files": files,
            }
            | ({} if recorded is None else {"past": _past(recorded)})
        )
    else:
        _report(taken, names, files, recorded, out if append else None)
    if taken.offsets and all(row["log_end_offset"] is None for row in taken.offsets):  # a warning says why
        raise click.exceptions.Exit(FAILED)


def _report(
    taken: live.Snapshot, names: list[str], files: list[str], recorded: live.Recorded | None, record: Path | None
) -> None:
    """Print what was read, the first files, and warnings; `record` is the folder that files were added to."""
    counts = {"group": len(names), "partition": len(taken.offsets), "member": len(taken.members)}
    say(", ".join(quantity(count, what) for what, count in counts.items()))
    for path in files[:MOST_FILES]:
        say(f"  {path}")
    if recorded is not None:
        say(_past_line(recorded, sum(taken.requests.values()), len(files) - MOST_FILES))
    if record is not None:
        say(f"to read the whole record: {record / 'offsets'} --members {record / 'members'}")
    warn(taken.warnings)


def _past(recorded: live.Recorded) -> dict[str, Any]:
    """Return the figures of the past as a JSON document."""
    return {name: getattr(recorded, name) for name in ("times", "since", "until", "rows", "already")}


def _past_line(recorded: live.Recorded, requests: int, more: int) -> str:
    """Return the figures of the past as a line."""
    files = f" in {quantity(more, 'more file')}" if more > 0 else ""
    already = f"; the record already had {recorded.already} of the times" if recorded.already else ""
    return (
        f"{quantity(recorded.rows, 'log end')} at {quantity(recorded.times, 'time')} from {recorded.since} to "
        f"{recorded.until}{files}, by {quantity(requests, 'request')}{already}"
    )
