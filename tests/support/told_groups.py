"""Random consumer groups, for tests that write one group in every form that is read."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random

HOSTS = ("/192.0.2.1", "/192.0.2.2", "/192.0.2.30")
CLASSIC_STATES = ("PreparingRebalance", "CompletingRebalance")
CONSUMER_STATES = ("Assigning", "Reconciling")
LARGE, HUGE = 10**12, 2**61  # messages; series of monitors are doubles, so they cannot hold the second


@dataclass(frozen=True)
class Partition:
    """A partition: None for a log end that no broker knows, for no commit, and for no owner."""

    topic: str
    number: int
    start: int
    end: int | None
    current: int | None
    owner: str | None

    @property
    def place(self) -> tuple[str, int]:
        """The topic and the number."""
        return self.topic, self.number


@dataclass(frozen=True)
class Member:
    """A member of a group; `instance` is None for a dynamic one, `protocol` is its own."""

    name: str
    client: str
    host: str
    topics: tuple[str, ...]
    protocol: str
    instance: str | None = None
    rack: str | None = None


@dataclass(frozen=True)
class Group:
    """All that is known of a group. The epochs are None in a classic group."""

    name: str
    partitions: tuple[Partition, ...]
    members: tuple[Member, ...]
    state: str
    protocol: str
    assignor: str | None
    epoch: int | None = None
    assignment_epoch: int | None = None

    @property
    def topics(self) -> list[str]:
        """The topics, sorted."""
        return sorted({each.topic for each in self.partitions})

    @property
    def is_rebalancing(self) -> bool:
        """True in a state of a rebalance."""
        return self.state in CLASSIC_STATES + CONSUMER_STATES

    @property
    def is_huge(self) -> bool:
        """True if a number is too large for a double."""
        return any(max(each.end or 0, each.current or 0) >= 2**53 for each in self.partitions)

    def held(self, member: str) -> list[Partition]:
        """Return the partitions of a member."""
        return [each for each in self.partitions if each.owner == member]

    def member(self, name: str | None) -> Member | None:
        """Return a member by name; None for no owner."""
        return next((each for each in self.members if each.name == name), None)

    def later(self, random: Random) -> "Group":
        """Return the group after commits and new messages, with the same owners."""
        moved = [
            replace(
                each,
                current=None if each.current is None else each.current + random.randint(0, 5),
                end=None if each.end is None else each.end + random.randint(5, 50),
            )
            for each in self.partitions
        ]
        return replace(self, partitions=tuple(moved))


def told_group(seed: int) -> Group:
    """Return a random group with at least one known lag."""
    random = Random(seed)
    protocol = random.choice(["classic", "classic", "consumer"])
    rebalancing = CLASSIC_STATES if protocol == "classic" else CONSUMER_STATES
    state = random.choices(["Stable", "Empty", random.choice(rebalancing)], [7, 2, 2])[0]
    name = random.choice(["billing", "pay-42", "etl.v2", "g_1"])
    topics = random.sample(["orders", "refunds", "t.1", "A-b", "2024", f"{name}-store-changelog"], random.randint(1, 4))
    live = topics[: random.randint(1, len(topics))]  # the others are left over
    members = [] if state == "Empty" else _members(random, protocol, live)
    partitions = [each for topic in topics for each in _partitions(random, topic, members, state)]
    if all(each.end is None for each in partitions):
        partitions[0] = replace(partitions[0], end=partitions[0].start + 7)
    assignor = random.choice(["range", "roundrobin", "cooperative-sticky", "stream"])
    if protocol == "consumer":
        assignor = random.choice(["range", "uniform"])
    epoch = random.randint(1, 90) if protocol == "consumer" else None
    return Group(
        name,
        tuple(sorted(partitions, key=lambda each: each.place)),
        tuple(sorted(members, key=lambda each: each.name)),
        state,
        protocol,
        None if state == "Empty" and protocol == "classic" else assignor,
        epoch,
        None if epoch is None else epoch - (state == "Assigning"),
    )


def _members(random: Random, protocol: str, live: list[str]) -> list[Member]:
    kind = random.choices(["app", "stream", "sink"], [8, 1, 1])[0]
    apart = random.random() < 0.5  # not every member subscribes to every topic
    found: list[Member] = []
    for number in range(random.randint(1, 5)):
        client = {
            "app": random.choice(["app", f"app-{number}"]),
            "stream": f"shop-StreamThread-{number}-consumer",
            "sink": f"connector-consumer-files-{number}",
        }[kind]
        unique = str(uuid.UUID(int=random.getrandbits(128), version=4))
        own = random.choice(["classic", protocol, protocol]) if found else protocol
        instance = f"static-{number}" if random.random() < 0.25 else None
        found.append(
            Member(
                unique if own == "consumer" else f"{instance or client}-{unique}",
                client,
                random.choice(HOSTS),
                tuple(sorted(random.sample(live, random.randint(1, len(live))) if apart else live)),
                own,
                instance,
                random.choice([None, None, "zone-a", "zone-b"]),
            )
        )
    return found


def _partitions(random: Random, topic: str, members: Iterable[Member], state: str) -> list[Partition]:
    numbers = [number for number in range(random.randint(1, 5)) if random.random() < 0.85] or [0]
    subscribers = [each.name for each in members if topic in each.topics]
    unheld = 1.0 if state == "PreparingRebalance" else random.choice([0.0, 0.1, 0.5])
    found = []
    for number in numbers:
        start = random.choice([0, 0, random.randint(1, 90)])
        behind = random.choice([0, random.randint(1, 9), random.randint(10, 10**5), LARGE])
        current: int | None = start + random.randint(0, 10**4)
        end: int | None = (current or 0) + behind
        fate = random.random()
        if fate < 0.15:
            current = None
        elif fate < 0.2:
            end = None
        elif fate < 0.24:
            current, start = start, start + behind // 2  # messages beyond the commit were deleted
        elif fate < 0.26:
            current = (end or 0) + 3
        elif fate < 0.27:
            end = HUGE
        elif fate < 0.29:
            current, start, end = None, 0, 0  # an empty log
        owner = random.choice(subscribers) if subscribers and random.random() >= unheld else None
        found.append(Partition(topic, number, start, end, current, owner))
    return found
