"""A group whose operator publishes plans, and garbage in between, in a topic that is compacted now and then."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from evenlag.live.followed_plan import FollowedPlan
from evenlag.simulation.cluster import Key
from evenlag.simulation.plan_log import ARRIVES, GARBAGE, GROUP, PlanLog
from evenlag.simulation.troubled_group import M, TroubledGroup, numbers
from evenlag.simulation.world import Process, World

COMPACTED = 30.0, 600.0  # least and most seconds between two compactions of the topic of plans


class OperatedGroup(TroubledGroup[M]):
    """The members and the topic of plans.

    Attributes
    ----------
    log : PlanLog
    plan : FollowedPlan
        The newest one.
    longest_garbage : float
        Most seconds until a plan follows a record that is none.
    """

    longest_garbage = 60.0

    def __init__(self, world: World, hours: float, *, rate: float, bound: float) -> None:
        super().__init__(world, hours, rate=rate, bound=bound)
        self.log = PlanLog(world, self.appended)
        self.plan = FollowedPlan(GROUP, 0, {})

    def appended(self, value: bytes) -> None:
        """Note a record of the topic of plans."""
        if value != GARBAGE:
            plan, before = FollowedPlan.from_dict(json.loads(value)), self.plan
            self.plan = plan if plan.version > self.plan.version else self.plan
            shown = ", ".join(f"{name}: {numbers(keys)}" for name, keys in plan.assignment.items())
            self.disturb("plan", f"plan {plan.version} is published: {shown}", ARRIVES[1])
            self.check_plan(plan, before)

    def check_plan(self, plan: FollowedPlan, before: FollowedPlan) -> None:
        """Check a plan that follows the newest one so far; nothing where only the operator publishes."""

    def publish_any(self, ahead: float = 0.0) -> None:
        """Publish a plan that gives each partition to any of the members."""
        names = sorted(self.members)
        self.publish({key: self.world.random.choice(names) for key in self.cluster.rates}, ahead)

    def publish(self, owners: Mapping[Key, str], ahead: float = 0.0) -> None:
        """Publish a plan by a clock that is some seconds ahead; any of the members gets what is for others."""
        given: dict[str, list[Key]] = {name: [] for name in sorted(self.members)}
        for key, name in owners.items():
            given[name if name in given else self.world.random.choice([*given])].append(key)
        version = max(self.plan.version + 1, round(1000 * (self.world.wall() + ahead)))
        plan = FollowedPlan(GROUP, version, {name: tuple(keys) for name, keys in given.items()})
        self.log.append(GROUP.encode(), json.dumps(plan.to_dict()).encode())

    def deeds(self) -> Sequence[Callable[[], None]]:
        """Return the faults that may befall the group, and a new plan."""
        return [self.publish_any, *super().deeds(), self._garble]

    def _garble(self) -> None:
        """Write something else than a plan, and publish a plan later."""
        self.disturb("garbage", "garbage is published")
        self.log.append(GROUP.encode(), GARBAGE)
        self.later("a plan follows the garbage", 1, self.longest_garbage, self.publish_any)

    def compact(self, process: Process) -> None:
        """Compact the topic of plans again and again."""
        while True:
            process.sleep(self.world.random.uniform(*COMPACTED))
            self.log.compact()
