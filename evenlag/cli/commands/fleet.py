"""`evenlag fleet`: commands for all groups of a table, on Spark."""

from __future__ import annotations

import click

from evenlag.cli.catalogue import CONTEXT, Catalogue
from evenlag.cli.commands import FLEET


@click.group(cls=Catalogue, parts=FLEET, home="evenlag.cli.commands", prefix="fleet_", context_settings=CONTEXT)
def fleet() -> None:
    """Audit, size or replay all groups of a fleet, on Spark.

    The offsets table is a file, a folder, kafka://HOST:PORT/TOPIC or table:CATALOG.NAMESPACE.NAME.
    """
