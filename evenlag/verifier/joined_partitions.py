"""Units: partitions that go together are treated as one partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evenlag.verifier.question import RefusedError
from evenlag.verifier.stated_group import Group


def units_of(group: Group) -> Group:
    """Return the group whose partitions are the units, with the names that certificates use.

    A unit's lag is the sum of its partitions' lags. A member takes it if it subscribes to all of its topics. Its owner
    is the member that owns all of its partitions, or None.
    """
    unit_of, taken = {topic: topic for topic in group.topics}, set(group.topics)
    for topics in group.together:
        name = "+".join(topics)
        while name in taken:
            name += "+"
        taken.add(name)
        unit_of |= dict.fromkeys(topics, name)
    by_name: dict[tuple[str, int], list[int]] = {}
    for p, (topic, number) in enumerate(group.partitions):
        by_name.setdefault((unit_of[topic], number), []).append(p)
    names = sorted(by_name)
    parts = [by_name[name] for name in names]
    members = {name: {topic for topic in group.topics if unit_of[topic] == name} for name in unit_of.values()}
    owners = [{group.owner[p] for p in each} for each in parts]
    pins = [{group.pin[p] for p in each} - {None} for each in parts]
    return replace(
        group,
        partitions=names,
        lags=_sums(group.lags, parts),
        futures=[(weight, _sums(lags, parts)) for weight, lags in group.futures],
        topics_of=[{name for name, topics in members.items() if topics <= mine} for mine in group.topics_of],
        owner=[each.pop() if len(each) == 1 else None for each in owners],
        pin=[each.pop() if each else None for each in pins],
        together=[],
        parts=(group, parts),
    )


def _sums(lags: list[int], parts: list[list[int]]) -> list[int]:
    return [sum(lags[p] for p in each) for each in parts]


def holders_of_units(units: Group, holder: Sequence[int | None]) -> list[int | None]:
    """Return the holder of each unit; raise RefusedError if its partitions have several."""
    assert units.parts is not None
    whole, parts = units.parts
    for each in parts:
        for p in each:
            if holder[p] != holder[each[0]]:
                one, two = ("{}-{}".format(*whole.partitions[q]) for q in (p, each[0]))
                raise RefusedError(f"{one} and {two} must go together, but the plan gives them to two members")
    return [holder[each[0]] for each in parts]
