"""What becomes of several rows for one partition, or for one member.

Rows with the same key that agree are copies: one counts, the others are left out and counted. Where rows with one key
contradict each other nobody can know which is right, so none counts. This file states the rule. Three engines follow
it, and a test compares them on the same rows: `spark.native.row_checks` in native Spark columns, for the table of
rejects; `spark.worker.arrow_groups` in NumPy, for the groups of a task; `first_copies` here, for a reader that stops at
the first error.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evenlag.errors import InvalidProblemError
from evenlag.tables.columns import PLANNED
from evenlag.tables.pair_columns import PAIR_COLUMNS

Numbered = tuple[int, Mapping[str, Any]]


@dataclass(frozen=True)
class CopyRule:
    """Which rows are of one thing, and when they say the same of it.

    Attributes
    ----------
    what : str
        What a row is of.
    key : tuple of str
        Columns that name it.
    content : tuple of str
        Columns in which its rows must agree. Others may differ between copies, as offsets with the same lag do.
    """

    what: str
    key: tuple[str, ...]
    content: tuple[str, ...]

    @property
    def again(self) -> str:
        """Why a copy is left out."""
        return f"the same row for this {self.what} again"

    @property
    def differ(self) -> str:
        """Why rows that contradict one another are left out."""
        return f"several rows for this {self.what}, and they differ"


PARTITION_ROWS = CopyRule(
    "partition", ("snapshot_ts", "group", "topic", "partition"), ("lag", "consumer_id", *PAIR_COLUMNS)
)
"""Rows of the offsets table, `lag` as the lag rule gives it."""

MEMBER_ROWS = CopyRule("member", ("snapshot_ts", "group", "consumer_id"), PLANNED.names)
"""Rows of the members table."""


def _row(number: int) -> str:
    return f"row {number}"


def first_copies(
    rows: Iterable[Numbered], rule: CopyRule, place: Callable[[int], str] = _row
) -> tuple[list[Numbered], int]:
    """Keep of rows with one key the first, and count its copies.

    Parameters
    ----------
    rows : iterable of (int, mapping)
        Usable rows with their numbers in the file, such as `enumerate(read_table(path, kind), start=1)` gives. A key
        column that is absent is null; `lag` is the one worked out by the lag rule.
    rule : CopyRule
        `PARTITION_ROWS` or `MEMBER_ROWS`.
    place : callable (int) -> str
        Says which row a number is of, for errors.

    Returns
    -------
    list of (int, mapping)
        The rows that count, with their numbers, in the order they came.
    int
        How many copies of them were left out.

    Raises
    ------
    InvalidProblemError
        Two rows contradict one another; the message names both by their places, and what they differ in.

    Examples
    --------
    >>> rows = [{"topic": "orders", "partition": 0, "lag": 7}, {"topic": "orders", "partition": 0, "lag": 7}]
    >>> first_copies(enumerate(rows, start=1), PARTITION_ROWS)
    ([(1, {'topic': 'orders', 'partition': 0, 'lag': 7})], 1)
    """
    first: dict[tuple[Hashable, ...], Numbered] = {}
    copies = 0
    for number, row in rows:
        key = tuple(row.get(name) for name in rule.key)
        earlier, kept = first.setdefault(key, (number, row))
        if earlier == number:
            continue
        differ = [name for name in rule.content if row.get(name) != kept.get(name)]
        if differ:
            source, _, also = place(earlier).rpartition(", ")
            also = also if place(number).startswith(f"{source}, ") else place(earlier)
            raise InvalidProblemError(
                f"{place(number)}: {rule.what} {_named(key)} is also in {also}, and they differ in "
                f"{', '.join(differ)}; keep one"
            )
        copies += 1
    return list(first.values()), copies


def _named(key: tuple[Hashable, ...]) -> str:
    """The last parts of a key, which tell rows of one group apart: `orders-0`, or the member's name."""
    return "-".join(str(part) for part in key[2:])
