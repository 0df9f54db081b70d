"""Rules for several rows with the same partition or the same member.

Rows with the same key that agree are copies: the first is used, the others are dropped and counted. If rows with the
same key contradict each other, none is used, because nothing shows which is right. Three engines implement this rule:
`spark.native.row_checks` in native Spark columns, for the table of rejects; `spark.worker.arrow_groups` in NumPy, for
the groups of a task; and `first_copies` here, for readers that stop at the first error.
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
    """The key of a table's rows, and the columns in which rows with the same key must agree.

    Attributes
    ----------
    what : str
        "partition" or "member".
    key : tuple of str
        Columns that identify it.
    content : tuple of str
        Columns in which its rows must agree. Other columns may differ between copies, such as offsets with the same
        lag.
    """

    what: str
    key: tuple[str, ...]
    content: tuple[str, ...]

    @property
    def again(self) -> str:
        """The reason why a copy is dropped."""
        return f"the same row for this {self.what} again"

    @property
    def differ(self) -> str:
        """The reason why contradicting rows are dropped."""
        return f"several rows for this {self.what}, and they differ"


PARTITION_ROWS = CopyRule(
    "partition", ("snapshot_ts", "group", "topic", "partition"), ("lag", "consumer_id", *PAIR_COLUMNS)
)
"""The rule for rows of the offsets table; `lag` is the one that the lag rule gives."""

MEMBER_ROWS = CopyRule("member", ("snapshot_ts", "group", "consumer_id"), PLANNED.names)
"""The rule for rows of the members table."""


def _row(number: int) -> str:
    return f"row {number}"


def first_copies(
    rows: Iterable[Numbered], rule: CopyRule, place: Callable[[int], str] = _row
) -> tuple[list[Numbered], int]:
    """Return the first row for each key, and the number of copies dropped.

    Parameters
    ----------
    rows : iterable of (int, mapping)
        Usable rows with their numbers in the file, such as from `enumerate(read_table(path, kind), start=1)`. A missing
        key column counts as null. `lag` is the one that the lag rule gives.
    rule : CopyRule
        `PARTITION_ROWS` or `MEMBER_ROWS`.
    place : callable (int) -> str
        Returns the place of a row number for error messages.

    Returns
    -------
    list of (int, mapping)
        The rows that are kept, with their numbers, in input order.
    int
        Number of copies that were dropped.

    Raises
    ------
    InvalidProblemError
        Two rows contradict each other. The message names both places and the columns that differ.

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
                f"{place(number)}: {rule.what} {_named(key)} is also in {also}, but the rows differ in "
                f"{', '.join(differ)}; keep one"
            )
        copies += 1
    return list(first.values()), copies


def _named(key: tuple[Hashable, ...]) -> str:
    """Return the parts of a key after time and group: `orders-0`, or the member's id."""
    return "-".join(str(part) for part in key[2:])
