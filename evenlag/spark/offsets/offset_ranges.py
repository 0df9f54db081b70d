"""The offset ranges of a batch, one for each partition, read from mappings, rows or DataFrames (no Spark import)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from evenlag.errors import InvalidProblemError
from evenlag.model.lag import partition_lag
from evenlag.model.values import MAX_PARTITION
from evenlag.spark.offsets.split import Partition
from evenlag.tables.call_defaults import AUTO_OFFSET_RESET
from evenlag.tables.typed_values import plain_value

Bounds = tuple[int, int]

MAX_OFFSET = 2**63 - 1
_SNAPSHOT = ("log_start_offset", "log_end_offset", "current_offset", "lag")
_COLUMNS = ("topic", "partition", "start_offset", "end_offset", *_SNAPSHOT, "auto_offset_reset")


def offset_ranges(offsets: Any, auto_offset_reset: str = AUTO_OFFSET_RESET) -> dict[Partition, Bounds]:
    """Return the ranges given to `pack_offset_ranges`, sorted by topic and partition.

    Raises
    ------
    InvalidProblemError
        A range is invalid, or a partition is given twice. The message names topic and partition.
    """
    ranges: dict[Partition, Bounds] = {}
    for key, start, end in _entries(offsets, auto_offset_reset):
        topic, partition = key
        for which, offset in (("start", start), ("end", end)):
            _whole(offset, MAX_OFFSET, f"offsets of {topic}-{partition}: the {which}")
        if end < start:
            raise InvalidProblemError(f"offsets of {topic}-{partition}: the end {end} is below the start {start}")
        if key in ranges:
            raise InvalidProblemError(
                f"offsets of {topic}-{partition} are given twice; keep one group and one snapshot"
            )
        ranges[key] = int(start), int(end)
    return dict(sorted(ranges.items()))


def _entries(offsets: Any, auto_offset_reset: str) -> Iterator[tuple[Partition, Any, Any]]:
    """Yield each partition with its unchecked start and end."""
    if not isinstance(offsets, Mapping):
        for row in _rows(offsets):
            key = _partition(row.get("topic"), row.get("partition"))
            bounds = (
                _explicit(row) if "start_offset" in row or "end_offset" in row else _snapshot(row, auto_offset_reset)
            )
            yield key, *bounds
        return
    for name, value in offsets.items():
        if isinstance(value, Mapping):
            yield from ((key := _partition(name, number), *_pair(key, pair)) for number, pair in value.items())
        elif isinstance(name, tuple) and len(name) == 2:
            yield (key := _partition(*name)), *_pair(key, value)
        else:
            raise InvalidProblemError(
                f"offsets: {name!r} is neither a topic with its partitions nor (topic, partition)"
            )


def _partition(topic: Any, partition: Any) -> Partition:
    if not isinstance(topic, str) or not topic:
        raise InvalidProblemError(f"offsets: {topic!r} is not a topic name")
    number = plain_value(partition, "integer")
    _whole(number, MAX_PARTITION, f"offsets of {topic!r}: a partition")
    return topic, int(number)


def _pair(key: Partition, pair: Any) -> tuple[Any, Any]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InvalidProblemError(f"offsets of {key[0]}-{key[1]}: {pair!r} is not a pair (start, end)")
    return pair[0], pair[1]


def _explicit(row: Mapping[str, Any]) -> tuple[Any, Any]:
    return plain_value(row.get("start_offset"), "integer"), plain_value(row.get("end_offset"), "integer")


def _snapshot(row: Mapping[str, Any], auto_offset_reset: str) -> Bounds:
    """Return the range that a group has still to read, which ends at the log end."""
    place = f"offsets of {row['topic']}-{row['partition']}"
    numbers = {name: plain_value(row.get(name), "integer") for name in _SNAPSHOT}
    for name, value in numbers.items():
        if value is not None:
            _whole(value, MAX_OFFSET, f"{place}: {name}")
    end = numbers["log_end_offset"]
    if end is None:
        raise InvalidProblemError(f"{place}: neither end_offset nor log_end_offset is known; give one")
    try:
        lag = partition_lag(**numbers, auto_offset_reset=row.get("auto_offset_reset") or auto_offset_reset)
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{place}: {error}") from None
    return end - lag.messages, end


def _rows(offsets: Any) -> Iterator[Mapping[str, Any]]:
    """Yield rows as mappings; of a DataFrame, fetch only the relevant columns."""
    rows: Iterable[Any] = offsets
    if hasattr(offsets, "columns"):  # a DataFrame of Spark or of pandas
        names = [name for name in offsets.columns if name in _COLUMNS]
        if hasattr(offsets, "to_dict"):
            rows = offsets[names].to_dict("records")
        else:
            rows = offsets.select(*(f"`{name}`" for name in names)).collect()
    elif isinstance(offsets, str) or not isinstance(offsets, Iterable):
        raise InvalidProblemError(f"offsets: {offsets!r} is not a mapping of ranges, rows, or a DataFrame")
    for row in rows:
        fields = row.asDict() if hasattr(row, "asDict") else row
        if not isinstance(fields, Mapping):
            raise InvalidProblemError(
                f"offsets: {row!r} is not a row with topic, partition, start_offset and end_offset"
            )
        yield fields


def _whole(value: Any, most: int, what: str) -> None:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidProblemError(f"{what} is {value!r}; give a whole number")
    if value < 0:
        raise InvalidProblemError(f"{what} is negative ({value})")
    if value > most:
        raise InvalidProblemError(f"{what} is above {most} ({value})")
