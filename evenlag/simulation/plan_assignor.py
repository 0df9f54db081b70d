"""The broker's assignor of docs/java-brokers.md.

It looks for all names of a member at once. Racks and hosts are not modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from evenlag.live.bearers import bearers_of
from evenlag.live.followed_plan import FollowedPlan
from evenlag.simulation.cluster import Key
from evenlag.simulation.consumer_group import Subscriber, Targets, assign_as_broker


@dataclass
class PlanAssignor:
    """An assignor of a KIP-848 group; `plan` is the plan that its broker knows."""

    plan: FollowedPlan | None = None

    def __call__(self, members: Collection[Subscriber], topics: Mapping[str, int], before: Targets) -> Targets:
        """Assign by the plan, or as Kafka's uniform assignor if no member gets anything by it."""
        planned = self.planned(members, topics, before)
        if self.plan is None or not any(planned.values()):
            return assign_as_broker(members, topics, before, assignor="uniform")
        reads = {each.member_id: each.topics for each in members}
        some = {topic for read in reads.values() for topic in read & topics.keys()}
        existing = {(topic, number) for topic in some for number in range(topics[topic])}
        owners = {key: name for name, keys in before.items() for key in keys if key[0] in reads.get(name, ())}
        shared = share_leftovers(planned, existing, owners, reads, lags_of(self.plan))
        return {name: [*keys, *(k for k, owner in shared.items() if owner == name)] for name, keys in planned.items()}

    def planned(
        self, members: Collection[Subscriber], topics: Mapping[str, int], before: Targets
    ) -> dict[str, list[Key]]:
        """Return the partitions that the plan gives to each member, by its name in the plan.

        If several members bear a name, it stands for the one that has most of its partitions already.
        """
        found: dict[str, list[Key]] = {each.member_id: [] for each in members}
        if self.plan is None:
            return found
        of_id = {each.member_id: each for each in members}
        known = {name: {"client_id": m.client_id, "group_instance_id": m.instance} for name, m in of_id.items()}
        for name, keys in self.plan.assignment.items():
            bearers = sorted(bearers_of(self.plan, name, known) & {each for each, given in found.items() if not given})
            if bearers:
                bearer = max(bearers, key=lambda each: len(set(keys).intersection(before.get(each, ()))))
                read = of_id[bearer].topics
                found[bearer] = [key for key in keys if key[0] in read and key[1] < topics.get(key[0], 0)]
        return found


def lags_of(plan: FollowedPlan) -> dict[Key, int]:
    """Return the lags that a plan was made for."""
    found: dict[Key, int] = {}
    for topic, lags in plan.lags.items():
        numbered = lags.items() if isinstance(lags, Mapping) else enumerate(lags)
        found |= {(topic, int(number)): lag for number, lag in numbered}
    return found


def share_leftovers(
    planned: Mapping[str, Collection[Key]], existing: Collection[Key], owners: Mapping[Key, str],
    reads: Mapping[str, Collection[str]], lags: Mapping[Key, int],
) -> dict[Key, str]:  # fmt: skip
    """Return the member of each existing partition that a plan gives to nobody.

    They stay with their owners; the others go to the member with the fewest partitions, and among these to the one with
    the least lag. Then full members give one at a time to those that have two less.
    """
    holding = {name: list(planned.get(name, ())) for name in sorted(reads)}
    shared: dict[str, list[Key]] = {name: [] for name in holding}

    def rank(name: str) -> tuple[int, int]:
        return len(holding[name]), sum(lags.get(key, 0) for key in holding[name])

    def give(key: Key, name: str) -> None:
        holding[name].append(key)
        shared[name].append(key)

    left = sorted(set(existing) - {key for keys in planned.values() for key in keys})
    for key in left:
        if key in owners:
            give(key, owners[key])
    for key in sorted(left, key=lambda key: -lags.get(key, 0)):
        if key not in owners:
            give(key, min((name for name in holding if key[0] in reads[name]), key=rank))
    while (step := _evening(holding, shared, reads, lags, rank)) is not None:
        key, full, few = step
        holding[full].remove(key)
        shared[full].remove(key)
        give(key, few)
    return {key: name for name, keys in shared.items() for key in keys}


def _evening(
    holding: Mapping[str, list[Key]], shared: Mapping[str, list[Key]], reads: Mapping[str, Collection[str]],
    lags: Mapping[Key, int], rank: Callable[[str], tuple[int, int]],
) -> tuple[Key, str, str] | None:  # fmt: skip
    """Return a leftover of the fullest member that can give one, and the emptiest member with two less that reads it.

    It is the one whose lag is nearest to half of the difference between the two.
    """
    order = sorted(holding, key=rank)
    for full in reversed(order):
        for few in order:
            movable = [key for key in shared[full] if key[0] in reads[few]]
            if len(holding[full]) - len(holding[few]) > 1 and movable:
                half = int((rank(full)[1] - rank(few)[1]) / 2)
                return min(movable, key=lambda key: abs(lags.get(key, 0) - half)), full, few
    return None
