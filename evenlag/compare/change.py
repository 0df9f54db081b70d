"""A hypothetical change of a consumer group, and the group after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from math import gcd
from typing import Any

from evenlag.errors import InvalidProblemError
from evenlag.figures import quantity, some
from evenlag.model.balance import Balance
from evenlag.model.literals import BalanceWord, NewPartitionsWord
from evenlag.model.names import Name, spelled
from evenlag.model.problem import Problem, check_problem
from evenlag.model.values import check_mapping, check_name, is_whole, kind, parse_weight, shown

MOST_NEW = 1_000_000  # largest number of partitions of a topic
MOST_MEMBERS = 100_000  # largest number of new or leaving members; beyond, even printing the group takes too long


class NewPartitions(Name):
    """Assumption on a topic's lags once it has more partitions."""

    EMPTY = "empty"  # Kafka leaves messages where they are, so new partitions are empty
    REHASHED = "rehashed"  # as if the keys had been hashed over all partitions from the beginning


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change of a group; at least one attribute must be set.

    Attributes
    ----------
    members : int
        Number of new members, which read the same topics as the others. If negative, the last members by name leave.
    add : mapping of member to the topics it reads
        New members by name; None: they read what all others read.
    remove : sequence of str
        Members that leave.
    partitions : mapping of topic to its number of partitions
        At least the current number, because Kafka cannot remove partitions.
    weights : mapping of member to weight > 0
        New weights of members that stay or join.
    balance : {"both", "topic", "group", "none"}, optional
        Count balance after the change.
    new_partitions : {"empty", "rehashed"}
        "empty": new partitions are empty, as on their first day. "rehashed": the topic's lags are as if its keys had
        been hashed over all partitions by Kafka's default partitioner; keys are assumed to be many and alike.

    Raises
    ------
    InvalidProblemError
        A parameter has an invalid value, a member is named twice, or nothing changes.
    """

    members: int = 0
    add: Mapping[str, Iterable[str] | None] = field(default_factory=dict)
    remove: Sequence[str] = ()
    partitions: Mapping[str, int] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    balance: Balance | BalanceWord | None = None
    new_partitions: NewPartitions | NewPartitionsWord = NewPartitions.EMPTY

    def __post_init__(self) -> None:
        NewPartitions.of(self.new_partitions, "new_partitions")
        if self.balance is not None:
            Balance.of(self.balance, "balance")
        if not (is_whole(self.members) and abs(self.members) <= MOST_MEMBERS):
            raise InvalidProblemError(
                f"members must be a whole number such as +2 or -1, at most {MOST_MEMBERS:,}, not {shown(self.members)}"
            )
        if isinstance(self.remove, str) or not isinstance(self.remove, Sequence):
            raise InvalidProblemError(f"remove must be a list of members; got {kind(self.remove)}")
        check_mapping(self.add, "add", "member to the topics it reads")
        check_mapping(self.partitions, "partitions", "topic to its number of partitions")
        check_mapping(self.weights, "weights", "member to weight")
        for name in (*self.add, *self.remove):
            check_name(name, "a member")
        for name, times in Counter(self.remove).items():
            if times > 1:
                raise InvalidProblemError(f"member {name!r} is removed {times} times; name it once")
        for topic, size in self.partitions.items():
            if not (is_whole(size) and 1 <= size <= MOST_NEW):
                raise InvalidProblemError(
                    f"topic {topic!r}: partitions must be a whole number from 1 to {MOST_NEW:,}, not {shown(size)}"
                )
        for name, weight in self.weights.items():
            parse_weight(f"member {name!r}", weight)
        changes = (self.members, self.add, self.remove, self.partitions, self.weights, self.balance)
        if not any(changes):
            raise InvalidProblemError("nothing changes: name members, partitions, weights or a balance")


Change.__init__ = spelled(Change.__init__)  # type: ignore[method-assign]


def changed(problem: Problem, change: Change) -> Problem:
    """Return the group after a change, as its problem file would describe it.

    Partitions that stay keep their lag and owner; new ones have no owner. Partitions of a member that leaves lose their
    owner, and older claims of other members to them count again.

    Raises
    ------
    InvalidProblemError
        The group has no such member or topic, a leaving member has pins, no member is left, or the topics of new
        members are ambiguous; the message names it and says what to do.
    """
    return carried_out(problem, change)[0]


def carried_out(problem: Problem, change: Change) -> tuple[Problem, tuple[str, ...]]:
    """Return the group after a change, and the assumptions made for the user, one sentence each."""
    check_problem(problem)
    if not isinstance(change, Change):
        raise InvalidProblemError(f"the change must be a Change; got {kind(change)}")
    edit = _Edit(problem.to_dict())
    edit.exchange_members(change)
    for topic, size in change.partitions.items():
        edit.enlarge(topic, size, change.new_partitions)
    for name, weight in change.weights.items():
        edit.weigh(name, weight)
    return Problem.from_dict(edit.document), tuple(edit.notes)


class _Edit:
    """A problem document under change.

    Attributes
    ----------
    document : dict
    notes : list of str
        Assumptions made for the user.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.notes: list[str] = []
        self._topics: dict[str, Any] = document["topics"]
        self._members: dict[str, Any] = document["members"]

    def exchange_members(self, change: Change) -> None:
        """Remove the leaving members, then add the new ones."""
        there = dict(self._members)
        for name in self._leaving(change):
            self._take_away(name)
        alike = _same_topics(self._members or there)
        if not there:
            alike = list(self._topics)
            if change.members > 0 or None in change.add.values():
                self.notes.append("the group has no members, so new ones are assumed to read all of its topics")
        for name, topics in change.add.items():
            if name in there:
                raise InvalidProblemError(f"member {name!r} is in the group already; give the new one another name")
            self._add(name, alike if topics is None else self._known(name, topics))
        names = new_names(max(change.members, 0), {*there, *self._members})
        for name in names:
            self._add(name, alike)
        if names:
            self.notes.append(
                f"new members{', which read the same topics as the others' if there else ''}: {some(names)}"
            )
        if there and not self._members:
            raise InvalidProblemError("no member would be left: keep one, or add another")

    def _leaving(self, change: Change) -> list[str]:
        for name in change.remove:
            self._member(name)
        leaving = list(change.remove)
        stay = [name for name in self._members if name not in set(leaving)]
        if change.members < 0:
            if -change.members > len(stay):
                raise InvalidProblemError(
                    f"{quantity(-change.members, 'member')} cannot leave: "
                    f"there {'is' if len(stay) == 1 else 'are'} {len(stay)}"
                )
            last = stay[change.members :]
            leaving += last
            self.notes.append(f"the last members by name leave: {some(last)}; to remove others, name them")
        return leaving

    def _take_away(self, name: str) -> None:
        for topic, partition, member in self.document["pins"]:
            if member == name:
                raise InvalidProblemError(
                    f"member {name!r} cannot leave: {topic}-{partition} is pinned to it; take the pin out of the input"
                )
        del self._members[name]
        for costs in self.document.get("costs", {}).values():
            costs["members"].pop(name, None)
            costs["pairs"] = [pair for pair in costs["pairs"] if pair[2] != name]

    def _known(self, name: str, topics: Any) -> list[str]:
        if isinstance(topics, str) or not isinstance(topics, Iterable):
            raise InvalidProblemError(f"member {name!r}: its topics must be a list of names; got {kind(topics)}")
        named = list(topics)
        for topic in named:
            self._topic(topic)
        return named

    def _add(self, name: str, topics: list[str] | None) -> None:
        if topics is None:
            raise InvalidProblemError(
                "members read different topics, so a new member needs a name and its topics: add it with --add "
                "NAME=TOPIC,TOPIC"
            )
        self._members[name] = {"topics": topics}

    def enlarge(self, topic: str, size: int, new_partitions: str) -> None:
        """Give a topic more partitions, today and in all scenarios."""
        now = max(_numbered(self._topic(topic)), default=-1) + 1
        if size < now:
            raise InvalidProblemError(
                f"topic {topic!r} has {now} partitions, and Kafka cannot remove any: ask for {now} or more, not {size}"
            )
        if size == now:
            return
        for topics in (self._topics, *(scenario["topics"] for scenario in self.document.get("scenarios", ()))):
            known = _numbered(topics[topic])
            if new_partitions == NewPartitions.EMPTY:
                grown = known | dict.fromkeys(range(now, size), 0)
                topics[topic] = list(grown.values()) if len(grown) == size else {str(p): grown[p] for p in grown}
            elif len(known) == now:
                topics[topic] = rehashed(list(known.values()), size)
            else:
                raise InvalidProblemError(
                    f"topic {topic!r}: {now - len(known)} of its {now} partitions are missing in the input, so its "
                    f"keys cannot be rehashed; set new_partitions to {NewPartitions.EMPTY}"
                )
        for name, unknown in (("partition_racks", None), ("move_sizes", 1), ("traffic", 1)):
            values = self.document.get(name, {}).get(topic)
            if isinstance(values, list):
                values.extend([unknown] * (size - now))
        if new_partitions == NewPartitions.EMPTY:
            self.notes.append(
                f"the {size - now} new partitions of {topic} are empty, as Kafka leaves messages where they are; "
                f"to see the load with keys hashed over all, set new_partitions to {NewPartitions.REHASHED} instead of "
                f"{NewPartitions.EMPTY}"
            )
        else:
            self.notes.append(f"lags of {topic} assume many keys of similar size, hashed over {size} partitions")

    def weigh(self, name: str, weight: float) -> None:
        """Set a member's weight."""
        self._member(name)["weight"] = weight

    def _member(self, name: str) -> Any:
        if name not in self._members:
            raise InvalidProblemError(f"unknown member {name!r}; the group has {some(self._members) or 'none'}")
        return self._members[name]

    def _topic(self, topic: object) -> Any:
        if not isinstance(topic, str) or topic not in self._topics:
            raise InvalidProblemError(f"unknown topic {shown(topic)}; the group has {some(self._topics) or 'none'}")
        return self._topics[topic]


def _numbered(lags: Any) -> dict[int, int]:
    """Return the lags of a topic in a problem document, by partition in ascending order."""
    return dict(enumerate(lags)) if isinstance(lags, list) else {int(key): lag for key, lag in lags.items()}


def rehashed(lags: Sequence[int], size: int) -> list[int]:
    """Return the lags of a topic as if its messages had been written to `size` partitions; its keys are many and alike.

    Kafka's default partitioner takes a hash of the key modulo the number of partitions. With n partitions before,
    number i therefore spreads its keys evenly over those j below `size` for which i ≡ j modulo gcd(n, `size`), and
    over no others. If the number doubles, half of its keys stay and half go to partition i + n. Results are whole
    messages, none lost.

    Examples
    --------
    >>> rehashed([100, 7], 4)
    [50, 4, 50, 3]
    >>> rehashed([90, 0], 3)
    [30, 30, 30]
    """
    step = gcd(len(lags), size)
    spread = [0] * size
    for first in range(step):
        share, rest = divmod(sum(lags[first::step]), size // step)
        spread[first::step] = [share + (place < rest) for place in range(size // step)]
    return spread


def new_names(wanted: int, taken: Collection[str]) -> list[str]:
    """Return names for the wanted number of new members: `new-1`, `new-2`, …, skipping those that are taken."""
    free = (name for number in count(1) if (name := f"new-{number}") not in taken)
    return list(islice(free, wanted))


def _same_topics(members: Mapping[str, Any]) -> list[str] | None:
    """Return the topics that all members read; None if they differ or there are no members."""
    topics = [entry["topics"] for entry in members.values()]
    return list(topics[0]) if topics and all(each == topics[0] for each in topics) else None
