"""`evenlag stream`: plan and audit snapshots as they arrive in a topic."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenlag import report
from evenlag.cli import options, terms
from evenlag.cli.catalogue import command
from evenlag.cli.terminal import print_json, say
from evenlag.model.defaults import FLEET_GAP

if TYPE_CHECKING:
    from evenlag.spark import Batch


@command(
    "evenlag stream kafka://HOST:PORT/offsets --out out",
    "evenlag stream kafka://HOST:PORT/offsets --out out --once --json",
)
@click.argument("topic", metavar="kafka://HOST:PORT/TOPIC")
@options.spark_out("Folder for the tables plans, audit and rejects.", required=True)
@click.option("--checkpoint", type=options.PLACE, metavar="PATH",
              help="Folder for Spark's checkpoint; default: in --out.")  # fmt: skip
@click.option("--once", is_flag=True, help="Read what the topic holds now, treat every snapshot as complete, and exit.")
@click.option("--interval", type=options.POSITIVE, metavar="SECONDS", default=10.0, show_default=True,
              help="Seconds between reads of the topic.")  # fmt: skip
@click.option("--settle", type=click.FloatRange(0), metavar="SECONDS", default=300.0, show_default=True,
              help="Seconds without new rows after which a snapshot counts as complete.")  # fmt: skip
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
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each batch.")
def stream(
    topic: str, out: str | Path, kafka_options: dict[str, str], master: str | None, conf: dict[str, str],
    as_json: bool, **parameters: Any,
) -> None:  # fmt: skip
    """Plan and audit snapshots as they arrive in a topic.

    The command runs on Spark, processes each snapshot once, and resumes where it stopped.
    """
    options.check_solving(parameters)
    # PySpark takes a second to import; help does not need it.
    from evenlag.spark.driver.kafka import session_for
    from evenlag.spark.jobs import micro_batches

    def show_batch(batch: Batch) -> None:
        if as_json:
            print_json(vars(batch))
        else:
            say(report.batch_line(batch))

    spark = session_for([topic], options.spark_settings(master, conf), None)
    micro_batches.stream(spark, topic, out=out, options=kafka_options, progress=show_batch, **parameters)
