"""Partitions that go together, as units: the contracted problem, in which each unit is one partition."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenlag.errors import InvalidProblemError
from evenlag.model.arrays import NOBODY, Index, Ints, stacked, summable
from evenlag.model.lag import MAX_LAG
from evenlag.model.pair_data import PairData, Units
from evenlag.model.pair_table import PairTable

if TYPE_CHECKING:
    from evenlag.model.plan import Plan
    from evenlag.model.problem import Problem

JOINT = "+"  # joins the names of topics whose partitions go together


def contracted(problem: Problem) -> Problem:
    """Return the problem whose partitions are the units of another; other rules and costs are equivalent.

    Topics that go together become one topic, `orders+payments`. A unit's lag is the sum of its partitions' lags, in
    every scenario as well. A member may take it if it subscribes to all of its topics. Its owner is the member that
    owns all of its partitions, or `NOBODY`. The moves of its partitions are in `pairs.matrices["moves"]`, by unit and
    member.

    Raises
    ------
    InvalidProblemError
        Pins send partitions of one unit to different members, or to one that cannot take the unit; no member can take a
        unit; or a unit's lag exceeds 2^62.
    """
    topics, group_of = _topics(problem)
    unit_of, first = _units(problem, group_of)
    count = len(first)
    units = Units(problem, unit_of)
    subscribed = np.ones((len(topics), len(problem.members)), dtype=bool)
    np.logical_and.at(subscribed, group_of, problem.subscribed)
    _check_subscribed(problem, topics, group_of, subscribed)
    owner = problem.owner[first]
    owner[np.bincount(unit_of[problem.owner != owner[unit_of]], minlength=count) > 0] = NOBODY
    return replace(
        problem,
        topics=topics,
        topic_of=group_of[problem.topic_of[first]].astype(np.int32),
        partition_ids=problem.partition_ids[first],
        lags=_lags(problem, problem.lags, unit_of, count),
        subscribed=subscribed,
        owner=owner,
        pins=_pins(problem, unit_of, count, subscribed[group_of]),
        origin=problem.origin.without_claims(),
        scenario_lags=stacked([_lags(problem, lags, unit_of, count) for lags in problem.scenario_lags]),
        pairs=_pair_data(problem, units),
    )


def expanded(problem: Problem, plan: Plan) -> Plan:
    """Return the plan of a problem's partitions that corresponds to a plan of its units."""
    units = problem.units.pairs.units
    return plan if units is None else replace(plan, problem=problem, member_of=plan.member_of[units.unit_of])


def gathered(problem: Problem, plan: Plan) -> Plan | None:
    """Return the plan of a problem's units that corresponds to a plan of its partitions; None if it splits a unit."""
    units = problem.units.pairs.units
    if units is None:
        return plan
    member_of = np.full(len(problem.units.lags), NOBODY, dtype=np.int32)
    member_of[units.unit_of] = plan.member_of
    whole = np.array_equal(member_of[units.unit_of], plan.member_of)
    return replace(plan, problem=problem.units, member_of=member_of) if whole else None


def parted(problem: Problem, member_of: Index) -> tuple[int, int] | None:
    """Return the indices of the first two partitions of a unit that go to different members; None if there are none."""
    units = problem.units.pairs.units
    if units is None:
        return None
    first = np.full(len(problem.units.lags), len(member_of))
    np.minimum.at(first, units.unit_of, np.arange(len(member_of)))
    with_first = first[units.unit_of]
    apart = np.flatnonzero(member_of != member_of[with_first])
    return (int(with_first[apart[0]]), int(apart[0])) if len(apart) else None


def _topics(problem: Problem) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Return the topic names after joining, sorted, and the index of the joined topic of each topic (T,)."""
    in_unit = {topic: topics for topics in problem.pairs.together for topic in topics}
    name_of: dict[tuple[str, ...], str] = {}
    taken = set(problem.topics)
    for topics in problem.pairs.together:
        name = JOINT.join(topics)
        while name in taken:
            name += JOINT
        taken.add(name)
        name_of[topics] = name
    names = [name_of[in_unit[topic]] if topic in in_unit else topic for topic in problem.topics]
    topics = tuple(sorted(set(names)))
    number = {name: t for t, name in enumerate(topics)}
    return topics, np.array([number[name] for name in names], dtype=np.int64)


def _units(problem: Problem, group_of: NDArray[np.int64]) -> tuple[Index, NDArray[np.int64]]:
    """Return the unit of each partition (P,), in canonical order, and the first partition of each unit (U,)."""
    keys = np.column_stack([group_of[problem.topic_of], problem.partition_ids])
    _, first, unit_of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return unit_of.reshape(-1).astype(np.int32), first


def _lags(problem: Problem, lags: Ints, unit_of: Index, count: int) -> Ints:
    sums = np.zeros(count, dtype=object)
    np.add.at(sums, unit_of, lags.astype(object))
    for unit in np.flatnonzero(sums > MAX_LAG)[:1]:
        topic, partition = problem.partitions[int(np.flatnonzero(unit_of == unit)[0])]
        raise InvalidProblemError(
            f"together: {topic}-{partition} and the partitions that go with it have more than 2^62 messages"
        )
    return summable(sums.astype(np.int64))


def _check_subscribed(
    problem: Problem, topics: tuple[str, ...], group_of: NDArray[np.int64], subscribed: NDArray[np.bool_]
) -> None:
    """Refuse joined topics of which some have subscribers, but no member subscribes to all."""
    some = np.zeros(len(topics), dtype=bool)
    np.logical_or.at(some, group_of, problem.subscribed.any(axis=1))
    for t in np.flatnonzero(some & ~subscribed.any(axis=1))[:1]:
        names = ", ".join(repr(problem.topics[i]) for i in np.flatnonzero(group_of == t))
        raise InvalidProblemError(
            f"together: no member subscribes to all of {names}, so no member could take their partitions; "
            "subscribe one to all of them, or remove topics from together"
        )


def _pins(problem: Problem, unit_of: Index, count: int, subscribed: NDArray[np.bool_]) -> Index:
    """Return the pin of each unit; `subscribed` is True for members that subscribe to all topics of a topic's unit."""
    pins = np.full(count, NOBODY, dtype=np.int32)
    pinned = np.flatnonzero(problem.pins != NOBODY)
    pins[unit_of[pinned]] = problem.pins[pinned]
    for p in pinned.tolist():
        topic, partition = problem.partitions[p]
        member, place = problem.pins[p], f"pin of {topic}-{partition} to {problem.members[problem.pins[p]]!r}"
        if pins[unit_of[p]] != member:
            raise InvalidProblemError(
                f"{place}: a partition kept together with it is pinned to {problem.members[pins[unit_of[p]]]!r}; "
                "keep one of the two pins"
            )
        if not subscribed[problem.topic_of[p], member]:
            raise InvalidProblemError(f"{place}: it does not subscribe to all topics that go together with {topic!r}")
    return pins


def _pair_data(problem: Problem, units: Units) -> PairData:
    pairs = problem.pairs
    owner, members = problem.owner, len(problem.members)
    matrices = {"moves": units.summed(PairTable.of_moves(owner, members))}
    if pairs.move_sizes is not None:
        matrices["moved_size"] = units.summed(PairTable.of_moves(owner, members, pairs.move_sizes))
    return PairData(
        racks=pairs.racks,
        fetch_from=pairs.fetch_from,
        costs={name: units.summed(costs) for name, costs in pairs.costs.items()},
        matrices=matrices,
        units=units,
    )
