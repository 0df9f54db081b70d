"""Groups with racks, sizes and traffic, and their figures computed from the data alone."""

import random
from collections.abc import Mapping
from typing import Any

from evenlag import Problem

ZONES = ("zone-a", "zone-b", "zone-c")
Assignment = Mapping[str, list[tuple[str, int]]]


def shop(seed: int = 1, partitions: int = 9, members: int = 3, **more: Any) -> Problem:
    """A group of one topic whose partitions have two replicas each, owned in turn; all data but own costs."""
    rng = random.Random(seed)
    names = [f"c{m}" for m in range(members)]
    lags = {"t": [rng.randint(0, 1000) for _ in range(partitions)]}
    owned = {name: [("t", p) for p in range(partitions) if p % members == m] for m, name in enumerate(names)}
    fields: dict[str, Any] = {
        "owned": owned,
        "racks": {name: ZONES[m % 3] for m, name in enumerate(names)},
        "partition_racks": {"t": [rng.sample(ZONES, 2) for _ in range(partitions)]},
        "move_sizes": {"t": [rng.randint(1, 50) for _ in range(partitions)]},
        "traffic": {"t": [rng.randint(0, 20) for _ in range(partitions)]},
    }
    fields = {name: value for name, value in (fields | more).items() if value is not None}
    return Problem.from_lags(lags, {name: ["t"] for name in names}, **fields)


def crossings(problem: Problem, assignment: Assignment) -> int:
    """Traffic of the partitions that members read from other racks than theirs, from the problem document."""
    document = problem.to_dict()
    total = 0
    for member, names in assignment.items():
        rack = document["members"][member].get("rack")
        for topic, partition in names:
            racks = _value_of(document, "partition_racks", topic, partition, None)
            traffic = _value_of(document, "traffic", topic, partition, 1)
            here = [each for each in (racks or [])[: 1 if document.get("fetch_from") == "leader" else None] if each]
            total += traffic if rack is not None and here and rack not in here else 0
    return total


def owned_now(problem: Problem) -> dict[str, list[tuple[str, int]]]:
    """Today's assignment, from the problem document."""
    members = problem.to_dict()["members"]
    return {member: [(topic, p) for topic, p in entry.get("owned", ())] for member, entry in members.items()}


def moved_size(problem: Problem, assignment: Assignment) -> int:
    """Sizes of the partitions that leave their owner."""
    document = problem.to_dict()
    owner = {tuple(name): member for member, entry in document["members"].items() for name in entry.get("owned", ())}
    return sum(
        _value_of(document, "move_sizes", *name, 1)
        for member, names in assignment.items()
        for name in names
        if owner.get(name, member) != member
    )


def _value_of(document: Mapping[str, Any], field: str, topic: str, partition: int, other: Any) -> Any:
    values = document.get(field, {}).get(topic)
    if isinstance(values, list):
        return values[partition]
    return other if values is None else values.get(str(partition), other)
