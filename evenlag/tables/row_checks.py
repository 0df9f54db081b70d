"""Rows of snapshot tables for one group: what is wrong with one is an error that names its place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from evenlag.errors import InvalidProblemError
from evenlag.model.values import MAX_PARTITION, is_unicode, parse_cap, parse_generation, parse_weight, shown

Row = Mapping[str, Any]

_WHOLE_NUMBERS = ("partition", "log_start_offset", "log_end_offset", "current_offset", "lag")
_TEXTS = ("topic", "consumer_id", "auto_offset_reset")
_MOST_NAMES = 8  # listed in a sentence


def partition_of(row: Row) -> tuple[str, int]:
    """Return the partition that a row of the offsets table is of; the types of its other values are sound then.

    Raises
    ------
    InvalidProblemError
        It is of none, or a value is of another type.
    """
    check_texts(row, _TEXTS)
    topic, partition = row["topic"], row["partition"]
    if not topic:
        raise InvalidProblemError("topic is missing")
    for name in _WHOLE_NUMBERS:
        value = row[name]
        whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
        if value is not None and not whole:
            raise InvalidProblemError(f"{topic}: {name} is not a whole number: {shown(value)}")
    if partition is None or not 0 <= partition <= MAX_PARTITION:
        raise InvalidProblemError(f"{topic}: partition must be 0, 1, 2, …, not {shown(partition)}")
    return topic, partition


def check_member(row: Row) -> None:
    """Refuse a row of the members table that describes no member.

    Raises
    ------
    InvalidProblemError
        The message names the member and the value.
    """
    check_texts(row, ("consumer_id", "assignor"))
    name, topics = row["consumer_id"], row["topics"]
    if not name:
        raise InvalidProblemError("consumer_id is missing")
    listed = isinstance(topics, list) and all(isinstance(topic, str) for topic in topics)
    if topics is not None and not listed:
        raise InvalidProblemError(f"member {name!r}: topics is not a list of names: {shown(topics)}")
    if row["weight"] is not None:
        parse_weight(f"member {name!r}", row["weight"])
    parse_cap(name, row["max_partitions"])
    parse_generation(name, row["generation"])


def check_key(row: Row) -> None:
    """Refuse a row whose group or time is of another type.

    Raises
    ------
    InvalidProblemError
        The message names the column.
    """
    check_texts(row, ("group",))
    if not isinstance(row["snapshot_ts"], int | float):  # such as seconds since the epoch
        check_texts(row, ("snapshot_ts",))


def check_texts(row: Row, names: Iterable[str]) -> None:
    """Refuse a row in which a column of text holds anything else.

    Raises
    ------
    InvalidProblemError
        The message names the column.
    """
    for name in names:
        value = row[name]
        if value is not None and not (isinstance(value, str) and is_unicode(value)):
            raise InvalidProblemError(f"{name} is not a text: {shown(value)}")


@contextmanager
def at(place: str) -> Iterator[None]:
    """Put the place before what is wrong there."""
    try:
        yield
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{place}: {error}") from error


def some(names: Collection[str]) -> str:
    """List the first few names, and count the others."""
    listed = ", ".join(sorted(names)[:_MOST_NAMES])
    return f"{listed} and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else listed
