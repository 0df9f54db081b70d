"""The leader's current plan, and the phases of a cooperative rebalance towards it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from evenlag.live.assignor.deciding import Assignment, Decision
from evenlag.live.group_state import TopicPartition
from evenlag.protocol.subscriptions import Subscription
from evenlag.protocol.user_data import NO_GENERATION

STANDS = 10.0  # seconds for which a plan is reused for an unchanged group


@dataclass(frozen=True)
class Heading:
    """A plan, the group that it was made for, and the time when it was made (of `time.monotonic`)."""

    partitions: Mapping[str, list[int]]
    members: Mapping[str, Subscription]
    decision: Decision
    made: float

    def still(self, partitions: Mapping[str, list[int]], members: Mapping[str, Subscription], now: float) -> bool:
        """Return whether to reuse the plan: the group is unchanged, and the plan is unfinished or was just made.

        A new plan in the second phase, for lags that have changed since the first, might move other partitions each
        time. In addition, kafka-python 3.0 may forget that it has joined if an assignment takes longer than a member's
        `poll`, and join again; an immediate answer ends this.
        """
        on_its_way = bool(self.decision.waiting) or now - self.made < STANDS
        return on_its_way and _structure(self.partitions, self.members) == _structure(partitions, members)

    @property
    def holding(self) -> dict[str, Subscription]:
        """The members, each with its planned partitions."""
        given = self.decision.assignment
        return {name: replace(each, owned=tuple(given[name]), generation=None) for name, each in self.members.items()}


def _structure(partitions: Mapping[str, list[int]], members: Mapping[str, Subscription]) -> object:
    return dict(partitions), {
        name: (each.topics, each.weight, each.rack, each.trouble) for name, each in members.items()
    }


def in_phases(
    target: Mapping[str, Iterable[TopicPartition]], members: Mapping[str, Subscription]
) -> tuple[Assignment, dict[TopicPartition, str]]:
    """Return the assignment of a cooperative rebalance's first phase, without partitions that another member holds.

    A member that loses a partition revokes it and rejoins; the second phase then assigns it. If several members claim
    a partition, those of the latest generation count.

    Returns
    -------
    dict of member to (topic, partition) pairs
        Partitions that each member gets now.
    dict of (topic, partition) to member
        Partitions that nobody gets yet, with their future members.
    """
    claims: dict[TopicPartition, list[tuple[int, str]]] = {}
    for name, each in members.items():
        for key in each.owned:
            claims.setdefault(key, []).append((NO_GENERATION if each.generation is None else each.generation, name))
    given: Assignment = {name: [] for name in target}
    waiting: dict[TopicPartition, str] = {}
    for name, mine in target.items():
        for key in mine:
            latest = max((generation for generation, _ in claims.get(key, ())), default=NO_GENERATION)
            holders = [holder for generation, holder in claims.get(key, ()) if generation == latest]
            if not holders or holders == [name]:
                given[name].append(key)
            else:
                waiting[key] = name
    return given, waiting
