"""`evenlag history`: read the past of all groups from the records in `__consumer_offsets`."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from evenlag import live, report
from evenlag.cli import options
from evenlag.cli.catalogue import command
from evenlag.cli.options import OnSpark
from evenlag.cli.terminal import print_json, say, show, warn, working
from evenlag.errors import EvenlagError
from evenlag.tables.topics import is_topic, topic_address


@command(
    "evenlag history kafka://HOST:PORT --every 1h --out past",
    "evenlag history kafka://HOST:PORT --since 7d --out past",
    "evenlag history kafka://HOST:PORT --log-ends record/offsets --out past",
)
@click.argument("records", type=options.PLACE)
@options.spark_out("Folder for the tables offsets, members, rebalances, commits, groups and passed_over, or "
                   "table:CATALOG.NAMESPACE.", required=True)  # fmt: skip
@click.option("--every", metavar="TIME", default="15m", show_default=True, help="Time between snapshots.")
@click.option("--log-ends", type=options.PLACE, metavar="PATH",
              help="Offsets table with log ends of the past; the snapshots are at its times.")  # fmt: skip
@click.option("--since", metavar="TIME|DATE",
              help="Read log ends of the past from the brokers too: how far to go back (7d), or a date.")  # fmt: skip
@options.overwrite
@options.kafka
@options.spark
@options.on_spark
@options.as_json
def history(
    records: str | Path, every: str, log_ends: str | Path | None, since: str | None, on: OnSpark, as_json: bool,
    **output: Any,
) -> None:  # fmt: skip
    """Read the past of all groups from what Kafka has kept.

    RECORDS is kafka://HOST:PORT, whose topic __consumer_offsets is read from its beginning, or a copy of that topic as
    Parquet. The command runs on Spark and changes nothing in the cluster.
    """
    seconds = float(options.seconds("--every", every))
    if since is not None and (log_ends is not None or not is_topic(records)):
        raise click.UsageError("--since reads log ends from the brokers of kafka://HOST:PORT; omit --log-ends with it")
    from evenlag.spark.driver.local_out import HISTORY_TABLES, check_local_out

    check_local_out(output["out"], HISTORY_TABLES, output["overwrite"])
    # PySpark takes a second to import; help does not need it.
    from evenlag.spark.jobs import history as job
    from evenlag.spark.jobs.group_records import topic_of

    records = topic_of(records)
    assign, names, notes = _of_cluster(records, on.config)
    with TemporaryDirectory(prefix="evenlag-") as folder:
        if since is not None:
            log_ends, missing = _ends_of_cluster(str(records), Path(folder), since, every, on.config)
            notes += missing
        spark = on.session(records, log_ends, native=True)
        with working("reading the records"):
            found = job.history(
                spark, records, every=seconds, log_ends=log_ends, topic_names=names,
                options=assign | on.kafka, **output,
            )  # fmt: skip
    told = job.told(found, output["out"])
    if found.unnamed_topics:
        notes.append(f"topics without a known name are left out of KIP-848 groups: {', '.join(found.unnamed_topics)}")
    if as_json:
        print_json({**told, "warnings": notes})
        return
    _report(told)
    warn(notes)


def _of_cluster(records: str | Path, config: dict[str, str]) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Ask the brokers for the partitions of the topic, as an option of Spark's source, and for names of topics.

    A warning says why names cannot be read, because classic groups do not need them.
    """
    if not is_topic(records):
        return {}, {}, []
    address = topic_address(str(records))
    assign = options.assigned(address, config)
    try:
        return assign, live.topic_names(address.servers, config=config), []
    except EvenlagError as error:
        return assign, {}, [str(error)]


def _ends_of_cluster(
    records: str, folder: Path, since: str, every: str, config: dict[str, str]
) -> tuple[Path, list[str]]:
    """Write the log ends of the past to a folder; return their table, and notes on those that are missing."""
    with working("reading log ends") as update:
        recorded = live.snapshot_since(
            topic_address(records).servers, folder, since=since, every=every, format="parquet", config=config,
            progress=update,
        )  # fmt: skip
    return folder / "offsets.parquet", [*recorded.taken.warnings]


def _report(told: dict[str, Any]) -> None:
    say(
        f"{told['groups']} groups, {told['rebalances']} rebalances, {told['commits']} commits, {told['snapshots']} "
        f"snapshots from {told['since']} to {told['until']}"
    )
    say(f"{told['records']} records: {told['used']} used")
    for reason, count in told["passed_over"].items():
        say(f"  {count} passed over: {reason}")
    if told["most_rebalances"]:
        show(report.past_table(told["most_rebalances"], told["rebalancing"]))
    for place in told["written"]:
        say(f"  {place}")
