"""Rules for several rows with the same partition or the same member.

Rows with the same key that agree are copies: one is used, the others are dropped and counted. If rows with the same key
contradict each other, none is used, because nothing shows which is right. `tables.rules` finds both.
"""

from __future__ import annotations

from dataclasses import dataclass

from evenlag.tables.columns import PLANNED
from evenlag.tables.pair_columns import PAIR_COLUMNS


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
