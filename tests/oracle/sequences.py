"""Random consumer groups that change from step to step, as requests to the oracle."""

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from evenlag import Problem
from evenlag.heuristics import HEURISTICS
from evenlag.heuristics.server_side import assign_in_broker
from evenlag.model.plan import Plan

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "range-server")
BROKER = ("uniform-broker", "range-broker")  # asked with ids of topics and instances, in the order of a broker
SERVER = ("uniform", "range-server", *BROKER)  # they run in the broker, which knows what it assigned
RACKED = ("range", "sticky", "cooperative-sticky", "uniform")  # asked with racks; the last looks at none
STEPS = 5  # of a sequence
RACKS = "abcdef"
WITHOUT_OWNERS = ("range", "roundrobin")

Claims = dict[str, list[int]]  # partitions by topic
Answer = list[int]


@dataclass
class Step:
    """A group at one rebalance.

    Attributes
    ----------
    topics : dict
        Number of partitions of each topic.
    members : dict
        Topics that each member subscribes to.
    doubled : list of (member, topic, share)
        Members that claim a partition more in the newest generation, whoever owns it: the one at `share` of the topic.
    racks : dict
        Rack of each member that names one.
    replica_racks : dict
        Racks of the replicas of each topic's partitions as a text, a letter each: "ab - b"; "-" if not known.
    instances : dict
        The `group.instance.id` of each static member.
    ids : dict
        Id of each topic, as Kafka writes it.
    """

    topics: dict[str, int]
    members: dict[str, list[str]]
    doubled: list[tuple[str, str, float]] = field(default_factory=list)
    racks: dict[str, str] = field(default_factory=dict)
    replica_racks: dict[str, str] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)


def steps(seed: int, number: int) -> list[Step]:
    """Return the steps of sequence `number`."""
    return list(_Changes(Random(f"{seed}/{number}")).steps())


def racked_steps(seed: int, number: int) -> list[Step]:
    """Return the steps of sequence `number`, in which members and replicas have racks; topics are short."""
    random = Random(f"racks/{seed}/{number}")
    changes = _Changes(Random(f"{seed}/{number}"), longest=(3, 8, 12))
    places = _Places(random)
    size = random.randint(1, 12) if random.random() < 0.4 else None
    sequence = list(changes.steps())
    for step in sequence:
        if size is not None:  # topics that are matched together, if they have the same subscribers too
            step.topics = dict.fromkeys(step.topics, size)
        step.racks = {member: rack for member in step.members if (rack := places.of_member(member))}
        step.replica_racks = {topic: places.of_replicas(topic, count) for topic, count in step.topics.items()}
    return sequence


def broker_steps(seed: int, number: int) -> list[Step]:
    """Return the steps of sequence `number`, with racks, and for a broker: with static members and ids of topics."""
    sequence = racked_steps(seed, number) if number % 2 else steps(seed, number)
    random = Random(f"broker/{seed}/{number}")
    static = random.choice([0, 0.5, 1])
    for step in sequence:
        step.ids = {topic: _id_of(Random(f"{seed}/{number}/{topic}")) for topic in step.topics}
        for member in step.members:
            if Random(f"{seed}/{number}/{member}").random() < static:
                step.instances[member] = f"host-{Random(member).randrange(100)}-{member}"
    return sequence


def _id_of(random: Random) -> str:
    return base64.urlsafe_b64encode(random.randbytes(16)).decode().rstrip("=")


def play(
    sequence: list[Step], assignor: str, ask: Callable[[dict[str, Any]], Answer | None]
) -> Iterator[tuple[dict[str, Any], Answer | None]]:
    """Ask for the assignment at every step, each with the owners that the one before it left; yield both.

    A member that was gone comes back with what it owned then, in the generation of that time; but not to a broker's
    assignor. No answer ends the sequence.
    """
    held: dict[str, Claims] = {}
    generations: dict[str, int] = {}
    for generation, step in enumerate(sequence, start=1):
        present = {m for m in held if m in step.members}
        if assignor in SERVER:
            held = {member: held[member] for member in present}
        members: dict[str, Any] = {}
        for member, topics in step.members.items():
            members[member] = {"topics": topics} | ({"rack": step.racks[member]} if member in step.racks else {})
            members[member] |= {"instance": step.instances[member]} if member in step.instances else {}
            if assignor not in WITHOUT_OWNERS and member in present:
                members[member]["owned"] = _existing(held[member], step.topics)
                members[member]["generation"] = generations[member]
        if assignor not in WITHOUT_OWNERS and assignor not in SERVER:
            for member, topic, share in step.doubled:
                if generations.get(member) == generation - 1 and topic in step.topics:
                    claims = members[member]["owned"].setdefault(topic, [])
                    partition = int(share * step.topics[topic])
                    claims[:] = sorted({*claims, partition})
        request = {"assignor": assignor, "topics": step.topics, "members": members}
        if step.replica_racks:
            request["racks"] = step.replica_racks
        if step.ids:
            request["ids"] = step.ids
        answer = ask(request)
        yield request, answer
        if answer is None:
            return
        names = sorted(step.members)
        for name in names:
            held[name], generations[name] = {}, generation
        for (topic, partition), member_index in zip(_partitions(step.topics), answer, strict=True):
            if member_index >= 0:
                held[names[member_index]].setdefault(topic, []).append(partition)


def published(assignor: str) -> str:
    """Return our name of the strategy that an assignor of the oracle follows."""
    return assignor.removesuffix("-server").removesuffix("-broker")


def plan_of(request: dict[str, Any], problem: Problem) -> Plan:
    """Return our answer to a request, whose problem is given."""
    assignor = request["assignor"]
    if assignor not in BROKER:
        return HEURISTICS[published(assignor)](problem)
    instances = {name: entry["instance"] for name, entry in request["members"].items() if "instance" in entry}
    return assign_in_broker(
        problem, published(assignor), instance_ids=instances, topic_ids=request["ids"], joined=list(request["members"])
    )


def problem_of(request: dict[str, Any]) -> Problem:
    """Return the problem that a request describes; its lags are 0."""
    members = request["members"]
    owned = {
        name: [(topic, p) for topic, claims in entry.get("owned", {}).items() for p in claims]
        for name, entry in members.items()
    }
    return Problem.from_lags(
        {topic: [0] * count for topic, count in request["topics"].items()},
        {name: entry["topics"] for name, entry in members.items()},
        owned=owned,
        generations={name: entry.get("generation") for name, entry in members.items()},
        racks={name: entry["rack"] for name, entry in members.items() if "rack" in entry},
        partition_racks={
            topic: [None if racks == "-" else list(racks) for racks in text.split(" ")]
            for topic, text in request.get("racks", {}).items()
        },
    )


def _existing(claims: Claims, topics: dict[str, int]) -> Claims:
    return {topic: list(partitions) for topic, partitions in claims.items() if topic in topics}


def _partitions(topics: dict[str, int]) -> Iterator[tuple[str, int]]:
    for topic in sorted(topics):
        for partition in range(topics[topic]):
            yield topic, partition


class _Changes:
    """A group at random, and what happens to it."""

    def __init__(self, random: Random, longest: tuple[int, ...] = (3, 8, 12, 40)) -> None:
        self.random = random
        self.mixed = random.random() < 0.5
        self.density = random.choice([0.3, 0.5, 0.8])
        self.longest = random.choice(longest)
        self.uuids = random.random() < 0.5
        self.made = 0
        self.gone: dict[str, list[str]] = {}
        self.topics = {f"t{i}": self.size() for i in range(random.randint(1, 6))}
        self.members: dict[str, list[str]] = {}
        for _ in range(random.randint(1, random.choice([4, 8, 20]))):
            self.join()

    def steps(self) -> Iterator[Step]:
        yield self.step()
        changes = [self.join, self.leave, self.leave, self.come_back, self.come_back, self.come_back]
        changes += [self.resubscribe, self.resubscribe, self.add_topic, self.delete_topic, self.add_partitions]
        for _ in range(STEPS - 1):
            for _ in range(self.random.choice([0, 1, 1, 1, 2, 3, 6])):
                self.random.choice(changes)()
            step = self.step()
            if self.random.random() < 0.2:
                step.doubled = [self.double() for _ in range(self.random.randint(1, 4))]
            yield step

    def step(self) -> Step:
        return Step(dict(self.topics), {member: list(topics) for member, topics in self.members.items()})

    def size(self) -> int:
        return self.random.randint(1, self.longest)

    def subscription(self) -> list[str]:
        if not self.mixed:
            return sorted(self.topics)
        some = [topic for topic in sorted(self.topics) if self.random.random() < self.density]
        return some or [self.random.choice(sorted(self.topics))]

    def join(self) -> None:
        tail = f"{self.random.getrandbits(64):016x}" if self.uuids else ""
        self.members[f"c{tail}{len(self.members) + len(self.gone)}"] = self.subscription()

    def leave(self) -> None:
        if len(self.members) > 1:
            member = self.random.choice(sorted(self.members))
            self.gone[member] = self.members.pop(member)

    def come_back(self) -> None:
        if self.gone:
            member = self.random.choice(sorted(self.gone))
            topics = [topic for topic in self.gone.pop(member) if topic in self.topics]
            self.members[member] = topics if self.mixed and topics else self.subscription()

    def resubscribe(self) -> None:
        self.members[self.random.choice(sorted(self.members))] = self.subscription()

    def add_topic(self) -> None:
        self.made += 1
        topic = f"n{self.made}"
        self.topics[topic] = self.size()
        for topics in self.members.values():
            if not self.mixed or self.random.random() < self.density:
                topics.append(topic)

    def delete_topic(self) -> None:
        if len(self.topics) > 1:
            topic = self.random.choice(sorted(self.topics))
            del self.topics[topic]
            for member, topics in self.members.items():
                if topic in topics:
                    topics.remove(topic)
                if not topics:
                    self.members[member] = self.subscription()

    def add_partitions(self) -> None:
        self.topics[self.random.choice(sorted(self.topics))] += self.random.randint(1, 5)

    def double(self) -> tuple[str, str, float]:
        member = self.random.choice(sorted(self.members))
        return member, self.random.choice(self.members[member]), self.random.random()


class _Places:
    """Racks at random, each member and partition always in the same."""

    def __init__(self, random: Random) -> None:
        self.seed = random.getrandbits(32)
        self.racks = RACKS[: random.choice([1, 2, 3, 3, 3, 6])]
        self.replicas = random.choice([1, 1, 2, 2, 3, 6, None])  # of each partition; None: topics differ
        self.in_turn = random.random() < 0.5  # partition i of every topic begins in rack i
        self.homeless = random.choice([0, 0, 0.3, 0.9])  # share of members without a rack
        self.unknown = random.choice([0, 0, 0, 0.2])  # share of partitions without racks
        self.strange = random.choice([0, 0, 0.2, 0.5])  # share of members in a rack that has no replicas

    def of_member(self, member: str) -> str:
        random = Random(f"{self.seed}/{member}")
        if random.random() < self.homeless:
            return ""
        return "z" if random.random() < self.strange else random.choice(self.racks)

    def of_replicas(self, topic: str, count: int) -> str:
        replicas = self.replicas or Random(f"{self.seed}/{topic}").choice([1, 2, 6])
        many = min(replicas, len(self.racks))
        return " ".join(self.of_partition(Random(f"{self.seed}/{topic}/{p}"), p, many) for p in range(count))

    def of_partition(self, random: Random, partition: int, many: int) -> str:
        if random.random() < self.unknown:
            return "-"
        if self.in_turn:
            return "".join(self.racks[(partition + replica) % len(self.racks)] for replica in range(many))
        return "".join(random.choices(self.racks, k=many) if random.random() < 0.2 else random.sample(self.racks, many))
