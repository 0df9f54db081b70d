"""`evenlag publish`: a plan for consumers that follow one."""

from __future__ import annotations

from pathlib import Path

import click

from evenlag.cli import options
from evenlag.cli.terminal import print_json, working
from evenlag.errors import InvalidPlanError
from evenlag.live import read_client_config
from evenlag.live.followed_plan import FollowedPlan, place_of
from evenlag.live.followed_plan import publish as publish_plan
from evenlag.model.files import read_json


@click.command()
@click.argument("path", metavar="PLAN", type=options.FILE)
@click.argument("place", metavar="PLACE")
@click.option("--command-config", type=options.FILE,
              help="Properties file with more client settings (TLS, SASL, …), for a topic.")  # fmt: skip
@options.as_json
def publish(path: Path, place: str, command_config: Path | None, as_json: bool) -> None:
    """Publish a plan for consumers that follow it.

    PLAN is a result file of `evenlag plan`, PLACE another file or kafka://HOST:PORT/TOPIC.

    To roll back, publish the earlier plan again.
    """
    options.keep_inputs(Path(place), path)
    config = {} if command_config is None else read_client_config(command_config)
    document = read_json(path)
    try:
        group = FollowedPlan.from_dict(document, version=1).group
        with working(f"publishing to {place}"):
            plan = publish_plan(document, place_of(place, group, config))
    except InvalidPlanError as error:
        raise InvalidPlanError(f"{path}: {error}") from error
    if as_json:
        print_json({"group": plan.group, "version": plan.version, "partitions": len(plan.owners)})
        return
    members = len(plan.assignment)
    click.echo(f"group {group}: version {plan.version}, {len(plan.owners)} partitions to {members} members, at {place}")
