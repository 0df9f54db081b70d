"""A KIP-848 group whose broker assigns by plans that two loops publish (docs/java-brokers.md), and its promises."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from evenlag.live.followed_plan import FollowedPlan, newest_plan
from evenlag.live.group_state import Member as Described
from evenlag.protocol.subscriptions import PLAN
from evenlag.simulation.cluster import Key
from evenlag.simulation.consumer_group import JOIN, LEAVE, ConsumerGroup, Heartbeat, Subscriber, Targets
from evenlag.simulation.consuming_member import ConsumingMember
from evenlag.simulation.heartbeat_membership import INTERVAL, HeartbeatMembership
from evenlag.simulation.link import Link
from evenlag.simulation.operated_group import OperatedGroup
from evenlag.simulation.plan_assignor import PlanAssignor
from evenlag.simulation.plan_log import GROUP, SimulatedPlanTopic
from evenlag.simulation.troubled_group import numbers
from evenlag.simulation.two_loops import TwoLoops
from evenlag.simulation.uneven_traffic import UnevenTraffic
from evenlag.simulation.watch_loop import TIMEOUT
from evenlag.simulation.world import Process, World

RATES = 0.02, 0.3  # least and most messages per second and partition
SESSION = 20.0  # seconds
# Seconds without a fault after which the group is settled: a member may die after the one before has timed out, and
# partitions go from one to the next in some heartbeats.
BOUND = 2 * SESSION + 10 * INTERVAL
TO_PUBLISH = 2 * TIMEOUT  # seconds from the last reading of the group to its plan
LOOKS_EVERY = 1.0  # seconds between looks of the broker for plans (`evenlag.plan.check.interval.ms`)


class PlannedMember(ConsumingMember[HeartbeatMembership]):
    """A consumer's program: it reads what the broker assigns to it."""

    _group: PlannedGroup

    def new_membership(self) -> HeartbeatMembership:
        """Return a membership that has not joined."""
        instance = self.name if self._group.static else None
        return HeartbeatMembership(
            self._world, self._group.coordinator, self, self.link, self.name, self._group.new_id(self.name),
            topics=["t"], instance=instance,
        )  # fmt: skip


class PlannedGroup(OperatedGroup[PlannedMember]):
    """The members, their coordinator and the loops; the seed chooses the broker's version, and if members are static.

    The plan of an operator names members by their client ids, and the plan of a loop by their member ids.
    """

    longest_garbage = 500.0

    def __init__(self, world: World, hours: float) -> None:
        super().__init__(world, hours, rate=RATES[1], bound=BOUND)
        kafka, self.static = world.random.choice(["4.1", "4.4"]), world.random.random() < 0.5
        self.assignor, self._topics = PlanAssignor(), {"t": len(self.cluster.rates)}
        self.coordinator = ConsumerGroup(self._topics, {PLAN: self._assign}, SESSION, kafka)
        self.loops = TwoLoops(self, lambda: self.coordinator.describe(world.now))
        self.coordinators += [self.coordinator, self.loops.writers]
        self._ids = 0
        self._settled = (-1.0, 0)  # the last fault, and the epoch in which the group has settled since
        self._known: set[str] = set()  # the members that the broker has seen at its last look
        self._seen: dict[str, float] = {}  # when it has last seen each member
        self._looked = 0.0  # the time of its last look; it sees nobody while the group has no coordinator
        self._nudged: tuple[FollowedPlan | None, frozenset[str]] | None = None
        self.begin()
        self.loops.begin()
        self._traffic = UnevenTraffic(self, RATES, keeps=(20.0, 200.0), slow_for=(60.0, 300.0), handling=3.0)
        world.start("traffic", self._traffic.run)
        world.start("compaction", self.compact)
        world.start("broker", self._follow_plans)

    # ---- the broker ----------------------------------------------------------------------------------------------

    def _follow_plans(self, process: Process) -> None:
        """Read plans and look at the group, as `BrokerGroups` of the jar does."""
        place = SimulatedPlanTopic(self.log, Link(self.world, self.cluster), GROUP)
        while True:
            process.sleep(LOOKS_EVERY)
            plan = newest_plan(place.news())
            if plan is not None and (self.assignor.plan is None or plan.version > self.assignor.plan.version):
                self.assignor.plan = plan
            if self.world.now >= max(self.cluster.down_until, self.cluster.moving_until):
                self._look()

    def _look(self) -> None:
        """Note who the members are, and make the coordinator assign anew once if the target is not the plan's."""
        members = self.coordinator.describe(self.world.now).members
        self._known = {each.consumer_id for each in members}
        self._seen |= dict.fromkeys(self._known, self.world.now)
        self._looked = self.world.now
        targets = {each.consumer_id: each.target for each in members}
        planned = self.assignor.planned(_subscribers(members), self._topics, targets)
        reason = self.assignor.plan, frozenset(name for name, keys in planned.items() if keys)
        if all(set(keys) <= set(targets[name]) for name, keys in planned.items()):
            self._nudged = None
        elif reason != self._nudged:
            self._nudged = reason
            self._nudge()

    def _nudge(self) -> None:
        """Make the coordinator assign anew."""
        self.report.done["nudges"] += 1
        self.world.tell("the broker makes the coordinator assign anew")
        nudge = self.new_id("nudge")  # reads a topic that does not exist, where Java has a pattern that matches none
        asked = Heartbeat(nudge, JOIN, topics=["-"], owned=(), rebalance=SESSION)
        self.coordinator.heartbeat(self.world.now, asked)
        self.coordinator.heartbeat(self.world.now, Heartbeat(nudge, LEAVE))

    def _assign(self, members: Collection[Subscriber], topics: Mapping[str, int], before: Targets) -> Targets:
        """Assign with the client ids that the broker knew at its last look."""
        told = [each if each.member_id in self._known else replace(each, client_id=None) for each in members]
        assign = self.assignor if self._known & {each.member_id for each in told} else PlanAssignor()
        return assign(told, topics, before)

    # ---- promises ------------------------------------------------------------------------------------------------

    def check_plan(self, plan: FollowedPlan, before: FollowedPlan) -> None:
        """Check a plan that follows the newest one so far: a loop may plan only for members of the group."""
        if (writer := self.loops.published(plan, before)) is None:
            return
        gone = [each for each in plan.assignment if self._seen.get(each, -math.inf) < self._looked - TO_PUBLISH]
        if gone:
            raise self.world.broken(f"{writer} publishes a plan for {', '.join(gone)}, long gone from the group")

    def owners(self) -> dict[Key, str]:
        """Return the members that the coordinator has the partitions for; the group and its plan must be settled."""
        group = self.coordinator.describe(self.world.now)
        if group.state != "Stable":
            raise self.world.broken(f"the group is not settled: {group.state}")
        (calm_from, epoch), self._settled = self._settled, (self.calm_from, self.coordinator.epoch)
        if calm_from == self.calm_from and epoch < self.coordinator.epoch:
            raise self.world.broken(f"the group does not settle: epoch {self.coordinator.epoch}")
        names = {each.membership.member_id: name for name, each in self.members.items()}
        targets = {each.consumer_id: each.target for each in group.members}
        if targets.keys() != names.keys():
            raise self.world.broken(f"the group has {sorted(targets)}, the members are {sorted(names)}")
        in_force = PlanAssignor(self.plan).planned(_subscribers(group.members), self._topics, targets)
        for member, keys in in_force.items():
            if not set(keys) <= set(targets[member]):
                told = f"{member} has {numbers(targets[member])}, not {numbers(keys)}"
                raise self.world.broken(f"plan {self.plan.version} is not in force: {told}")
        return {key: names[member] for member, keys in targets.items() for key in keys}

    # ---- what happens --------------------------------------------------------------------------------------------

    def start(self, name: str) -> None:
        """Start a member."""
        self.members[name] = PlannedMember(self, name)

    def new_id(self, name: str) -> str:
        """Return a member id."""
        self._ids += 1
        return f"{name}-{self._ids}"

    def deeds(self) -> Sequence[Callable[[], None]]:
        """Return the faults that may befall the group and the loops."""
        return [*super().deeds(), *self._traffic.deeds(), *self.loops.deeds()]


def _subscribers(members: Iterable[Described]) -> list[Subscriber]:
    """Return described members as an assignor gets them."""
    return [
        Subscriber(each.consumer_id, each.group_instance_id, each.client_id, frozenset(each.subscription.topics))
        for each in members
        if each.subscription is not None
    ]
