"""Followers of plans that two loops publish (docs/loop.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evenlag.live.followed_plan import FollowedPlan
from evenlag.live.group_state import CLASSIC, Description
from evenlag.live.ownership import LEASE
from evenlag.simulation.followed_group import RATE, Followers
from evenlag.simulation.two_loops import TwoLoops
from evenlag.simulation.uneven_traffic import UnevenTraffic
from evenlag.simulation.watch_loop import EVERY, TIMEOUT
from evenlag.simulation.world import World

SEEN_DEAD = 2 * EVERY + LEASE + TIMEOUT  # seconds after which a loop has seen that a follower is dead
RATES = 0.02, RATE  # least and most messages per second and partition


class Looped(Followers):
    """The members and the loops."""

    longest_death, longest_garbage = 500.0, 500.0

    def __init__(self, world: World, hours: float) -> None:
        # Kafka knows no followers.
        self.loops = TwoLoops(self, lambda: Description("Empty", protocol=CLASSIC))
        super().__init__(world, hours)
        self.coordinators.append(self.loops.writers)
        self.loops.begin()
        self._traffic = UnevenTraffic(self, RATES, keeps=(20.0, 200.0), slow_for=(60.0, 300.0), handling=3.0)
        world.start("traffic", self._traffic.run)

    def check_plan(self, plan: FollowedPlan, before: FollowedPlan) -> None:
        """Check a plan that follows the newest one so far.

        A loop may plan only for the members of that one, none of whom has long been dead.
        """
        if (writer := self.loops.published(plan, before)) is None:
            return
        now, named = self.world.now, {name for name, keys in before.assignment.items() if keys}
        if plan.assignment.keys() != named:
            raise self.world.broken(f"{writer} publishes a plan for {sorted(plan.assignment)}, not for {sorted(named)}")
        dead = [each.name for each in self.members.values() if each.died < now - SEEN_DEAD and each.name in named]
        if dead:
            raise self.world.broken(f"{writer} publishes a plan for {', '.join(dead)}, which has long been dead")

    def deeds(self) -> Sequence[Callable[[], None]]:
        """Return the faults that may befall the group and the loops."""
        return [*super().deeds(), *self._traffic.deeds(), *self.loops.deeds()]
