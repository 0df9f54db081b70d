"""The rows of one consumer group at one time, and the problem they make. No Spark here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.errors import InvalidProblemError
from evenlag.model.partitions import Partitions
from evenlag.model.problem import Problem
from evenlag.tables.pair_columns import NO_PAIR_COLUMNS, PairColumns

OFFSET_FIELDS = ("log_start_offset", "log_end_offset", "current_offset")
UNKNOWN = -1  # an offset that is null


@dataclass(frozen=True)
class Member:
    """A row of the members table; `topics` None means all topics of the group."""

    consumer_id: str
    topics: Sequence[str] | None = None
    weight: float | None = None
    max_partitions: int | None = None
    generation: int | None = None
    assignor: str | None = None
    rack: str | None = None


@dataclass(frozen=True, eq=False)
class GroupRows:
    """The usable rows of one group at one time, in the order of `Problem`: topics, then partitions ascending.

    Attributes
    ----------
    snapshot_ts : str or None
    group : str
    topics : tuple of str
        Sorted names.
    topic_of, partition_ids, lags : int arrays (P,)
        Topic index, partition number and lag in messages of each row.
    owners : sequence of str or None (P,)
        The consumer that holds the partition.
    members : tuple of Member or None
        None without a members table: then they are the owners seen, each subscribed to all topics.
    beyond_end, before_start : int
        Commits outside the log; see `evenlag.model.lag.Lag`.
    rejected_rows : int
        Rows of the group that could not be used.
    predicted, unrated : int
        With a horizon: partitions whose lag is the predicted one, and those without a produce rate to predict it by.
    offsets : int64 array (3, P), optional
        The `OFFSET_FIELDS` of each partition, `UNKNOWN` where null; only where they were asked for.
    left_out : frozenset of str
        Owners of rows that could not be used. They are members, though perhaps of none of these partitions.
    pairs : PairColumns
        Racks, sizes of moves and traffic of each partition, as far as the rows say them.
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
    rejected_rows: int = 0
    predicted: int = 0
    unrated: int = 0
    offsets: NDArray[np.int64] | None = None
    left_out: frozenset[str] = frozenset()
    pairs: PairColumns = NO_PAIR_COLUMNS

    @classmethod
    def sort(
        cls,
        key: tuple[str | None, str],
        topics: Sequence[str],
        topic_of: NDArray[Any],
        partition_ids: NDArray[Any],
        lags: NDArray[np.int64],
        owners: Sequence[str | None],
        offsets: NDArray[np.int64] | None = None,
        pairs: PairColumns = NO_PAIR_COLUMNS,
        **others: Any,
    ) -> GroupRows:
        """Put rows that came in any order, with topics numbered in any order, in the order of `Problem`."""
        names = sorted(topics)
        rank = {name: t for t, name in enumerate(names)}
        topic_of = np.array([rank[name] for name in topics], dtype=np.int32)[topic_of]
        order = np.lexsort((partition_ids, topic_of))
        return cls(
            *key,
            tuple(names),
            topic_of[order],
            partition_ids[order],
            lags[order],
            [owners[p] for p in order.tolist()],
            offsets=None if offsets is None else offsets[:, order],
            pairs=pairs.take(order),
            **others,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the input that its owner should know, with counts."""
        notes = {
            f"{self.beyond_end} commits beyond the log end: their lag is taken as 0": self.beyond_end,
            f"{self.before_start} commits before the log start: lag counted from there": self.before_start,
            f"{self.rejected_rows} rows rejected": self.rejected_rows,
            f"{self.predicted} lags are predicted: today's + produce rate × horizon, rounded up": self.predicted,
            f"{self.unrated} partitions without a produce rate: their lag is today's": self.unrated,
            "no members table: members are the owners seen, each subscribed to all topics": self.members is None,
        }
        return tuple(note for note, applies in notes.items() if applies)

    @property
    def owners_seen(self) -> list[str]:
        """Everyone who owns a partition of the group, by name."""
        return sorted(self.left_out.union(owner for owner in self.owners if owner is not None))

    @property
    def assignor(self) -> str | None:
        """The assignor that the members name, where they name one and the same."""
        named = {member.assignor for member in self.members or ()} - {None}
        return named.pop() if len(named) == 1 else None

    def problem(self) -> Problem:
        """Build the group's problem.

        Raises
        ------
        InvalidProblemError
            No usable row, or a member that breaks the problem's own rules.
        """
        if not self.topics:
            raise InvalidProblemError(f"no usable row: all {self.rejected_rows} rows of the group were rejected")
        members = self.members
        if members is None:
            members = tuple(map(Member, self.owners_seen))
        return Problem.from_rows(
            Partitions.of_rows(self.topics, self.topic_of, self.partition_ids, self.lags),
            self.owners,
            {member.consumer_id: member for member in members},
            group=self.group,
            assignor=self.assignor,
            pairs=self.pairs.pair_data(),
        )
