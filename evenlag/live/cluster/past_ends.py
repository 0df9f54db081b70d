"""Log ends at past times, requested once per broker and time, and the reasons why some are unknown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

from evenlag.errors import SourceError
from evenlag.figures import some
from evenlag.live.cluster.past_times import MILLI, as_text
from evenlag.live.group_state import Failure, TopicPartition
from evenlag.live.wording import explained

TIMES_A_CHECK = 10  # times after which the log starts are read again
FUTURE = 60_000  # milliseconds by which a producer's clock may be ahead

Ends = dict[TopicPartition, int]


class Logs(Protocol):
    """The requests to a cluster that are needed here (`evenlag.live.cluster.client.Cluster`)."""

    def renew(self) -> None:
        """Give the next requests the whole timeout again."""

    def first_since(
        self, partitions: Collection[TopicPartition], millis: int
    ) -> dict[TopicPartition, tuple[int, int] | Failure]:
        """Return offset and timestamp of each partition's first message of a time or later; (−1, −1) without one."""

    def log_starts(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int | Failure]:
        """Return the log start offset of each partition."""


@dataclass(frozen=True)
class _Answer:
    """The first message at or after a time: its offset, None if that is not a log end; valid until its timestamp."""

    end: int | None
    until: float  # milliseconds since the epoch


class PastEnds:
    """Reader of the log ends of partitions at past times.

    The log end at a time is the offset of the first message with this timestamp or a later one. It is not known if the
    messages before it have been deleted, or if its timestamp lies in the future.

    Parameters
    ----------
    now : mapping of (topic, partition) to int
        Present log ends, which hold for all times after the last message.
    now_micros : int
        The time of these.
    """

    def __init__(self, logs: Logs, now: Mapping[TopicPartition, int], now_micros: int) -> None:
        self._logs, self._now, self._latest = logs, now, now_micros // MILLI + FUTURE
        self._known: dict[TopicPartition, _Answer] = {}
        self._cut: dict[TopicPartition, int] = {}  # the last time that is not known because messages were deleted
        self._ahead: dict[TopicPartition, int] = {}  # the first message with a timestamp in the future
        self._failed: defaultdict[tuple[str, str], dict[int, int]] = defaultdict(dict)

    def at(
        self, times: Sequence[int], wanted: Callable[[int], Collection[TopicPartition]]
    ) -> Iterator[tuple[int, Ends]]:
        """Yield the known log ends of the wanted partitions at each time.

        Parameters
        ----------
        times : sequence of int
            Microseconds since the epoch, ascending.
        wanted : callable
            Returns the partitions wanted at a time.

        Raises
        ------
        SourceError
            The brokers have stopped answering.
        """
        for start in range(0, len(times), TIMES_A_CHECK):
            part = [(micros, wanted(micros)) for micros in times[start : start + TIMES_A_CHECK]]
            before = dict(self._known)
            fresh = [self._ask(micros, keys) for micros, keys in part]
            starts = self._starts({key for answers in fresh for key in answers})
            self._known = before
            for (micros, keys), answers in zip(part, fresh, strict=True):
                self._known |= {key: self._judged(key, each, starts, micros) for key, each in answers.items()}
                yield micros, self._ends(keys, micros)

    def _ask(self, micros: int, keys: Collection[TopicPartition]) -> dict[TopicPartition, _Answer]:
        """Return the answers for partitions whose last answer does not hold at a time."""
        millis = -(-micros // MILLI)
        asked = [key for key in keys if (last := self._known.get(key)) is None or last.until < millis]
        if not asked:
            return {}
        self._logs.renew()
        answers = self._logs.first_since(asked, millis)
        failures = [answer for answer in answers.values() if isinstance(answer, Failure)]
        if len(failures) == len(asked) and not any(failure.name.isupper() for failure in failures):
            raise SourceError(f"the brokers stopped answering at {as_text(micros)}: {explained(failures[0])}")
        found: dict[TopicPartition, _Answer] = {}
        for key, answer in answers.items():
            if isinstance(answer, Failure):
                times = self._failed[key[0], explained(answer)]
                times[key[1]] = times.get(key[1], 0) + 1
                continue
            offset, stamp = answer
            found[key] = _Answer(self._now[key], inf) if offset < 0 else _Answer(min(offset, self._now[key]), stamp)
        self._known |= found
        return found

    def _starts(self, keys: Collection[TopicPartition]) -> dict[TopicPartition, int | Failure]:
        if not keys:
            return {}
        self._logs.renew()
        return self._logs.log_starts(sorted(keys))

    def _judged(
        self, key: TopicPartition, answer: _Answer, starts: Mapping[TopicPartition, int | Failure], micros: int
    ) -> _Answer:
        """Return the answer, without its offset if no log end follows from it."""
        start = starts[key]
        if isinstance(start, Failure):
            self._failed[key[0], explained(start)][key[1]] = 1
            return _Answer(None, micros / MILLI)
        if answer.end is not None and start > 0 and answer.end <= start:
            return _Answer(None, answer.until)
        if self._latest < answer.until < inf:
            self._ahead.setdefault(key, int(answer.until))
            return _Answer(None, answer.until)
        return answer

    def _ends(self, keys: Collection[TopicPartition], micros: int) -> Ends:
        ends: Ends = {}
        for key in keys:
            answer = self._known.get(key)
            if answer is None or answer.until < micros / MILLI:
                continue
            if answer.end is not None:
                ends[key] = answer.end
            elif key not in self._ahead:
                self._cut[key] = micros
        return ends

    @property
    def warnings(self) -> list[str]:
        """The partitions and times without a log end, with the reasons."""
        cut = [
            f"topic {topic}, partitions {some(ids)}: no log end at {as_text(last)} and before, as the log begins later "
            "(retention, or deleted records)"
            for topic, ids, last in _by_topic(self._cut)
        ]
        ahead = [
            f"topic {topic}, partitions {some(ids)}: no log end from a message on whose timestamp lies in the future "
            f"({as_text(last * MILLI)}); check the clock of its producer"
            for topic, ids, last in _by_topic(self._ahead)
        ]
        failed = [
            f"topic {topic}, partitions {some(sorted(times))}: no log end at {max(times.values())} of the times: {why}"
            for (topic, why), times in sorted(self._failed.items())
        ]
        return [*cut, *ahead, *failed]


def _by_topic(values: Mapping[TopicPartition, int]) -> list[tuple[str, list[int], int]]:
    """Return each topic with its sorted partitions and its largest value."""
    topics: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for (topic, partition), value in values.items():
        topics[topic][partition] = value
    return [(topic, sorted(mine), max(mine.values())) for topic, mine in sorted(topics.items())]
