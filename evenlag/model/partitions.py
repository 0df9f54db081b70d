"""Conversion of lags by topic to a problem's partitions in canonical order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.errors import InvalidProblemError
from evenlag.model.arrays import Index, summable
from evenlag.model.lag import MAX_LAG
from evenlag.model.values import check_mapping, check_name, kind, parse_lag, parse_partition_number

# Lags of partitions 0, 1, … in order, or by partition number.
LagsByTopic = Mapping[str, Sequence[int] | NDArray[np.int64] | Mapping[int, int]]


class Partitions:
    """A problem's partitions in canonical order.

    Attributes
    ----------
    topics, empty : tuple of str
        Topics with and without partitions, sorted.
    topic_of, ids, lags
        As in `Problem`.
    """

    def __init__(self, lags: LagsByTopic) -> None:
        check_mapping(lags, "lags", "topic to lags")
        names = sorted(check_name(topic, "a topic") for topic in lags)
        columns = {topic: _topic_columns(topic, lags[topic]) for topic in names}
        self.topics = tuple(topic for topic, (ids, _) in columns.items() if len(ids))
        self.empty = tuple(topic for topic, (ids, _) in columns.items() if not len(ids))
        sizes = [len(columns[topic][0]) for topic in self.topics]
        none = np.empty(0, dtype=np.int64)  # there may be no topic at all
        self.topic_of: Index = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        self.ids: NDArray[np.int64] = np.concatenate([none, *(columns[topic][0] for topic in self.topics)])
        self.lags = summable(np.concatenate([none, *(columns[topic][1] for topic in self.topics)]))

    @classmethod
    def of_rows(
        cls, topics: Sequence[str], topic_of: NDArray[Any], ids: NDArray[Any], lags: NDArray[np.int64]
    ) -> Partitions:
        """Build from rows in canonical order, with at least one for each topic.

        Raises
        ------
        InvalidProblemError
            A name, a partition number or a lag is invalid.
        """
        partitions = cls.__new__(cls)
        partitions.topics = tuple(check_name(topic, "a topic") for topic in topics)
        partitions.empty = ()
        partitions.topic_of = topic_of.astype(np.int32)
        partitions.ids = ids.astype(np.int64)
        if len(lags) and not (lags.min() >= 0 and lags.max() <= MAX_LAG):
            for t, partition, lag in zip(topic_of.tolist(), ids.tolist(), lags.tolist(), strict=True):
                parse_lag(partitions.topics[t], partition, lag)
        partitions.lags = summable(lags.astype(np.int64))
        return partitions

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {topic: t for t, topic in enumerate(self.topics)}

    @cached_property
    def _starts(self) -> list[int]:
        starts: list[int] = np.searchsorted(self.topic_of, np.arange(len(self.topics) + 1)).tolist()
        return starts

    def __len__(self) -> int:
        return len(self.ids)

    def first_not_in(self, other: Partitions) -> tuple[str, int] | None:
        """Return the first partition, by topic and number, that `other` lacks; None if it has them all."""
        same_topics = self.topics == other.topics and np.array_equal(self.topic_of, other.topic_of)
        if same_topics and np.array_equal(self.ids, other.ids):
            return None
        names = zip(self.topic_of.tolist(), self.ids.tolist(), strict=True)
        return next(((self.topics[t], i) for t, i in names if other.find(self.topics[t], i) is None), None)

    def find(self, topic: object, partition: object) -> int | None:
        """Return the index of a partition; None if it does not exist."""
        t = self._numbers.get(topic) if isinstance(topic, str) else None
        if t is None or isinstance(partition, bool) or not isinstance(partition, int | np.integer):
            return None
        first, last = self._starts[t], self._starts[t + 1]
        if not 0 <= partition <= self.ids[last - 1]:
            return None
        if first + partition < last and self.ids[first + partition] == partition:  # without gaps, as in Kafka
            return int(first + partition)
        at = first + int(np.searchsorted(self.ids[first:last], partition))
        return at if self.ids[at] == partition else None


def _topic_columns(topic: str, lags: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a topic's partition numbers, ascending, and their lags."""
    if isinstance(lags, Mapping):
        keys: dict[int, Any] = {}
        for key in lags:
            number = parse_partition_number(topic, key)
            if number in keys:
                raise InvalidProblemError(f"topic {topic!r}: partition {number} is given twice")
            keys[number] = key
        numbers = np.array(sorted(keys), dtype=np.int64)
        return numbers, _lag_column(topic, numbers, [lags[keys[number]] for number in numbers.tolist()])
    listed = lags.ndim > 0 if isinstance(lags, np.ndarray) else isinstance(lags, Sequence)
    if not listed or isinstance(lags, str | bytes):
        raise InvalidProblemError(f"topic {topic!r}: lags must be a list or an object; got {kind(lags)}")
    numbers = np.arange(len(lags), dtype=np.int64)
    return numbers, _lag_column(topic, numbers, lags)


def _lag_column(topic: str, numbers: NDArray[np.int64], lags: Any) -> NDArray[np.int64]:
    """Return lags in messages; integer arrays are used directly, anything else is checked value by value.

    Masked values count as missing. Times are refused, although NumPy's `tolist` may convert them to numbers.
    """
    if isinstance(lags, np.ndarray):
        sound = lags.dtype.kind in "iu" and lags.ndim == 1 and not np.ma.is_masked(lags)
        if sound and len(lags) and lags.min() >= 0 and lags.max() <= MAX_LAG:
            return np.array(lags, dtype=np.int64)
        lags = list(lags) if lags.dtype.kind in "mM" else lags.tolist()
    parsed = [parse_lag(topic, number, lag) for number, lag in zip(numbers.tolist(), lags, strict=True)]
    return np.array(parsed, dtype=np.int64)
