"""A consumer group as stated by a problem file, in plain Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm
from typing import Any

from evenlag.errors import InvalidProblemError

Number = int | Fraction
LEADER, FOLLOWERS = "leader", "followers"


@dataclass(frozen=True, eq=False)
class Group:
    """P partitions and M members. Indices refer to these, both in ascending order of their names.

    Attributes
    ----------
    partitions : list of (str, int)
        Topic and number.
    lags : list of int (P,)
        Messages.
    futures : list of (Fraction, list of int)
        Weight and lags of each scenario.
    weights : list of Fraction (M,)
    caps : list of int or None (M,)
    topics_of : list of set of str (M,)
        Subscriptions of each member.
    owner, pin : list of int or None (P,)
        Member that held the partition and could keep it, and member that must get it.
    together : list of list of str
        Topics whose partitions of one number go to one member.
    racks, partition_racks : lists (M,) and (P,)
        Rack of each member, and racks of each partition's replicas, the leader's first; None if unknown.
    sizes, traffic : list of int (P,), or None
        Size and traffic of each partition; None if not given.
    costs : dict of name to list of list of int (P, M)
        Costs of pairs that the problem file states.
    fetch_from : {"leader", "followers"}
        Replicas that members read, by the result.
    parts : (Group, list of list of int), or None
        For a group of units: the original group, and the partitions of each unit.
    only : list of list of int (P, …), or None
        Members that each partition is restricted to; None: no restriction.
    """

    name: str
    partitions: list[tuple[str, int]]
    lags: list[int]
    futures: list[tuple[Fraction, list[int]]]
    members: list[str]
    weights: list[Fraction]
    caps: list[int | None]
    topics_of: list[set[str]]
    owner: list[int | None]
    pin: list[int | None]
    together: list[list[str]]
    racks: list[str | None]
    partition_racks: list[list[str] | None]
    sizes: list[int] | None
    traffic: list[int] | None
    costs: dict[str, list[list[int]]]
    fetch_from: str = FOLLOWERS
    parts: tuple[Group, list[list[int]]] | None = None
    only: list[list[int]] | None = None

    @cached_property
    def topics(self) -> list[str]:
        """Topics with partitions."""
        return sorted({topic for topic, _ in self.partitions})

    @cached_property
    def here(self) -> list[int]:
        """Partitions with a subscriber, which a plan assigns."""
        subscribed = set().union(*self.topics_of)
        return [p for p, (topic, _) in enumerate(self.partitions) if topic in subscribed]

    @cached_property
    def takers(self) -> list[list[int]]:
        """Members that may hold each partition; shape (P, …)."""
        return self._able if self.only is None else self.only

    @cached_property
    def _able(self) -> list[list[int]]:
        open_to = {
            topic: [m for m, topics in enumerate(self.topics_of) if topic in topics and self.caps[m] != 0]
            for topic in self.topics
        }
        return [
            open_to[topic] if (pin := self.pin[p]) is None else [pin] for p, (topic, _) in enumerate(self.partitions)
        ]

    @cached_property
    def active(self) -> list[int]:
        """Members that may hold a partition."""
        return sorted({m for p in self.here for m in self._able[p]})

    def allowed(self, m: int) -> frozenset[str]:
        """Topics with partitions that a member may take."""
        return frozenset(self.topics_of[m] & set(self.topics)) if self.caps[m] != 0 else frozenset()

    @cached_property
    def sided(self) -> bool:
        """Return True if any member has a cap, or any partition a pin."""
        return any(cap is not None for cap in self.caps) or any(pin is not None for pin in self.pin)

    @cached_property
    def equal_subscriptions(self) -> bool:
        """Return True if all active members may take the same topics."""
        return len({self.allowed(m) for m in self.active}) <= 1

    @cached_property
    def equal_weights(self) -> bool:
        """Return True if all active members have the same weight."""
        return len({self.weights[m] for m in self.active}) <= 1

    @cached_property
    def share(self) -> dict[int, Fraction]:
        """Weight of each active member, of mean 1."""
        total = sum((self.weights[m] for m in self.active), Fraction(0))
        return {m: self.weights[m] * len(self.active) / total for m in self.active}

    @cached_property
    def scale(self) -> int:
        """Factor that makes every load per weight, in messages, a whole number."""
        return lcm(*((1 / share).denominator for share in self.share.values()))

    def load_unit(self, lags: Sequence[int]) -> Fraction:
        """Return a number that all loads per weight are multiples of, in messages."""
        lag = gcd(*(lags[p] for p in self.here)) or 1
        return common_divisor([lag / share for share in self.share.values()])

    def held(self, holder: Sequence[int | None], lags: Sequence[int]) -> list[int]:
        """Return the messages of each member, in an assignment with these lags."""
        held = [0] * len(self.members)
        for p, m in enumerate(holder):
            if m is not None:
                held[m] += lags[p]
        return held

    def loads(self, holder: Sequence[int | None], lags: Sequence[int]) -> list[Fraction]:
        """Return the load per weight of each active member, in messages."""
        held = self.held(holder, lags)
        return [held[m] / self.share[m] for m in self.active]

    @property
    def judged_by(self) -> list[tuple[Fraction, list[int]]]:
        """Weight and lags of each scenario; without scenarios the current lags."""
        return self.futures or [(Fraction(1), self.lags)]


def read_group(document: Mapping[str, Any]) -> Group:
    """Read a problem file.

    Raises
    ------
    InvalidProblemError
        The document cannot be read. `Problem.from_dict` gives a more exact message.
    """
    try:
        return _read(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidProblemError(f"cannot read the problem ({error!r}); check it with Problem.from_dict") from error


def _read(document: Mapping[str, Any]) -> Group:
    lags = _lags(document["topics"])
    partitions = sorted(lags)
    index = {name: p for p, name in enumerate(partitions)}
    members = sorted(document["members"])
    entries = [document["members"][member] for member in members]
    topics_of = [set(entry.get("topics") or ()) for entry in entries]
    pin: list[int | None] = [None] * len(partitions)
    for topic, number, member in document.get("pins") or ():
        pin[index[topic, number]] = members.index(member)
    futures = []
    for each in document.get("scenarios") or ():
        future = _lags(each["topics"])
        futures.append((_number(each.get("weight"), 1), [future[name] for name in partitions]))
    return Group(
        name=document.get("group", "group"),
        partitions=partitions,
        lags=[lags[name] for name in partitions],
        futures=futures,
        members=members,
        weights=[_number(entry.get("weight"), 1) for entry in entries],
        caps=[entry.get("max_partitions") for entry in entries],
        topics_of=topics_of,
        owner=_owners(index, entries, topics_of),
        pin=pin,
        together=[list(topics) for topics in document.get("together") or ()],
        racks=[entry.get("rack") for entry in entries],
        partition_racks=_numbered(document.get("partition_racks"), partitions, None) or [None] * len(partitions),
        sizes=_numbered(document.get("move_sizes"), partitions, 1),
        traffic=_numbered(document.get("traffic"), partitions, 1),
        costs={name: _costs(entry, index, members) for name, entry in (document.get("costs") or {}).items()},
    )


def _lags(topics: Mapping[str, Any]) -> dict[tuple[str, int], int]:
    lags = {}
    for topic, given in topics.items():
        numbered = given.items() if isinstance(given, Mapping) else enumerate(given)
        for number, lag in numbered:
            lags[topic, int(number)] = int(lag)
    return lags


def _numbered(topics: Mapping[str, Any] | None, partitions: list[tuple[str, int]], default: Any) -> list[Any] | None:
    """Return the value given for each partition, else the default; None if the problem has none."""
    if topics is None:
        return None
    given = {}
    for topic, values in topics.items():
        for number, value in values.items() if isinstance(values, Mapping) else enumerate(values):
            given[topic, int(number)] = value
    return [given.get(name, default) for name in partitions]


def _costs(entry: Mapping[str, Any], index: Mapping[Any, int], members: list[str]) -> list[list[int]]:
    """Return the cost of each pair: its own, else that of its member, else 0."""
    of_members = entry.get("members") or {}
    costs = [[int(of_members.get(member, 0)) for member in members] for _ in index]
    for topic, number, member, cost in entry.get("pairs") or ():
        costs[index[topic, number]][members.index(member)] = int(cost)
    return costs


def _owners(index: Mapping[Any, int], entries: list[Mapping[str, Any]], topics_of: list[set[str]]) -> list[int | None]:
    """Return the owner of each partition: the claim of the highest generation, or None in a tie."""
    claims: dict[int, list[tuple[int, int]]] = {}
    for m, entry in enumerate(entries):
        generation = entry.get("generation")
        for topic, number in {tuple(name) for name in entry.get("owned") or ()}:
            if (topic, number) in index and topic in topics_of[m]:
                claims.setdefault(index[topic, number], []).append((-1 if generation is None else generation, m))
    owner: list[int | None] = [None] * len(index)
    for p, several in claims.items():
        newest = max(several)[0]
        holders = [m for generation, m in several if generation == newest]
        owner[p] = holders[0] if len(holders) == 1 else None
    return owner


def common_divisor(numbers: Sequence[Number]) -> Fraction:
    """Return the greatest common divisor of rational numbers; 0 if all are 0."""
    common = lcm(*(Fraction(number).denominator for number in numbers))
    return Fraction(gcd(*(int(number * common) for number in numbers)), common)


def _number(value: Any, default: int) -> Fraction:
    """Return the exact decimal: 0.1 is a tenth."""
    return Fraction(default if value is None else str(value))
