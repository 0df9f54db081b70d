"""Random groups with published plans, and their rebalances under the Java assignor, without a broker."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from evenlag.protocol.user_data import StickyUserData
from tests.oracle.sequences import Step
from tests.support.member_bytes import encode_sticky
from tests.support.plan_jar import Driver

Partition = tuple[str, int]
Held = dict[str, set[Partition]]
KINDS = ("whole", "partial", "for others", "broken", "none")
EAGER = ("StickyAssignor", "RangeAssignor", "RoundRobinAssignor")
KAFKAS = "org.apache.kafka.clients.consumer."
ANONYMOUS = "an id of KIP-848, of the run before "
MOST_REBALANCES = 3  # that a change takes: one that revokes, one that assigns, and one that finds nothing to do


@dataclass
class Member:
    """A member of a group: its id, and its group.instance.id if it has one."""

    id: str
    instance: str | None
    topics: list[str]


@dataclass
class Case:
    """A group with a published plan.

    Attributes
    ----------
    meant : dict
        The member that the plan gives each partition to, where it exists and that member reads it.
    """

    topics: dict[str, int]
    members: list[Member]
    kind: str
    content: str | None
    meant: dict[Partition, str] = field(default_factory=dict)

    def existing(self) -> set[Partition]:
        """Return the partitions of all topics that somebody reads."""
        read = {topic for member in self.members for topic in member.topics}
        return {(topic, p) for topic, count in self.topics.items() if topic in read for p in range(count)}


def case_of(step: Step, random: Random, version: int) -> Case:
    """Return the group of a step of `tests.oracle.sequences`, with a random plan."""
    members = []
    for name, topics in step.members.items():
        tail = UUID(int=Random(name).getrandbits(128))
        instance = f"host-{name}" if Random(name).random() < 0.3 else None
        members.append(Member(f"{instance or name}-{tail}", instance, list(topics)))
    case = Case(step.topics, members, random.choice(KINDS), None)
    if case.kind != "none":
        _publish(case, random, version)
    return case


def _publish(case: Case, random: Random, version: int) -> None:
    assignment: dict[str, list[Partition]] = {}
    shared_out = [*sorted(case.existing()), ("absent", 0), ("t0", 999)]
    if case.kind == "partial":
        shared_out = [each for each in shared_out if random.random() < 0.6]
    names = {member.id: name_in_plan(member, random) for member in case.members}
    if case.kind == "for others":
        names = {id_: name if random.random() < 0.3 else f"gone-{name}" for id_, name in names.items()}
    reads = {member.id: set(member.topics) for member in case.members}
    for partition in shared_out:
        member = random.choice(case.members)
        assignment.setdefault(names[member.id], []).append(partition)
        if partition in case.existing() and partition[0] in reads[member.id] and "gone-" not in names[member.id]:
            case.meant[partition] = member.id
    known = {
        names[member.id]: known_in_plan(member, random) for member in case.members if "gone-" not in names[member.id]
    }
    lags = {topic: [random.randrange(1000) for _ in range(count)] for topic, count in case.topics.items()}
    document = {"group": "g", "version": version, "assignment": assignment, "members": known, "lags": lags}
    case.content = json.dumps(document)
    if case.kind == "broken":
        case.meant = {}
        case.content = random.choice([case.content[:-1], case.content.replace('"g"', '"another"'), "[]", ""])


def name_in_plan(member: Member, random: Random) -> str:
    """Return one of the names by which a plan may mean a member."""
    client = member.id[:-37]
    earlier = f"{client}-{UUID(int=random.getrandbits(128))}"
    return random.choice([member.instance or client, client, member.id, earlier, f"{ANONYMOUS}{member.id}"])


def known_in_plan(member: Member, random: Random) -> dict[str, str]:
    """Return what a plan may know of a member whose name says nothing."""
    ids = {"client_id": member.id[:-37]} | ({"group_instance_id": member.instance} if member.instance else {})
    return dict([random.choice(list(ids.items()))])


class Rebalances:
    """Rebalances of a group under a leader that knows nothing of the past, from what its members hold."""

    def __init__(
        self, driver: Driver, plan: Path, held: Held, generation: int, assignor: str | None = None, **configs: str
    ) -> None:
        self._driver, self._plan, self.held, self.generation = driver, plan, held, 10 * generation
        self._eager = configs.get("evenlag.plan.protocol") == "eager" or assignor in EAGER
        self._kafkas = assignor
        self._asked = {"leader": f"{plan} {assignor} {configs}", "configs": {"evenlag.plan.file": str(plan)} | configs}
        if assignor:
            self._asked["assignor"] = KAFKAS + assignor

    def settle(self, case: Case) -> Iterator[tuple[Held, Held]]:
        """Publish the plan, and yield what members held before and after each rebalance until none revokes any more."""
        if case.content is None:
            self._plan.unlink(missing_ok=True)
        else:
            self._plan.write_text(case.content)
        exists = case.existing()
        old = {member.id: self.held[member.id] & exists for member in case.members if member.id in self.held}
        self.held = {
            member.id: {each for each in old.get(member.id, set()) if each[0] in member.topics}
            for member in case.members
        }
        known = {member.id for member in case.members if member.id in old}
        for _ in range(MOST_REBALANCES):
            before = {} if self._eager else {name: set(held) for name, held in self.held.items()}
            answer = self._driver.ask("assign", topics=case.topics, members=self._members(case, known), **self._asked)[
                "assignment"
            ]
            given = {name: [tuple(pair) for pair in pairs] for name, pairs in answer.items()}
            assert all(len(held) == len(set(held)) for held in given.values())
            self.held = {name: set(held) for name, held in given.items()}
            self.generation += 1
            known = set(self.held)
            yield before, self.held
            if not any(held - self.held[name] for name, held in before.items()):
                return
        raise AssertionError(f"not settled after {MOST_REBALANCES} rebalances: {self.held}")

    def _members(self, case: Case, known: set[str]) -> dict[str, Any]:
        return {
            member.id: {
                "topics": member.topics,
                "instance": member.instance,
                "owned": [] if self._eager else sorted(self.held[member.id]),
                "generation": self.generation if member.id in known else -1,
            }
            | ({"sent": self._sent(member.id)} if self._eager and member.id in known else {})
            for member in case.members
        }

    def _sent(self, member: str) -> str:
        owned = tuple(sorted(self.held[member]))
        if self._kafkas:
            return encode_sticky(StickyUserData(owned, self.generation)).hex()
        asked = self._asked | {"leader": f"{self._plan} {member}"}
        sent: str = self._driver.ask("join", **asked, assigned=owned)["sent"]
        return sent


def uneven(case: Case, held: Held) -> list[tuple[str, str]]:
    """Return pairs of members of which the first could give a partition without a place in the plan to the second.

    That is Kafka's own criterion: counts differ by more than 1, and the fuller member has one that the other reads.
    """
    reads = {member.id: set(member.topics) for member in case.members}
    left = {name: partitions - set(case.meant) for name, partitions in held.items()}
    counts = Counter({name: len(partitions) for name, partitions in held.items()})
    return [
        (fuller, other)
        for fuller in left
        for other in left
        if counts[fuller] > counts[other] + 1 and any(topic in reads[other] for topic, _ in left[fuller])
    ]
