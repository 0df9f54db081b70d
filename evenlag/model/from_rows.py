"""Conversion of table columns to the fields of a `Problem`: the rules of `parse`, on whole columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import NOBODY, Bools, Index
from evenlag.model.facts import NO_FACTS, Facts
from evenlag.model.origin import Registration
from evenlag.model.pair_data import NO_PAIR_DATA, PairData
from evenlag.model.parse import UNKNOWN_MEMBER, UNSUBSCRIBED, Fields, origin_of, subscriptions
from evenlag.model.partitions import Partitions
from evenlag.model.values import check_name, parse_cap, parse_generation, parse_weight

_STRANGER = -2  # an owner that is not a member


@dataclass(frozen=True)
class Member:
    """A row of the members table: its planned columns, None where missing; `topics` is None for all of the group's.

    `registration` has the columns on which plans do not depend; Spark's tasks do not get them.
    """

    consumer_id: str
    topics: Sequence[str] | None = None
    weight: float | None = None
    max_partitions: int | None = None
    generation: int | None = None
    assignor: str | None = None
    rack: str | None = None
    registration: Registration | None = None


def parse_rows(
    group: str,
    partitions: Partitions,
    owners: Sequence[str | None],
    members: Mapping[str, Member],
    facts: Facts = NO_FACTS,
    pairs: PairData = NO_PAIR_DATA,
) -> Fields:
    """Convert the rows of a group to the fields of `Problem`; raise the errors of `parse`.

    Parameters
    ----------
    owners : sequence of str or None (P,)
        Owner of each partition; a table has at most one.
    pairs : PairData
        Data of the partitions; the members' racks are added.
    """
    check_name(group, "the group")
    names = tuple(sorted(check_name(member, "a member") for member in members))
    rows = [members[name] for name in names]
    dropped: Counter[str] = Counter()
    every = partitions.topics
    topics_of = {name: every if row.topics is None else row.topics for name, row in zip(names, rows, strict=True)}
    subscribed, empty_topics = subscriptions(partitions, names, topics_of, dropped)
    if any(row.rack for row in rows):
        pairs = replace(pairs, racks=tuple(row.rack or None for row in rows))
    owner, lost_claims = _owners(owners, names, partitions.topic_of, subscribed, dropped)
    return Fields(
        group=group,
        topics=partitions.topics,
        members=names,
        topic_of=partitions.topic_of,
        partition_ids=partitions.ids,
        lags=partitions.lags,
        subscribed=subscribed,
        weights=tuple(_weight(name, row.weight) for name, row in zip(names, rows, strict=True)),
        caps=np.array([parse_cap(n, row.max_partitions) for n, row in zip(names, rows, strict=True)], dtype=np.int64),
        generations=tuple(parse_generation(n, row.generation) for n, row in zip(names, rows, strict=True)),
        owner=owner,
        pins=np.full(len(partitions), NOBODY, dtype=np.int32),
        scenario_weights=(),
        scenario_lags=np.empty((0, 0), np.int64),
        pairs=pairs,
        origin=origin_of(group, names, partitions, empty_topics, dropped, lost_claims, facts),
    )


_ONE = Fraction(1)


def _weight(name: str, weight: float | None) -> Fraction:
    return _ONE if weight is None else parse_weight(f"member {name!r}", weight)


def _owners(
    owners: Sequence[str | None], names: tuple[str, ...], topic_of: Index, subscribed: Bools, dropped: Counter[str]
) -> tuple[Index, NDArray[Any]]:
    """Return the owner of each partition, and the claims of members that no longer subscribe to the topic."""
    number: dict[str | None, int] = {name: m for m, name in enumerate(names)}
    number[None] = NOBODY
    owner: Index = np.array([number.get(name, _STRANGER) for name in owners], dtype=np.int32)
    claimed = owner >= 0
    if names:
        unsubscribed = np.flatnonzero(claimed & ~subscribed[topic_of, np.maximum(owner, 0)])
    else:
        unsubscribed = np.flatnonzero(claimed)
    lost = np.column_stack([unsubscribed, owner[unsubscribed]]).astype(np.int32)
    dropped[UNSUBSCRIBED] += len(lost)
    dropped[UNKNOWN_MEMBER] += int((owner == _STRANGER).sum())
    owner[unsubscribed] = NOBODY
    return np.maximum(owner, NOBODY), lost
