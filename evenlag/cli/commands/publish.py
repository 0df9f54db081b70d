"""`evenlag publish`: publish a plan for consumers that follow it."""

from __future__ import annotations

from pathlib import Path

import click

from evenlag import live
from evenlag.cli import options
from evenlag.cli.catalogue import command
from evenlag.cli.terminal import print_json, say, warn, working
from evenlag.errors import InvalidPlanError


@command(
    "evenlag publish plan.json published.json",
    "evenlag publish plan.json kafka://HOST:PORT/plans --command-config client.properties",
)
@click.argument("path", metavar="PLAN", type=options.FILE)
@click.argument("place", metavar="PLACE")
@options.command_config("for a topic")
@options.as_json
def publish(path: Path, place: str, command_config: Path | None, as_json: bool) -> None:
    """Publish a plan for consumers that follow it.

    PLAN is a result file of `evenlag plan`; PLACE is another file or kafka://HOST:PORT/TOPIC.
    To roll back, publish the earlier plan again. With a topic, a note says if the plan names no member of the group.
    """
    options.keep_inputs(Path(place), path)
    config = {} if command_config is None else live.read_client_config(command_config)
    # NumPy takes a tenth of a second to import; help and completion do not need it.
    from evenlag.live import followed_plan
    from evenlag.model.problem_files import read_json

    document = read_json(path)
    try:
        group = followed_plan.FollowedPlan.from_dict(document, version=1).group
        with working(f"publishing to {place}"):
            to = followed_plan.place_of(place, group, config)
            plan = followed_plan.publish(document, to)
    except InvalidPlanError as error:
        raise InvalidPlanError(f"{path}: {error}") from error
    warn(plan.warnings)
    if as_json:
        print_json({"group": plan.group, "version": plan.version, "partitions": len(plan.owners)})
        return
    members = len(plan.assignment)
    say(f"group {group}: version {plan.version}, {len(plan.owners)} partitions to {members} members, at {place}")
