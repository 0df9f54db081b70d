"""Members that have stopped although their group still names them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from evenlag.errors import UserDataError
from evenlag.figures import some
from evenlag.live.group_state import Group, TopicPartition
from evenlag.live.ownership import LEASE, Ownership

LEFT_FOR_NOW = -2  # epoch of a static member of KIP-848 that has left and whose partitions wait for it
LEAST_WAIT = 7.5  # seconds without a commit that mean something: a follower commits each 5 s

Mark = tuple[bool, int, int, str]
"""A follower's last commit: whether it holds a partition, version of the plan, beat, instance."""


@dataclass
class Pulse:
    """The last commit of each follower, and the time at which it was first seen.

    A follower commits several times in a lease, idle or not. One whose commits stand still has stopped, and so has one
    that takes none of the partitions handed to it.
    """

    _since: dict[tuple[str, str], tuple[Mark, float]] = field(default_factory=dict)

    def note(self, group: Group, now: float) -> None:
        """Note the commits of a group, read at a time of `time.monotonic`."""
        for owner, mark in _marks(group).items():
            before = self._since.get((group.name, owner))
            if before is None or before[0] != mark:
                self._since[group.name, owner] = mark, now

    def still(self, group: Group, now: float, least: float = LEASE) -> set[str]:
        """Return the followers of a noted group whose commits have stood still for at least these seconds."""
        return {owner for owner in _marks(group) if now - self._since[group.name, owner][1] >= least}


def _marks(group: Group) -> dict[str, Mark]:
    """Return the last commit of each follower; nothing for a group whose members Kafka knows.

    That of a follower which holds nothing is the one that handed it a partition.
    """
    found: dict[str, Mark] = {}
    for held in () if group.description.members else ownerships(group)[0].values():
        if held.owner is not None:
            mark = held.instance is not None, held.plan, held.beat, held.instance or ""
            found[held.owner] = max(mark, found.get(held.owner, mark))
    return found


def ownerships(group: Group) -> tuple[dict[TopicPartition, Ownership], dict[str, list[TopicPartition]]]:
    """Return what the commits of followers say of each partition, and the unreadable partitions by their errors."""
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
    return owned, unread


def without_left(group: Group) -> tuple[Group, list[str]]:
    """Return a group without static members that have left for now, and a warning that names them."""
    left = [member.group_instance_id for member in group.description.members if member.epoch == LEFT_FOR_NOW]
    if not left:
        return group, []
    staying = tuple(member for member in group.description.members if member.epoch != LEFT_FOR_NOW)
    return replace(group, description=replace(group.description, members=staying)), [
        left_out(group.name, [name or "" for name in left], "left; the session has not ended yet")
    ]


def left_out(group: str, names: Collection[str], why: str) -> str:
    """Return the warning for members that have stopped."""
    listed = some(sorted(names))
    return f"stopped members of group '{group}' are left out: {listed} ({why}); nobody reads their partitions"


Stopped = Mapping[str, Collection[str]]
"""The followers that have stopped, by group."""
