"""`evenlag stream`: plan and audit snapshots as they arrive in a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from evenlag import live, report
from evenlag.cli import options, terms
from evenlag.cli.catalogue import command
from evenlag.cli.decorators import FloatRange
from evenlag.cli.ending import FAILED
from evenlag.cli.options import OnSpark
from evenlag.cli.terminal import print_json, say
from evenlag.figures import quantity
from evenlag.model.defaults import FLEET_GAP
from evenlag.tables.topics import topic_address

if TYPE_CHECKING:
    from evenlag.spark import Batch, CommitBatch


@command(
    "evenlag stream kafka://HOST:PORT/offsets --out out",
    "evenlag stream kafka://HOST:PORT/offsets --out out --once --json",
    "evenlag stream kafka://HOST:PORT --from-commits --out out",
)
@click.argument("topic", metavar="kafka://HOST:PORT/TOPIC")
@options.spark_out(
    "Folder for the tables plans, audit and rejects; with --from-commits also offsets and members.", required=True
)
@click.option("--checkpoint", type=options.PLACE, metavar="PATH",
              help="Folder for Spark's checkpoint; default: in --out.")  # fmt: skip
@click.option("--once", is_flag=True, help="Read what the topic holds now, treat every snapshot as complete, and exit.")
@click.option("--read-every", "interval", type=options.POSITIVE, metavar="SECONDS",
              help="Seconds between reads of the topic; default: 10, with --from-commits 60.")  # fmt: skip
@click.option("--settle", type=FloatRange(0), metavar="SECONDS",
              help="Seconds without new rows after which a snapshot counts as complete; default: 300.")  # fmt: skip
@click.option("--from-commits", is_flag=True,
              help="Read the topic __consumer_offsets, from which evenlag makes the snapshots itself.")  # fmt: skip
@click.option("--every", metavar="TIME", help="With --from-commits: time between snapshots; default: 15m.")
@options.kafka
@terms.fleet_move_data
@options.modelling
@terms.asked_without_racks
@options.method
@options.only_if_better
@options.auto_offset_reset
@options.group_time_limit(2.0)
@options.gap(FLEET_GAP)
@options.repeating
@options.spark
@options.on_spark
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each batch.")
def stream(
    topic: str, on: OnSpark, as_json: bool, from_commits: bool, every: str | None, settle: float | None,
    interval: float | None, **parameters: Any,
) -> None:  # fmt: skip
    """Plan and audit snapshots as they arrive in a topic.

    The command runs on Spark, processes each snapshot once, and resumes where it stopped.
    """
    options.check_solving(parameters)
    if every is not None and not from_commits:
        raise click.UsageError("--every needs --from-commits: otherwise the topic has the snapshots")
    if settle is not None and from_commits:
        raise click.UsageError("--settle is for snapshots in a topic; omit it with --from-commits")
    given = {"interval": interval, "settle": settle, "every": every and float(options.seconds("--every", every))}
    parameters |= {name: value for name, value in given.items() if value is not None}

    def show_batch(batch: Batch | CommitBatch) -> None:
        if as_json:
            print_json(vars(batch))
        else:
            say(report.commit_batch_line(batch) if from_commits else report.batch_line(batch))

    parameters["progress"] = show_batch
    if not from_commits:
        from evenlag.spark.jobs import micro_batches

        batches = micro_batches.stream(on.session(topic), topic, options=on.kafka, **parameters)
        _end(sum(batch.failed for batch in batches), sum(batch.snapshots for batch in batches))
        return
    from evenlag.spark.jobs.commit_stream import stream_commits
    from evenlag.spark.jobs.group_records import topic_of

    records = str(topic_of(topic))
    address = topic_address(records)
    assign = options.assigned(address, on.config)
    logs = live.ClusterLogs(address.servers, config=on.config)
    commits = stream_commits(on.session(records), topic, logs, options=assign | on.kafka, **parameters)
    _end(sum(batch.failed for batch in commits), sum(batch.groups for batch in commits))


def _end(failed: int, audited: int) -> None:
    """Exit with status 1 if all audits failed, of which there are none without `--once`."""
    if failed and failed == audited:
        say(f"evenlag: all audits failed ({quantity(failed, 'snapshot')}); the table rejects has the reasons", err=True)
        raise click.exceptions.Exit(FAILED)
