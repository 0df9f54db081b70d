"""Random plans for four members, published."""

from random import Random

from evenlag.live.followed_plan import FollowedPlan, PlanFile, PlanTopic, publish

Partition = tuple[str, int]
MEMBERS = ("c1", "c2", "c3", "c4")


def random_owners(topic: str, partitions: int, random: Random, before: dict[Partition, str]) -> dict[Partition, str]:
    """Return a plan in which about half of the partitions stay with their owner."""
    keys = [(topic, number) for number in range(partitions)]
    return {key: before[key] if key in before and random.random() < 0.5 else random.choice(MEMBERS) for key in keys}


def published(place: PlanFile | PlanTopic, owners: dict[Partition, str]) -> FollowedPlan:
    """Publish a plan with these owners by the names of `MEMBERS`."""
    assignment = {name: [list(key) for key, owner in owners.items() if owner == name] for name in MEMBERS}
    return publish({"group": place.group, "assignment": assignment}, place)
