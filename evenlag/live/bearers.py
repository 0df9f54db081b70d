"""The members of a running group that bear the names of a plan."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evenlag.figures import quantity

if TYPE_CHECKING:
    from evenlag.live.followed_plan import FollowedPlan

CLASSIC_TAIL = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")  # of a member id, after the client id


def note_on_names(plan: FollowedPlan, admin: Any, patience: float) -> str | None:
    """Return a warning if a group has members, but the plan names none of them, as Java's assignors look for them.

    A group without members gets none: its consumers may start later, or follow the plan outside the group. `admin` is
    an admin client of confluent-kafka, and `patience` is the seconds to wait for its answer.
    """
    from confluent_kafka import KafkaException

    try:
        described = admin.describe_consumer_groups([plan.group], request_timeout=patience)[plan.group].result()
    except KafkaException as error:
        why = error.args[0].str()
        return f"group {plan.group}: its members cannot be read ({why}), so the names in the plan were not compared"
    members = {
        each.member_id: {"group_instance_id": each.group_instance_id, "client_id": each.client_id, "host": each.host}
        for each in described.members
    }
    if not members or any(bearers_of(plan, name, members) for name in plan.assignment):
        return None
    return (
        f"group {plan.group}: none of its {quantity(len(members), 'member')} bears a name of the plan, so nobody "
        "follows it; take a new snapshot and plan again"
    )


def bearers_of(plan: FollowedPlan, name: str, members: Mapping[str, Mapping[str, str | None]]) -> set[str]:
    """Return the members that may bear a name of a plan, as Java's assignors look for them: by host only if need be.

    `members` maps the id of each member to what is known of it, by the names of a plan's `members`.
    """
    told = plan.members.get(name, {})
    names = {name, CLASSIC_TAIL.sub("", name), told.get("group_instance_id"), told.get("client_id")} - {None, ""}
    found = {
        member
        for member, own in members.items()
        if names & {member, own.get("group_instance_id"), own.get("client_id")}
    }
    host = told.get("host")
    return found or {member for member, own in members.items() if host and own.get("host") == host}
