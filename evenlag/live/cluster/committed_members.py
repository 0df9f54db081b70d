"""The members of a group that follows a plan, read from its commits (`evenlag.live.ownership`)."""

from dataclasses import replace

from evenlag.errors import UserDataError
from evenlag.live.group_state import FOLLOW, Group, Member, TopicPartition
from evenlag.live.ownership import Ownership
from evenlag.live.wording import named
from evenlag.protocol.subscriptions import Subscription


def with_followers(group: Group) -> tuple[Group, list[str]]:
    """Return a followed group with the members that its commits name, and warnings about unreadable commits.

    Xubscribes to every topic that the group's
    followers have committed to. Its rack is the one in its last commit. A partition handed to a member counts as its
    own, as in the plan. Members without partitions are not found. A group with members that Kafka knows, or without
    commits of followers, is returned unchanged.
    """
    if group.description.members:
        return group, []
    owned: dict[TopicPartition, Ownership] = {}
    unread: dict[str, list[TopicPartition]] = {}
    for key, metadata in group.commits.metadata.items():
        try:
            ownership = Ownership.decode(metadata)
        except UserDataError as error:
            unread.setdefault(str(error), []).append(key)
            continue
        if ownership is not None:
            owned[key] = ownership
    warnings = [
        f"group '{group.name}': the owners of {named(partitions)} cannot be read: {why}"
        for why, partitions in unread.items()
    ]
    if not owned:
        return group, warnings
    held: dict[str, list[TopicPartition]] = {}
    for key, ownership in sorted(owned.items()):
        if ownership.owner is not None:
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
