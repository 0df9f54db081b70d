"""The members of a group that follows a plan, which only its commits name (`evenlag.live.ownership`)."""

from dataclasses import replace

from evenlag.errors import UserDataError
from evenlag.live.group_state import FOLLOW, Group, Member, Subscription, TopicPartition
from evenlag.live.ownership import Ownership
from evenlag.live.wording import named


def with_followers(group: Group) -> tuple[Group, list[str]]:
    """Give a followed group the members that its commits name, and warnings of what could not be read.

    Each owner of a partition is a member, by its name in the plan. It may read every topic that the group's followers
    have committed to. Its rack is the one that it told last. A partition that was handed to a member is its own
    already, as in the plan. A member without a partition is not seen. Groups with members that Kafka knows, and those
    that nobody has followed, stay as they are.
    """
    if group.description.members:
        return group, []
    told: dict[TopicPartition, Ownership] = {}
    unread: dict[str, list[TopicPartition]] = {}
    for key, metadata in group.commits.metadata.items():
        try:
            ownership = Ownership.decode(metadata)
        except UserDataError as error:
            unread.setdefault(str(error), []).append(key)
            continue
        if ownership is not None:
            told[key] = ownership
    warnings = [
        f"group '{group.name}': the owners of {named(partitions)} cannot be read: {why}"
        for why, partitions in unread.items()
    ]
    if not told:
        return group, warnings
    held: dict[str, list[TopicPartition]] = {}
    for key, ownership in sorted(told.items()):
        if ownership.owner is not None:
            held.setdefault(ownership.owner, []).append(key)
    if not held:
        warnings.append(f"group '{group.name}' follows a plan, but all its consumers have stopped: it has no members")
    readable = Subscription(topics=tuple(sorted({topic for topic, _ in told})))
    holders = sorted((each for each in told.values() if each.instance), key=lambda each: (each.plan, each.beat))
    rack_of = {each.owner: each.rack for each in holders}  # the last one counts
    members = tuple(
        Member(
            name, name, host=None, group_instance_id=None, partitions=tuple(keys),
            subscription=replace(readable, rack=rack_of.get(name)),
        )
        for name, keys in sorted(held.items())
    )  # fmt: skip
    newest = max(ownership.plan for ownership in told.values())
    description = replace(group.description, members=members, protocol=FOLLOW, epoch=newest)
    return replace(group, description=description), warnings
