"""The members of a group that follows a plan, read from its commits (`evenlag.live.ownership`)."""

from collections.abc import Collection
from dataclasses import replace

from evenlag.live.cluster.stopped import left_out, ownerships
from evenlag.live.group_state import FOLLOW, Group, Member, TopicPartition
from evenlag.live.wording import named
from evenlag.protocol.subscriptions import Subscription


def with_followers(group: Group, stopped: Collection[str] = ()) -> tuple[Group, list[str]]:
    """Return a followed group with the members that its commits name, and warnings about unreadable commits.

    Each of them subscribes to every topic that the group's followers have committed to. Its rack is the one in its last
    commit. A partition handed to a member counts as its own, as in the plan. Members without partitions are not found,
    and those in `stopped` are left out. A group with members that Kafka knows, or without commits of followers, is
    returned unchanged.
    """
    if group.description.members:
        return group, []
    owned, unread = ownerships(group)
    warnings = [
        f"group '{group.name}': the owners of {named(partitions)} cannot be read: {why}"
        for why, partitions in unread.items()
    ]
    if not owned:
        return group, warnings
    if stopped:
        warnings.append(left_out(group.name, stopped, "no new commit; a follower commits even when idle"))
    held: dict[str, list[TopicPartition]] = {}
    for key, ownership in sorted(owned.items()):
        if ownership.owner is not None and ownership.owner not in stopped:
            held.setdefault(ownership.owner, []).append(key)
    if not held:
        warnings.append(f"group '{group.name}' follows a plan, but all its consumers have stopped: it has no members")
    readable = Subscription(topics=tuple(sorted({topic for topic, _ in owned})))
    holders = sorted((each for each in owned.values() if each.instance), key=lambda each: (each.plan, each.beat))
    rack_of = {each.owner: each.rack for each in holders}  # later ones replace earlier ones
    members = tuple(
        Member(
            name, name, host=None, group_instance_id=None, partitions=tuple(keys),
            subscription=replace(readable, rack=rack_of.get(name)),
        )
        for name, keys in sorted(held.items())
    )  # fmt: skip
    newest = max(ownership.plan for ownership in owned.values())
    description = replace(group.description, members=members, protocol=FOLLOW, epoch=newest)
    return replace(group, description=description), warnings
