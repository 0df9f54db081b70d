"""A run of a group with faults, from a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evenlag.live import time_source
from evenlag.simulation.assigned_group import AssignedGroup
from evenlag.simulation.followed_group import Followers
from evenlag.simulation.group_with_loops import Looped
from evenlag.simulation.planned_group import PlannedGroup
from evenlag.simulation.troubled_group import Report, TroubledGroup
from evenlag.simulation.world import World

HOUR = 3_600.0

KINDS: Mapping[str, Callable[[World, float], TroubledGroup[Any]]] = {
    "followers": Followers,
    "assignors": AssignedGroup,
    "loops": Looped,
    "brokers": PlannedGroup,
}
"""The groups: followers of a plan, a classic group with evenlag's assignor, followers whose plans loops publish, and a
KIP-848 group whose broker assigns by such plans."""


def simulate(seed: int, hours: float, kind: str = "followers") -> Report:
    """Run a group with faults for some hours of virtual time.

    Raises
    ------
    BrokenPromiseError
        Two members read one partition at a time, a message was skipped, one was repeated although its commit counted, a
        member ended by itself, or a partition was without its owner or not read a bound of seconds after the last
        fault. Members that were stopped may process again what others have processed, until they know of it.
    """
    world = World(seed)
    before = time_source.now, time_source.wall, time_source.sleep
    time_source.now, time_source.wall, time_source.sleep = lambda: world.now, world.wall, world.sleep
    try:
        group = KINDS[kind](world, hours)
        world.run(hours * HOUR)
    finally:
        time_source.now, time_source.wall, time_source.sleep = before
    return group.report
