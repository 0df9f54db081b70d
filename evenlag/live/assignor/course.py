"""Where a group is heading: the plan that its leader has made, and the phases by which the group gets there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from evenlag.live.assignor.deciding import Assignment, Decision
from evenlag.live.group_state import Subscription, TopicPartition
from evenlag.live.user_data import NO_GENERATION

STANDS = 10.0  # seconds for which a plan is not made anew for the same group


@dataclass(frozen=True)
class Heading:
    """A plan, the group that it was made for, and when (of `time.monotonic`)."""

    partitions: Mapping[str, list[int]]
    told: Mapping[str, Subscription]
    decision: Decision
    made: float

    def still(self, partitions: Mapping[str, list[int]], told: Mapping[str, Subscription], now: float) -> bool:
        """Whether the group is to go on with it: it is what it was, and on its way there or planned a moment ago.

        To plan anew in the second phase, on lags that have changed meanwhile, might set other partitions in motion
        each time. And where an assignment takes longer than a member's `poll`, kafka-python 3.0 may forget that it has
        joined and join again: an answer at once lets it come to an end.
        """
        on_its_way = bool(self.decision.waiting) or now - self.made < STANDS
        return on_its_way and _structure(self.partitions, self.told) == _structure(partitions, told)

    @property
    def holding(self) -> dict[str, Subscription]:
        """The members as they are once all hold what they were given."""
        given = self.decision.assignment
        return {name: replace(each, owned=tuple(given[name]), generation=None) for name, each in self.told.items()}


def _structure(partitions: Mapping[str, list[int]], told: Mapping[str, Subscription]) -> object:
    return dict(partitions), {name: (each.topics, each.weight, each.rack, each.trouble) for name, each in told.items()}


def in_phases(
    target: Mapping[str, Iterable[TopicPartition]], told: Mapping[str, Subscription]
) -> tuple[Assignment, dict[TopicPartition, str]]:
    """The first phase of a cooperative rebalance: nobody gets what another still holds.

    A member that sees something taken from it gives it up and joins again, and the second phase gives it out. Of
    several claims to a partition those of the latest generation count.

    Returns
    -------
    dict of member to (topic, partition) pairs
        What each gets now.
    dict of (topic, partition) to member
        What is given to nobody yet, and who shall have it.
    """
    claims: dict[TopicPartition, list[tuple[int, str]]] = {}
    for name, each in told.items():
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
