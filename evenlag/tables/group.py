"""The rows of one consumer group in one snapshot, and the problem built from them (no Spark)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.errors import InvalidProblemError
from evenlag.figures import quantity
from evenlag.model.facts import EMPTY, MEMBERSHIP, NO_FACTS, Facts, LeftOver
from evenlag.model.from_rows import Member
from evenlag.model.origin import Registration, only, told_by
from evenlag.model.partitions import Partitions
from evenlag.model.problem import Problem
from evenlag.tables.pair_columns import NO_PAIR_COLUMNS, PairColumns
from evenlag.tables.past_rows import PastRows

OFFSET_FIELDS = ("log_start_offset", "log_end_offset", "current_offset")
UNKNOWN = -1  # a null offset
ONLY_OWNERS = (
    "no members table: the owners of partitions are assumed to be the members, each subscribed to all topics with "
    "owners"
)
NO_OWNERS = (
    "no members table, and no partition has an owner: it is assumed that the group has no members; if it has, give a "
    "members table"
)


def notes_of(
    beyond_end: int, before_start: int, below_zero: int, rejected_rows: int, predicted: int, unrated: int
) -> tuple[str, ...]:
    """Return the notes on a group with these counts, which are attributes of `GroupRows`."""
    notes = {
        f"{quantity(beyond_end, 'commit')} beyond the log end: lag taken as 0": beyond_end,
        f"{quantity(before_start, 'commit')} before the log start: lag counted from the log start": before_start,
        f"{quantity(below_zero, 'lag')} below 0: taken as 0": below_zero,
        f"{quantity(rejected_rows, 'row')} rejected": rejected_rows,
        f"{quantity(predicted, 'lag')} {'is' if predicted == 1 else 'are'} predicted: current lag + produce rate × "
        "horizon, rounded up": predicted,
        f"{quantity(unrated, 'partition')} without a produce rate: planned with the current lag": unrated,
    }
    return tuple(note for note, applies in notes.items() if applies)


@dataclass(frozen=True, eq=False)
class GroupRows:
    """The usable rows of one group in one snapshot, in the order of `Problem`: by topic, then partition number.

    Attributes
    ----------
    topics : tuple of str
        Topic names, sorted.
    topic_of, partition_ids, lags : int arrays (P,)
        Topic index, partition number and lag in messages of each row.
    owners : sequence of str or None (P,)
        Member id of each partition's owner.
    members : tuple of Member or None
        None without a members table: the members are then the owners.
    unowned : tuple of str
        In a group with owners: the topics none of whose partitions has one.
    assumed : str
        A sentence on how subscriptions were assumed; empty where a members table tells them. Members without topics
        then subscribe to all that are not `unowned`.
    facts : Facts
        Facts of the group in texts, which are not in its rows.
    clients : mapping of str to str
        Client ids of owners by their member ids, in rows of partitions; Spark's tasks do not get them.
    beyond_end, before_start : int
        Number of committed offsets outside the log; see `evenlag.model.lag.Lag`.
    below_zero : int
        Number of given lags below 0, taken as 0.
    rejected_rows : int
        Number of the group's rows that were rejected.
    predicted, unrated : int
        With a horizon: number of partitions with a predicted lag, and of those without a produce rate to predict it.
    offsets : int64 array (3, P), optional
        The `OFFSET_FIELDS` of each partition, `UNKNOWN` where null; None unless requested.
    left_out : frozenset of str
        Owners named in rows of the group that could not be used. They are members of the group too.
    pairs : PairColumns
        Replica racks, move size and traffic of each partition, where the rows have them.
    past : tuple of PastRows
        Log ends at times since the group's snapshot before, at which nothing else is known; in order of time.
    """

    snapshot_ts: str | None
    group: str
    topics: tuple[str, ...]
    topic_of: NDArray[Any]
    partition_ids: NDArray[Any]
    lags: NDArray[np.int64]
    owners: Sequence[str | None]
    members: tuple[Member, ...] | None = None
    beyond_end: int = 0
    before_start: int = 0
    below_zero: int = 0
    rejected_rows: int = 0
    predicted: int = 0
    unrated: int = 0
    offsets: NDArray[np.int64] | None = None
    left_out: frozenset[str] = frozenset()
    pairs: PairColumns = NO_PAIR_COLUMNS
    past: tuple[PastRows, ...] = ()
    unowned: tuple[str, ...] = ()
    assumed: str = ""
    facts: Facts = NO_FACTS
    clients: Mapping[str, str] = field(default_factory=dict)

    def in_order(self) -> GroupRows:
        """Return rows and topics given in any order in the order of `Problem`."""
        names = sorted(self.topics)
        rank = {name: t for t, name in enumerate(names)}
        topic_of = np.array([rank[name] for name in self.topics], dtype=np.int32)[self.topic_of]
        order = np.lexsort((self.partition_ids, topic_of))
        return replace(
            self,
            topics=tuple(names),
            topic_of=topic_of[order],
            partition_ids=self.partition_ids[order],
            lags=self.lags[order],
            owners=[self.owners[p] for p in order.tolist()],
            offsets=None if self.offsets is None else self.offsets[:, order],
            pairs=self.pairs.take(order),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on assumptions and corrections of the input, with counts."""
        return notes_of(
            self.beyond_end, self.before_start, self.below_zero, self.rejected_rows, self.predicted, self.unrated
        )

    @property
    def owners_seen(self) -> list[str]:
        """The owners of the group's partitions, sorted."""
        owners = {*self.left_out, *self.owners}
        return sorted(owner for owner in owners if owner is not None)

    def owner(self, name: str) -> Member:
        """Return an owner as a member, with its client id if that is known."""
        client = self.clients.get(name)
        return Member(name, registration=None if client is None else Registration(client_id=client))

    @property
    def _all_members(self) -> tuple[Member, ...]:
        return tuple(map(self.owner, self.owners_seen)) if self.members is None else self.members

    @property
    def all_facts(self) -> Facts:
        """The facts that texts and members tell, and what was assumed."""
        members = self._all_members
        facts = self.facts | told_by([member.registration for member in members if member.registration is not None])
        facts = replace(facts, assignor=only(member.assignor for member in members) or facts.assignor)
        if not self.assumed:
            return facts
        if not members:
            return facts if facts.state == EMPTY else replace(facts, assumed={MEMBERSHIP: NO_OWNERS})
        left_over = tuple(map(self._left_over, self.unowned))
        return replace(facts, left_over=left_over, assumed={"subscriptions": self.assumed})

    def _left_over(self, topic: str) -> LeftOver:
        here = self.topic_of == self.topics.index(topic)
        return LeftOver(topic, int(here.sum()), sum(self.lags[here].tolist()))

    def problem(self) -> Problem:
        """Build the group's problem.

        Raises
        ------
        InvalidProblemError
            There is no usable row, or a member is invalid.
        """
        if not self.topics:
            raise InvalidProblemError(f"no usable row: all {self.rejected_rows} rows of the group were rejected")
        members, facts = self._all_members, self.all_facts
        if facts.left_over:
            read = [topic for topic in self.topics if topic not in self.unowned]
            members = tuple(replace(each, topics=read) if each.topics is None else each for each in members)
        problem = Problem.from_rows(
            Partitions.of_rows(self.topics, self.topic_of, self.partition_ids, self.lags),
            self.owners,
            {member.consumer_id: member for member in members},
            group=self.group,
            facts=facts,
            pairs=self.pairs.pair_data(),
        )
        registrations = {each.consumer_id: each.registration for each in members if each.registration is not None}
        if not registrations:
            return problem
        return replace(problem, origin=replace(problem.origin, registrations=registrations))
