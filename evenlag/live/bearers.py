"""The members of a running group that bear the names of a plan."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evenlag.figures import quantity

if TYPE_CHECKING:
    from evenlag.live.followed_plan import FollowedPlan

CLASSIC_TAIL = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")  # of a member id, after the client id


def note_on_names(plan: FollowedPlan, config: Mapping[str, Any], patience: float) -> str | None:
    """Return a warning if a group has members, but the plan names none of them, as Java's assignors look for them.

    A group without members gets none: its consumers may start later, or follow the plan outside the group. `config` has
    the properties of an admin client, and `patience` is the seconds to wait for its answer.
    """
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    admin = AdminClient(dict(config))  # without a name it would be gone before its answer comes
    try:
        described = admin.describe_consumer_groups([plan.group], request_timeout=patience)[plan.group].result()
    except KafkaException as error:
        why = error.args[0].str()
        return f"group {plan.group}: its members cannot be read ({why}), so the names in the plan were not compared"
    members = described.members
    if not members or any(_is_named(plan, member) for member in members):
        return None
    return (
        f"group {plan.group}: none of its {quantity(len(members), 'member')} bears a name of the plan, so nobody "
        "follows it; take a new snapshot and plan again"
    )


def _is_named(plan: FollowedPlan, member: Any) -> bool:
    own = {member.group_instance_id, member.member_id, member.client_id}
    for name in plan.assignment:
        known = plan.members.get(name, {})
        names = {name, CLASSIC_TAIL.sub("", name), known.get("group_instance_id"), known.get("client_id")}
        if (own & names) - {None, ""} or known.get("host", "") == member.host:
            return True
    return False
