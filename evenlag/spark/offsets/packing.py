"""Packing of skewed offset ranges into even tasks, so that a batch read has no straggler (no Spark)."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from evenlag.errors import InvalidProblemError
from evenlag.spark.offsets import keep, split
from evenlag.spark.offsets.keep import Homes
from evenlag.spark.offsets.offset_ranges import Bounds, offset_ranges
from evenlag.spark.offsets.split import Partition, Shares, Sizes
from evenlag.tables.call_defaults import AUTO_OFFSET_RESET

CAPS = 4  # number of caps between the bound and the limit that are tried for few cuts


class OffsetRange(NamedTuple):
    """The offsets of a partition from `start` (inclusive) to `end` (exclusive)."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def records(self) -> int:
        """The number of offsets; a compacted topic may have fewer records."""
        return self.end - self.start


@dataclass(frozen=True)
class Task:
    """The ranges that one task reads, at most one for each partition."""

    ranges: tuple[OffsetRange, ...]

    @property
    def records(self) -> int:
        """The number of offsets in all ranges."""
        return sum(part.records for part in self.ranges)

    @property
    def options(self) -> dict[str, str]:
        """The options `assign`, `startingOffsets` and `endingOffsets` of Spark's Kafka source; empty without ranges."""
        if not self.ranges:
            return {}
        assign: dict[str, list[int]] = {}
        starts: dict[str, dict[str, int]] = {}
        ends: dict[str, dict[str, int]] = {}
        for topic, partition, start, end in self.ranges:
            assign.setdefault(topic, []).append(partition)
            starts.setdefault(topic, {})[str(partition)] = start
            ends.setdefault(topic, {})[str(partition)] = end
        named = {"assign": assign, "startingOffsets": starts, "endingOffsets": ends}
        return {name: json.dumps(value) for name, value in named.items()}


@dataclass(frozen=True)
class Packing:
    """Offset ranges assigned to tasks, with figures of quality.

    Attributes
    ----------
    tasks : tuple of Task
    limit : int
        Largest number of records allowed in a task.
    cuts : int
        Number of ranges beyond one for each partition with records.
    cuts_bound : int
        Lower bound of the cuts in any packing within the limit; `cuts` is optimal if equal to it.
    moves : int
        Number of ranges in a task that did not read their partition in the previous packing, although others did.
    """

    tasks: tuple[Task, ...]
    limit: int
    cuts: int
    cuts_bound: int
    moves: int

    @cached_property
    def records(self) -> int:
        """The records of all tasks."""
        return sum(task.records for task in self.tasks)

    @cached_property
    def makespan(self) -> int:
        """The records of the largest task."""
        return max(task.records for task in self.tasks)

    @property
    def bound(self) -> int:
        """The lower bound of the makespan, attained if tasks differ by at most one record."""
        return -(-self.records // len(self.tasks))

    @property
    def gap(self) -> float:
        """(makespan − bound) / max(1, mean records of a task)."""
        mean = Fraction(self.records, len(self.tasks))
        return float((self.makespan - self.bound) / max(Fraction(1), mean))


def pack_offset_ranges(
    offsets: Any,
    tasks: int,
    *,
    tolerance: float = 0.02,
    previous: Packing | Sequence[Iterable[Partition]] | None = None,
    auto_offset_reset: str = AUTO_OFFSET_RESET,
) -> Packing:
    """Pack the offsets of a batch into even tasks, with as few cuts of partitions as possible.

    No task reads more than (1 + tolerance) · records / tasks, rounded down, or than the lower bound if that is larger.
    There are fewer cuts than tasks, and none if the solver packs whole partitions within that limit.

    Parameters
    ----------
    offsets : mapping, rows or DataFrame
        `{topic: {partition: (start, end)}}`, `{(topic, partition): (start, end)}`, or rows (or a DataFrame of Spark or
        pandas) with `topic, partition, start_offset, end_offset`; the start is inclusive, the end exclusive. Or rows of
        an offsets table (docs/formats.md) of one group and snapshot, which are read from the commit to the log end, by
        the rules of the lag. Partitions without records are in no task.
    tasks : int
        Number of tasks; some are empty if there are too few records.
    tolerance : float
        Share by which the largest task may exceed the mean to save cuts; 0 for the smallest possible makespan.
    previous : Packing, or for each task its (topic, partition) pairs, optional
        Keep partitions in the tasks that read them before: minimise moves first, then cuts. If all partitions read
        before fit within the limit into the tasks that read them, with different cuts if necessary, none is moved.
    auto_offset_reset : str
        For rows of an offsets table without a commit: `latest` to read nothing, any other value for the whole log.

    Returns
    -------
    Packing
        Deterministic: the same for the same input.

    Raises
    ------
    InvalidProblemError
        A range is invalid, a partition is given twice, or a parameter has an invalid value. The message names it.

    Examples
    --------
    >>> packing = pack_offset_ranges({"orders": {0: (0, 90_000), 1: (500, 20_500), 2: (0, 10_000)}}, tasks=3)
    >>> [task.records for task in packing.tasks], packing.cuts
    ([40000, 40000, 40000], 2)
    >>> packing.tasks[2].options["startingOffsets"]
    '{"orders": {"0": 0, "1": 500, "2": 0}}'
    """
    tasks, share = _count(tasks), _share(tolerance)
    ranges = offset_ranges(offsets, auto_offset_reset)
    sizes = {partition: end - start for partition, (start, end) in ranges.items() if end > start}
    total = sum(sizes.values())
    bound = -(-total // tasks)
    limit = max(math.floor((1 + share) * total / tasks), bound)
    homes = {partition: before for partition, before in _homes(previous, tasks).items() if partition in sizes}
    shares = _best(sizes, tasks, bound, limit, homes) if sizes else {}
    return Packing(
        tasks=_laid_out(ranges, shares, tasks),
        limit=limit,
        cuts=split.count_cuts(shares),
        cuts_bound=split.least_cuts(sizes, limit),
        moves=keep.count_moves(shares, homes),
    )


def _best(sizes: Sizes, tasks: int, bound: int, limit: int, homes: Homes) -> Shares:
    """Return the shares within the limit with the fewest moves, then the fewest cuts, then the smallest makespan."""
    least = 1 + (limit - bound) // 2  # so that filling up to `bound` always keeps to the limit
    caps = sorted({bound + (limit - bound) * step // CAPS for step in range(CAPS + 1)}, reverse=True)
    if homes:
        candidates = [
            keep.keep_in_tasks(sizes, tasks, limit, cap, least, homes, whole=whole)
            for cap in (limit, bound)
            for whole in (True, False)
        ]
    else:
        candidates = [split.fill(sizes, tasks, cap, least) for cap in caps]

    def rank(shares: Shares) -> tuple[int, int, int]:
        split.equalize(shares, tasks, least)
        makespan = max(split.task_loads(shares, tasks))
        return keep.count_moves(shares, homes), split.count_cuts(shares), makespan

    ranked = [(rank(shares), nth) for nth, shares in enumerate(candidates)]
    (_, cuts, _), best = min((figures, nth) for figures, nth in ranked if figures[-1] <= limit)
    if not homes and cuts > split.least_cuts(sizes, limit):
        packed = split.pack(sizes, tasks, limit, least)
        if packed is not None and rank(packed)[1] < cuts:
            return packed
    return candidates[best]


def _laid_out(ranges: dict[Partition, Bounds], shares: Shares, tasks: int) -> tuple[Task, ...]:
    """Return the tasks with their offsets; ranges that are alone in their task come last in each partition, adjacent.

    `read_packing` reads such ranges together.
    """
    counts = Counter(task for own in shares.values() for task in own)
    held: list[list[OffsetRange]] = [[] for _ in range(tasks)]
    for (topic, partition), own in shares.items():
        start, end = ranges[topic, partition]
        for task in sorted(own, key=lambda task: own[task] if counts[task] == 1 else 0):
            held[task].append(OffsetRange(topic, partition, start, start + own[task]))
            start += own[task]
        if start != end:
            raise AssertionError(f"{topic}-{partition}: {end - start} records were left out")
    return tuple(Task(tuple(sorted(ranges_of_task))) for ranges_of_task in held)


def _homes(previous: Packing | Sequence[Iterable[Partition]] | None, tasks: int) -> Homes:
    """Return the remaining tasks that read each partition before, in the order of its offsets."""
    read: dict[Partition, list[tuple[int, int, int]]] = {}
    before: Sequence[Task | Iterable[Partition]] = previous.tasks if isinstance(previous, Packing) else previous or ()
    for nth, task in enumerate(before):
        if nth < tasks:
            for topic, partition, start, records in _read(task, nth):
                read.setdefault((topic, partition), []).append((start, nth, records))
    return {partition: {nth: records for _, nth, records in sorted(pieces)} for partition, pieces in read.items()}


def _read(task: Task | Iterable[Partition], nth: int) -> Iterator[tuple[str, int, int, int]]:
    if isinstance(task, Task):
        yield from ((part.topic, part.partition, part.start, part.records) for part in task.ranges)
        return
    for pair in task:
        if isinstance(pair, str) or len(pair) != 2:
            raise InvalidProblemError(f"previous: {pair!r} in task {nth} is not a pair (topic, partition)")
        yield pair[0], pair[1], 0, 1


def _count(tasks: Any) -> int:
    if isinstance(tasks, bool) or not hasattr(tasks, "__index__") or tasks < 1:
        raise InvalidProblemError(f"tasks must be a whole number of at least 1, not {tasks!r}")
    return int(tasks)


def _share(tolerance: Any) -> Fraction:
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 <= tolerance < math.inf:
        raise InvalidProblemError(f"tolerance must be a share of at least 0, such as 0.02, not {tolerance!r}")
    return Fraction(tolerance)
