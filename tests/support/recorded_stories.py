"""What leaders of simulated groups were asked and decided, and what followers of simulated plans have read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any
from unittest.mock import patch
from uuid import UUID

from evenlag.errors import EvenlagError
from evenlag.live import followed_plan
from evenlag.live.assignor.evenlag_assignor import EvenlagAssignor
from evenlag.live.follow import Follow
from evenlag.live.followed_plan import FollowedPlan, UnreadError
from evenlag.protocol.subscriptions import Subscription
from evenlag.simulation import simulate
from evenlag.simulation.consumer_group import Subscriber, Targets
from evenlag.simulation.plan_assignor import PlanAssignor
from evenlag.simulation.plan_log import SimulatedPlanTopic

Partition = tuple[str, int]
Given = dict[str, list[Partition]]

TOPICS = "t0", "t1", "t2"


@dataclass(frozen=True)
class Rebalance:
    """A rebalance of a simulated group, whose leader has decided by Python's assignor.

    Attributes
    ----------
    members : dict of member id to Subscription
        As in Kafka, an id is a client id or a group.instance.id, and a UUID.
    static : bool
        True if the members have a group.instance.id.
    topics : dict of str to int
        Numbers of partitions.
    lags : dict of (topic, partition) to int
    target : dict of member id to (topic, partition) pairs
        The decision.
    now : dict of member id to (topic, partition) pairs
        Partitions of the decision that the members get in this rebalance, without those that others still hold.
    """

    members: dict[str, Subscription]
    static: bool
    topics: dict[str, int]
    lags: dict[Partition, int]
    target: Given
    now: Given

    def spread(self, random: Random) -> Rebalance:
        """Return the rebalance with its partitions in several topics, of which each member reads some.

        The decision is left out, because Python's assignor has made none for such a group.
        """
        read = {name: tuple(sorted(random.sample(TOPICS, random.randint(1, 3)))) for name in self.members}
        members = {
            name: replace(
                each, topics=read[name], owned=tuple(k for k in map(_spread, each.owned) if k[0] in read[name])
            )
            for name, each in self.members.items()
        }
        count = self.topics["t"]
        topics = {name: len(range(first, count, len(TOPICS))) for first, name in enumerate(TOPICS)}
        return Rebalance(members, self.static, topics, {_spread(k): lag for k, lag in self.lags.items()}, {}, {})

    def with_return_of(self, before: Rebalance) -> Rebalance:
        """Return the rebalance with the members of an earlier one that have gone, and what they claimed then."""
        return replace(self, members=before.members | self.members, target={}, now={})

    def alike(self) -> Rebalance:
        """Return the rebalance with one client id for all members; their ids then differ in the UUID alone."""
        ids = {name: f"app-{UUID(int=at)}" for at, name in enumerate(self.members, 1)}
        target, now = ({ids[name]: keys for name, keys in each.items()} for each in (self.target, self.now))
        members = {ids[name]: each for name, each in self.members.items()}
        return replace(self, members=members, static=False, target=target, now=now)


def _spread(key: Partition) -> Partition:
    return TOPICS[key[1] % len(TOPICS)], key[1] // len(TOPICS)


def rebalances(seed: int, hours: float) -> list[Rebalance]:
    """Run a simulated group with evenlag's assignor, and return its rebalances."""
    found: list[Rebalance] = []
    assigned = EvenlagAssignor._assigned

    def recording(self: Any, cluster: Any, members: Mapping[str, Subscription]) -> Any:
        kafka = self._simulated.cluster
        lags = {key: kafka.end(key) - kafka.commits.get(key, (0, ""))[0] for key in kafka.rates}
        answer = assigned(self, cluster, members)
        now = {
            _id(name): [(mine.topic, number) for mine in each.assigned_partitions for number in mine.partitions]
            for name, each in answer.items()
        }
        target = {_id(name): list(keys) for name, keys in self._heading.decision.assignment.items()}
        known = {_id(name): each for name, each in members.items()}
        found.append(Rebalance(known, self._simulated._static, {"t": len(kafka.rates)}, lags, target, now))
        return answer

    with patch.object(EvenlagAssignor, "_assigned", recording):
        simulate(seed, hours, "assignors")
    return found


def _id(name: str) -> str:
    """Return a member id with a UUID, as Kafka makes it, for one of the model's coordinator."""
    client, _, number = name.rpartition("-")
    return f"{client}-{UUID(int=int(number))}"


@dataclass(frozen=True)
class BrokerCase:
    """An assignment of a simulated broker by a plan, with what it was asked.

    Attributes
    ----------
    plan : FollowedPlan
    members : list of Subscriber
    topics : dict of str to int
    before, given : dict of member id to (topic, partition) pairs
    """

    plan: FollowedPlan
    members: list[Subscriber]
    topics: dict[str, int]
    before: Given
    given: Given


def broker_cases(seed: int, hours: float) -> list[BrokerCase]:
    """Run a simulated KIP-848 group, and return the assignments by which some member gets what its plan gives to it."""
    found: list[BrokerCase] = []
    assign = PlanAssignor.__call__

    def recording(
        self: PlanAssignor, members: Collection[Subscriber], topics: Mapping[str, int], before: Targets
    ) -> Targets:
        given = assign(self, members, topics, before)
        if self.plan is not None and any(self.planned(members, topics, before).values()):
            asked = [replace(each) for each in members], dict(topics)
            found.append(
                BrokerCase(self.plan, *asked, *({n: sorted(k) for n, k in m.items()} for m in (before, given)))
            )
        return given

    with patch.object(PlanAssignor, "__call__", recording):
        simulate(seed, hours, "brokers")
    return found


@dataclass
class Step:
    """A follower's look at its plans.

    Attributes
    ----------
    news : list of bytes or None
        Records of its group since the last look; None if the plans could not be read.
    holds : list of (topic, partition) or None
        Partitions that it holds afterwards, if they have changed.
    version, owners
        The plan that it follows afterwards; 0 if there is none.
    troubled : bool
        True if it then finds fault with its plans.
    """

    news: list[bytes] | None
    holds: list[Partition] | None
    version: int
    owners: dict[Partition, str]
    troubled: bool


@dataclass
class Reading:
    """The looks of one follower, from its start on."""

    group: str
    member: str
    steps: list[Step] = field(default_factory=list)
    holds: list[Partition] = field(default_factory=list)

    def note(self, follow: Follow, news: list[bytes] | None) -> None:
        """Add a look, unless nothing came of it."""
        holds = None if follow.holds == self.holds else follow.holds
        if news != [] or holds is not None or not self.steps:
            version, owners = (0, {}) if follow.plan is None else (follow.plan.version, follow.plan.owners)
            self.steps.append(Step(news, holds, version, owners, "plan" in follow.troubles))
            self.holds = follow.holds


def readings(seed: int, hours: float, kind: str) -> list[Reading]:
    """Run simulated followers, and return what each of their processes has read."""
    found: dict[int, tuple[Follow, Reading]] = {}
    contents: dict[int, tuple[Any, bytes]] = {}  # by the id of what was parsed, which is kept alive
    looked: dict[int, list[FollowedPlan | EvenlagError]] = {}  # by the id of a place of plans
    parsed, news, attend = followed_plan._parsed, SimulatedPlanTopic.news, Follow._attend

    def parsing(content: bytes, *arguments: Any) -> Any:
        plan = parsed(content, *arguments)
        contents[id(plan)] = plan, content
        return plan

    def reading(self: SimulatedPlanTopic) -> list[FollowedPlan | EvenlagError]:
        looked[id(self)] = news(self)
        return looked[id(self)]

    def attending(self: Follow) -> None:
        try:
            attend(self)
        finally:
            if (told := looked.pop(id(self._plans), None)) is not None:
                _, notes = found.setdefault(id(self), (self, Reading(self._plans.group, self._member)))
                unread = any(isinstance(each, UnreadError) for each in told)
                notes.note(self, None if unread else [contents[id(each)][1] for each in told])

    replaced: list[tuple[Any, str, Callable[..., Any]]] = [
        (followed_plan, "_parsed", parsing), (SimulatedPlanTopic, "news", reading), (Follow, "_attend", attending),
    ]  # fmt: skip
    patches = [patch.object(*each) for each in replaced]
    for each in patches:
        each.start()
    try:
        simulate(seed, hours, kind)
    finally:
        for each in patches:
            each.stop()
    return [notes for _, notes in found.values()]
