"""Columns of the offsets table on costs of partition-member pairs: replica racks, move sizes, traffic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Ints, Whole, summable
from evenlag.model.pair_data import NO_PAIR_DATA, PairData, Racks, racks_of_replicas

PAIR_COLUMNS = ("replica_racks", "move_size", "traffic")
REPLICA_RACKS = PAIR_COLUMNS[0]
NO_AMOUNT = -1  # a null size or traffic
Facts = tuple[Sequence[str] | None, int | None, int | None]  # a row's values of `PAIR_COLUMNS`


@dataclass(frozen=True, eq=False)
class PairColumns:
    """The pair columns of P rows; a column without values may be empty or None.

    Attributes
    ----------
    replica_racks : sequence of (sequence of str, or None), (P,) or ()
    move_sizes, traffic : int64 array (P,), or None
        `NO_AMOUNT` where null.
    """

    replica_racks: Sequence[Sequence[str] | None] = ()
    move_sizes: Whole | None = None
    traffic: Whole | None = None

    @classmethod
    def of_rows(cls, rows: Iterable[Facts]) -> PairColumns:
        """Build the columns from the values of rows, in the order of `PAIR_COLUMNS`."""
        values = list(rows)
        if all(row == (None, None, None) for row in values):
            return NO_PAIR_COLUMNS
        racks, *amounts = zip(*values, strict=True)
        sizes, traffic = (
            np.array([NO_AMOUNT if each is None else each for each in column], dtype=np.int64) for column in amounts
        )
        return cls(racks, sizes, traffic)

    def __bool__(self) -> bool:
        """Return whether any column has values."""
        return bool(self.replica_racks) or self.move_sizes is not None or self.traffic is not None

    def take(self, rows: NDArray[Any]) -> PairColumns:
        """Return the columns of the rows with these indices, in this order."""
        return self and PairColumns(
            [self.replica_racks[p] for p in rows.tolist()] if self.replica_racks else (),
            None if self.move_sizes is None else self.move_sizes[rows],
            None if self.traffic is None else self.traffic[rows],
        )

    def row(self, p: int) -> Facts:
        """Return the values of one row; None in an absent column."""
        racks = self.replica_racks[p] if self.replica_racks else None
        return racks, _amount(self.move_sizes, p), _amount(self.traffic, p)

    def pair_data(self) -> PairData:
        """Return the columns as pair data, with 1 for a missing size or traffic."""
        if not self:
            return NO_PAIR_DATA
        racks = tuple(racks_of_replicas(each or ()) for each in self.replica_racks)
        known: tuple[Racks | None, ...] = racks if any(racks) else ()
        return (
            PairData(partition_racks=known, move_sizes=_amounts(self.move_sizes), traffic=_amounts(self.traffic))
            or NO_PAIR_DATA
        )


def _amount(column: Whole | None, p: int) -> int | None:
    return None if column is None or column[p] == NO_AMOUNT else int(column[p])


def _amounts(column: Whole | None) -> Ints | None:
    if column is None or not (column != NO_AMOUNT).any():
        return None
    return summable(np.where(column == NO_AMOUNT, 1, column))


NO_PAIR_COLUMNS = PairColumns()
