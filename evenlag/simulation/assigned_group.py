"""A classic group whose leader assigns by `EvenlagAssignor` (docs/assignor.md), and the promises of that page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

from evenlag.live.assignor.deciding import Decision
from evenlag.model.payoff import Rates
from evenlag.model.rates import SECOND
from evenlag.simulation.assigned_member import AssignedMember
from evenlag.simulation.classic_membership import SESSION
from evenlag.simulation.cluster import Key
from evenlag.simulation.coordinator import Coordinator
from evenlag.simulation.group_answers import State
from evenlag.simulation.troubled_group import TroubledGroup, numbers
from evenlag.simulation.uneven_traffic import UnevenTraffic
from evenlag.simulation.world import World

RATES = 0.02, 0.3  # least and most messages per second and partition
# Seconds without a fault after which the group is settled: a member may die after each of the two phases of a
# rebalance, and the last requests time out.
BOUND = 4 * SESSION + 50.0
REJOIN_INTERVAL = 120.0  # seconds between rebalances that the leader asks for
READ_EVERY = 30.0  # seconds between readings for the record


class AssignedGroup(TroubledGroup[AssignedMember]):
    """The members and their coordinator; the seed chooses the protocol and whether members are static."""

    def __init__(self, world: World, hours: float) -> None:
        super().__init__(world, hours, rate=RATES[1], bound=BOUND)
        random = world.random
        self.coordinator = Coordinator()
        self.coordinators.append(self.coordinator)
        self.cooperative, self._static = random.random() < 0.6, random.random() < 0.3
        self.parameters: dict[str, Any] = {
            "cooperative": self.cooperative, "read_every": READ_EVERY, "rejoin_interval": REJOIN_INTERVAL,
            "horizon": random.choice([0, "2m", "auto"]), "rejoin_if_better": random.choice([None, "20%"]),
        }  # fmt: skip
        self._decision: Decision | None = None
        self._led: dict[AssignedMember, float] = {}  # when each leader has assigned last
        self._requested = -REJOIN_INTERVAL
        self._settled = (-1.0, 0)  # the last fault, and the generation in which the group has settled since
        self.begin()
        self._traffic = UnevenTraffic(self, RATES, keeps=(60.0, 600.0), slow_for=(10.0, 200.0), handling=4.0)
        world.start("traffic", self._traffic.run)

    # ---- for its members -----------------------------------------------------------------------------------------

    def partitions_for_topic(self, topic: str) -> set[int]:
        """Return the partitions of a topic, as kafka-python's metadata of the cluster do."""
        return {number for name, number in self.cluster.rates if name == topic}

    def decided(self, member: AssignedMember, decision: Decision) -> None:
        """Check a decision of a leader."""
        self.report.done["plans" if decision.solved else "baselines"] += 1
        self.world.tell(f"{member.name} decides: {decision}")
        if any("no plan could be made" in why for why in decision.why):
            raise self.world.broken(f"{member.name} has no plan: {'; '.join(decision.why)}")
        if not decision.solved and not decision.why:
            raise self.world.broken(f"{member.name} assigns by a baseline without a reason")
        given = sorted(key for keys in decision.assignment.values() for key in keys)
        if given != sorted(self.cluster.rates):
            raise self.world.broken(f"{member.name} assigns {numbers(given)}, not each partition once")
        self._decision = decision
        self._led[member] = self.world.now

    def rejoin_requested(self, member: AssignedMember) -> None:
        """Check that a leader waits between its last rebalance and one that it asks for."""
        since = self.world.now - self._led[member]
        self.report.done["requested rebalances"] += 1
        self.world.tell(f"{member.name} asks for a rebalance")
        if since < REJOIN_INTERVAL:
            raise self.world.broken(f"{member.name} asks for a rebalance {since:.1f} s after the last one")
        self._requested = self.world.now

    def recorded(self, member: AssignedMember, rates: Rates, seen: Sequence[tuple[int, dict[Key, int]]]) -> None:
        """Check that the rates of a record are those between two of the last readings."""
        self.report.done["records"] += 1
        possible = (
            {key: Fraction((end - ends[key]) * SECOND, later - sooner) for key, end in later_ends.items()}
            for (sooner, ends), (later, later_ends) in combinations(seen, 2)
        )
        if not any(each == rates for each in possible):
            raise self.world.broken(f"{member.name} has recorded rates that it has not seen: {rates}")

    # ---- promises ------------------------------------------------------------------------------------------------

    def owners(self) -> dict[Key, str]:
        """Return the members that the last decision gives the partitions to; the group must be settled."""
        names = {self._known_as(each.membership.member_id): name for name, each in self.members.items()}
        asked = self.world.now - self._requested < BOUND
        if self.coordinator.state is not State.STABLE and not asked:
            raise self.world.broken(f"the group is not settled: {self.coordinator.state}")
        calm_from, generation = self._settled
        self._settled = self.calm_from, self.coordinator.generation
        if asked:
            return {}
        if calm_from == self.calm_from and generation < self.coordinator.generation:
            raise self.world.broken(f"the group does not settle: generation {self.coordinator.generation}")
        decision = self._decision
        assert decision is not None
        given = {self._known_as(member): keys for member, keys in decision.assignment.items()}
        if given.keys() != names.keys():
            raise self.world.broken(f"the plan is for {sorted(given)}, the members are {sorted(names)}")
        if decision.waiting:
            raise self.world.broken(f"{numbers(decision.waiting)} still wait to be revoked")
        return {key: names[member] for member, keys in given.items() for key in keys}

    def _known_as(self, member_id: str) -> str:
        """Return the static name of a member, which comes back under another id without a rebalance, or its id."""
        return member_id.rpartition("-")[0] if self._static else member_id

    # ---- what happens --------------------------------------------------------------------------------------------

    def start(self, name: str) -> None:
        """Start a member."""
        self.members[name] = AssignedMember(self, name, name if self._static else None)

    def deeds(self) -> Sequence[Callable[[], None]]:
        """Return the faults that may befall the group."""
        return [*super().deeds(), *self._traffic.deeds()]
