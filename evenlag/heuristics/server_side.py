"""The assignors of KIP-848 groups, with members and topics in the order in which a broker takes them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenlag.errors import InvalidProblemError
from evenlag.heuristics import range as ranges
from evenlag.heuristics import uniform
from evenlag.heuristics.array_operations import same_topics
from evenlag.heuristics.java_hash import Hashes, buckets, hash_codes, map_order, table_size, timeline_order
from evenlag.model.arrays import Whole
from evenlag.model.literals import BrokerWord
from evenlag.model.names import one_of, spelled
from evenlag.model.pair_data import NO_PAIR_DATA
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Index, Problem, check_problem

BROKER: tuple[BrokerWord, ...] = ("uniform", "range")
"""The assignors of a broker of Kafka 4.x, its default first."""


@spelled
def assign_in_broker(
    problem: Problem,
    assignor: BrokerWord = "uniform",
    *,
    instance_ids: Mapping[str, str] | None = None,
    topic_ids: Mapping[str, str] | None = None,
    joined: Sequence[str] = (),
    most_members: int = 0,
) -> Plan:
    """Return a broker assignor's answer for a group, given the previous target assignment (the problem's owners).

    `range` takes static members first, by their instance ids. `uniform` takes members in the order of a hash map of
    their ids, and topics in one of their own ids. Both ignore racks. Where two members share a bucket of two maps, the
    one that joined first comes first.

    Parameters
    ----------
    problem : Problem
        Members by their ids.
    assignor : {"uniform", "range"}
    instance_ids : mapping of member to `group.instance.id`, optional
        Static members.
    topic_ids : mapping of topic to its id, optional
        Ids in Kafka's base64. Without them, topics are taken by name; with one topic, or if no partition is free,
        this makes no difference.
    joined : sequence of str
        Members in the order in which they joined. Others come before them, as those of a classic group do that a
        broker has just converted.
    most_members : int
        Most members that the group had at once, if more than now: a broker's map of members does not shrink.

    Raises
    ------
    InvalidProblemError
        The assignor is unknown, or an id cannot be read; the message names it.

    References
    ----------
    Apache Kafka 4.1 to 4.4, ``org.apache.kafka.coordinator.group.modern.TargetAssignmentBuilder`` and
    ``GroupSpecBuilder``, and the classes in ``org.apache.kafka.coordinator.group.assignor``.

    Examples
    --------
    The static members come first.

    >>> problem = Problem.from_lags({"t": [0] * 3}, ["a", "b"])
    >>> assign_in_broker(problem, "range", instance_ids={"b": "host-1"}).assignment
    {'a': [('t', 2)], 'b': [('t', 0), ('t', 1)]}
    """
    check_problem(problem)
    one_of(BROKER, assignor, "assignor")
    by_name = np.arange(len(problem.topics))
    if assignor == "range":
        group = _Ordered.of(problem, _static_first(problem, instance_ids or {}), by_name)
        return group.back(ranges.assign(group.problem).member_of)
    members, ids = _map_order(problem.members, joined, most_members), _ids(problem, topic_ids)
    if not problem.assignable.any() or not same_topics(problem):
        group = _Ordered.of(problem, members, by_name if ids is None else np.lexsort((ids[:, 1], ids[:, 0])))
        return group.back(uniform.assign(group.problem).member_of)
    codes = _id_codes(ids) if ids is not None else None
    topics = by_name if codes is None else _topic_order(problem, codes)
    group = _Ordered.of(problem, members, topics)
    return group.back(uniform.homogeneous(group.problem, _surplus_order(group.problem, codes, topics)))


def _ids(problem: Problem, topic_ids: Mapping[str, str] | None) -> Whole | None:
    """Return the two halves of each topic's id, shape (T, 2), as signed integers; None if an id is missing."""
    if topic_ids is None or any(topic not in topic_ids for topic in problem.topics):
        return None
    halves = [np.frombuffer(_bytes(topic, topic_ids[topic]), dtype=">i8") for topic in problem.topics]
    return np.array(halves, dtype=np.int64).reshape(-1, 2)


def _bytes(topic: str, text: str) -> bytes:
    try:
        found = base64.urlsafe_b64decode(text + "==")
    except (binascii.Error, ValueError):
        found = b""
    if len(found) != 16:
        raise InvalidProblemError(f"topic {topic!r}: {text!r} is not the id of a topic, 22 characters of base64")
    return found


def _id_codes(ids: Whole) -> Hashes:
    """Return `Uuid.hashCode` of each id."""
    both = (ids[:, 0] ^ ids[:, 1]).astype(np.uint64)
    return ((both >> np.uint64(32)) ^ both).astype(np.uint32)


def _static_first(problem: Problem, instance_ids: Mapping[str, str]) -> Whole:
    """Return the order of `range`: static members by instance id, then the others by member id."""
    keys = [(name not in instance_ids, _utf16(instance_ids.get(name, name))) for name in problem.members]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def _utf16(text: str) -> bytes:
    """Return a key that sorts as `String.compareTo` does."""
    return text.encode("utf-16-be", "surrogatepass")


def _map_order(members: tuple[str, ...], joined: Sequence[str], most: int) -> Whole:
    """Return the order of the HashMap to which the members of the group are copied from a TimelineHashMap."""
    codes = hash_codes(members)
    when = {name: number for number, name in enumerate(joined)}
    classic = map_order(members)
    put = np.array(sorted(classic.tolist(), key=lambda member: when.get(members[member], -1)), dtype=np.int64)
    put = put[::-1]  # a slot gives its last key first
    put = put[timeline_order(codes[put], most)]
    return put[np.argsort(buckets(codes[put], table_size(len(put))), kind="stable")]


def _topic_order(problem: Problem, codes: Hashes) -> Whole:
    """Return the order of the set of subscribed ids, which is filled in the order of a set of their names."""
    size = table_size(len(codes))
    put = np.argsort(buckets(hash_codes(problem.topics), size), kind="stable")
    return put[np.argsort(buckets(codes[put], size), kind="stable")]


def _surplus_order(group: Problem, codes: Hashes | None, topics: Whole) -> uniform.SurplusOrder:
    """Return the order in which members give up partitions: by the maps of their topics and partitions.

    Parameters
    ----------
    group : Problem
        With its topics in the order `topics`.
    codes : array (T,) or None
        Hash code of each topic's id, topics by name.
    """
    spread = None if codes is None else (codes ^ (codes >> np.uint32(16))).astype(np.int64)[topics]

    def order(partitions: Whole) -> Whole:
        topic_of, owners = group.topic_of[partitions].astype(np.int64), group.owner[partitions].astype(np.int64)
        cells = owners * len(group.topics) + topic_of
        held = np.bincount(cells, minlength=len(group.members) * len(group.topics))
        slots = group.partition_ids[partitions] & (table_size(held)[cells] - 1)
        if spread is None:
            return np.lexsort((slots, topic_of, owners))
        kinds = (held.reshape(-1, len(group.topics)) > 0).sum(axis=1)
        return np.lexsort((slots, topic_of, spread[topic_of] & (table_size(kinds)[owners] - 1), owners))

    return order


def of_members(problem: Problem, members: Whole) -> Problem:
    """Return a group of only these members in this order, without racks, pins and scenarios.

    `members` are their numbers. Partitions of other members have no owner.
    """
    place = np.full(len(problem.members) + 1, NOBODY, dtype=np.int32)  # NOBODY is -1, the last place
    place[members] = np.arange(len(members))
    return replace(
        problem,
        members=tuple(problem.members[member] for member in members.tolist()),
        subscribed=problem.subscribed[:, members],
        weights=tuple(problem.weights[member] for member in members.tolist()),
        caps=problem.caps[members],
        generations=tuple(problem.generations[member] for member in members.tolist()),
        owner=place[problem.owner],
        pins=np.full(len(problem.owner), NOBODY, dtype=np.int32),
        scenario_weights=(),
        scenario_lags=np.empty((0, 0), dtype=np.int64),
        pairs=NO_PAIR_DATA,
        origin=problem.origin.without_claims(),
    )


def numbers_before(members: Whole) -> Index:
    """Return a table from the numbers in `of_members` to those before; the last place is for NOBODY, which is -1."""
    return np.array([*members.tolist(), NOBODY], dtype=np.int32)


@dataclass(frozen=True)
class _Ordered:
    """A group with its members and topics in another order, by which assignors break ties; without racks.

    Attributes
    ----------
    original, problem : Problem
        The group before and after.
    members, partitions : int arrays (M,), (P,)
        Their numbers in the original, in the new order.
    """

    original: Problem
    problem: Problem
    members: Whole
    partitions: Whole

    @classmethod
    def of(cls, problem: Problem, members: Whole, topics: Whole) -> _Ordered:
        """Reorder a group; `members` and `topics` are the numbers of all, in the new order."""
        every = np.arange(len(problem.lags))
        partitions = np.concatenate([every[:0], *(every[problem.topic_slice(topic)] for topic in topics.tolist())])
        some = of_members(problem, members)
        group = replace(
            some,
            topics=tuple(problem.topics[topic] for topic in topics.tolist()),
            topic_of=np.repeat(np.arange(len(topics), dtype=np.int32), problem.topic_sizes[topics]),
            partition_ids=problem.partition_ids[partitions],
            lags=problem.lags[partitions],
            subscribed=some.subscribed[topics],
            owner=some.owner[partitions],
        )
        return cls(problem, group, members, partitions)

    def back(self, member_of: Index) -> Plan:
        """Return an assignment of the reordered group as a plan of the original."""
        found = np.empty(len(member_of), dtype=np.int32)
        found[self.partitions] = numbers_before(self.members)[member_of]
        return Plan(self.original, found)
