"""Checks of snapshot tables' rows for one group; an invalid row raises an error that names its place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from evenlag.errors import InvalidProblemError
from evenlag.model.values import is_unicode, is_whole, parse_cap, parse_generation, parse_weight, shown
from evenlag.tables.columns import MEMBERS, OFFSETS, Column

Row = Mapping[str, Any]

_MOST_NAMES = 8  # names listed in a message
_CHECKED_OFFSETS, _CHECKED_MEMBERS = ([column for column in table if column.checked] for table in (OFFSETS, MEMBERS))


def partition_of(row: Row) -> tuple[str, int]:
    """Check a row of the offsets table, and return its topic and partition.

    Raises
    ------
    InvalidProblemError
        Topic or partition is missing, or a value has the wrong type.
    """
    topic, partition = row["topic"], row["partition"]
    check_texts(row, ("topic",))
    if not topic:
        raise InvalidProblemError("topic is missing")
    for column in _CHECKED_OFFSETS:
        if (value := row[column.name]) is not None:
            _check_value(column, value, f"{topic}: ")
    if partition is None:
        raise InvalidProblemError(f"{topic}: partition is missing")
    return topic, partition


def check_member(row: Row) -> None:
    """Raise an error if a row of the members table is invalid.

    Raises
    ------
    InvalidProblemError
        The message names the member and the value.
    """
    check_texts(row, ("consumer_id",))
    name = row["consumer_id"]
    if not name:
        raise InvalidProblemError("consumer_id is missing")
    for column in _CHECKED_MEMBERS:
        _check_value(column, row[column.name], f"member {name!r}: ")
    if row["weight"] is not None:
        parse_weight(f"member {name!r}", row["weight"])
    parse_cap(name, row["max_partitions"])
    parse_generation(name, row["generation"])


def _check_value(column: Column, value: Any, place: str) -> None:
    """Raise an error if a value is invalid in its column; `spark.native.row_checks` has the same rules for Spark."""
    if value is None:
        return
    name, wrong = column.name, None
    if column.kind == "string":
        check_texts({name: value}, (name,))
    elif column.kind in ("strings", "racks"):
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            wrong = "is not a list of names:"
    elif column.kind == "boolean":
        wrong = None if isinstance(value, bool) else "is not true or false:"
    elif column.kind == "integer":
        least, most = column.least, column.most
        if not is_whole(value) or abs(value) >= 2**63:
            wrong = "is not a whole number:"
        elif (least is not None and value < least) or (most is not None and value > most):
            wrong = f"must be {'0, 1, 2, …' if least == 0 else f'from {least} to {most}'}, not"
    if wrong is not None:
        raise InvalidProblemError(f"{place}{name} {wrong} {shown(value)}")


def check_key(row: Row) -> None:
    """Raise an error if the group or time of a row has the wrong type.

    Raises
    ------
    InvalidProblemError
        The message names the column.
    """
    check_texts(row, ("group",))
    if not isinstance(row["snapshot_ts"], int | float):  # such as seconds since the epoch
        check_texts(row, ("snapshot_ts",))


def check_texts(row: Row, names: Iterable[str]) -> None:
    """Raise an error if one of these columns holds anything but text.

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
    """Add the place to errors raised within."""
    try:
        yield
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{place}: {error}") from error


def some(names: Collection[str]) -> str:
    """Return the first few names as a list, and the number of the others."""
    listed = ", ".join(sorted(names)[:_MOST_NAMES])
    return f"{listed} and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else listed
