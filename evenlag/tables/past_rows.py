"""Rows that have a group's log ends alone: which of its snapshots they precede, and their order in it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from evenlag.compare.log_ends import UNKNOWN, LogEnds

Ints = NDArray[np.int64]
Key = tuple[str, int]  # topic and partition


@dataclass(frozen=True, eq=False)
class PastRows:
    """The log ends of a group at a time at which nothing else is known of it.

    Attributes
    ----------
    micros : int
        The time in microseconds since the epoch.
    topic_of, partition_ids, ends : int arrays (P,)
        Topic index, partition number and log end offset of each row.
    """

    micros: int
    topics: tuple[str, ...]
    topic_of: Ints
    partition_ids: Ints
    ends: Ints

    def placed(self, place: Mapping[Key, int]) -> tuple[Ints, Ints]:
        """Return the rows of known partitions, as indices, and the places of these partitions."""
        keys = zip(self.topic_of.tolist(), self.partition_ids.tolist(), strict=True)
        found = [place.get((self.topics[t], p), -1) for t, p in keys]
        here = np.array(found, dtype=np.int64)
        rows = np.flatnonzero(here >= 0)
        return rows, here[rows]

    def same_partitions(self, other: PastRows) -> bool:
        """Return whether both have the same partitions in the same order."""
        arrays = ((self.topic_of, other.topic_of), (self.partition_ids, other.partition_ids))
        return self.topics == other.topics and all(np.array_equal(mine, theirs) for mine, theirs in arrays)


def before_each(past: Sequence[PastRows], times: Sequence[int | None]) -> list[tuple[PastRows, ...]]:
    """Return for each snapshot the rows after the snapshot before it, in order of time.

    Parameters
    ----------
    past : sequence of PastRows
        In any order.
    times : sequence of int or None
        Times of the snapshots in microseconds, in any order; None, for a time that cannot be read, gets no rows.
    """
    ordered = sorted(past, key=attrgetter("micros"))
    micros = [each.micros for each in ordered]
    known = sorted({time for time in times if time is not None})
    starts = {time: bisect_right(micros, earlier) for time, earlier in zip(known[1:], known, strict=False)}
    return [() if time is None else tuple(ordered[starts.get(time, 0) : bisect_left(micros, time)]) for time in times]


def log_ends(past: Sequence[PastRows], keys: Sequence[Key]) -> LogEnds | None:
    """Return the log ends of a snapshot's partitions at earlier times; None without any.

    Parameters
    ----------
    past : sequence of PastRows
        In order of time. Several of one time are put together.
    keys : sequence of (topic, partition)
        The partitions of the snapshot, in its order.
    """
    if not past:
        return None
    times = sorted({rows.micros for rows in past})
    row_of = {time: number for number, time in enumerate(times)}
    ends = np.full((len(times), len(keys)), UNKNOWN, dtype=np.int64)
    place = {key: p for p, key in enumerate(keys)}
    last: PastRows | None = None
    for rows in past:
        if last is None or not rows.same_partitions(last):
            chosen, columns = rows.placed(place)
        ends[row_of[rows.micros], columns] = rows.ends[chosen]
        last = rows
    return LogEnds(np.array(times, dtype=np.int64), ends)
